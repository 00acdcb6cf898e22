package calibrate

import (
	"encoding/json"
	"math"
)

// Report is what labelled pairs say about thresholds.
type Report struct {
	Seed      uint64 `json:"seed"`
	Resamples int    `json:"resamples"`
	Rule      string `json:"rule"` // how the recommended threshold is chosen
	Views     []View `json:"views"`
}

// View is the report on the pairs of one view.
type View struct {
	View      string `json:"view"`
	N         int    `json:"n"`
	Same      int    `json:"same"`
	Different int    `json:"different"`
	Groups    int    `json:"groups"`
	// SameGroups and DifferentGroups are the groups that have a pair with the
	// label; they bound what can be known, more than the number of pairs.
	SameGroups      int `json:"same_groups"`
	DifferentGroups int `json:"different_groups"`
	// Empty is the number of pairs with a text that has no fingerprint; they
	// count as not similar.
	Empty int `json:"empty"`
	Curve
	// Current is the threshold in use.
	Current Cut     `json:"current"`
	HeldOut HeldOut `json:"held_out"`
	// Trigrams is the yardstick: the exact share of common word trigrams.
	Trigrams Curve `json:"trigrams"`
	// Reservations say why the numbers may not be relied on.
	Reservations []string `json:"reservations"`
}

// Curve is how well one measure of similarity tells the labels apart.
type Curve struct {
	// AUC is the probability that a pair labelled same is more similar than
	// one labelled different; 0.5 is chance.
	AUC   Number `json:"auc"`
	AUC95 Range  `json:"auc_95"`
	// Recommended is the cut that the rule chooses, nil if it chooses none.
	Recommended *Cut `json:"recommended"`
	// ROC runs from the highest threshold to the lowest, without the corner in
	// which nothing is similar.
	ROC []Point `json:"roc"`
}

// Cut is what one threshold does.
type Cut struct {
	Threshold Number `json:"threshold"`
	// Threshold95 is where the rule puts it in other draws of tasks; a given
	// threshold has none.
	Threshold95 Range  `json:"threshold_95"`
	TPR         Number `json:"tpr"`
	TPR95       Range  `json:"tpr_95"`
	FPR         Number `json:"fpr"`
	FPR95       Range  `json:"fpr_95"`
}

// HeldOut judges the rule on tasks that it did not see: for each task the
// threshold is chosen on the others.
type HeldOut struct {
	TPR Number `json:"tpr"`
	FPR Number `json:"fpr"`
	// Gain is by how much TPR − FPR is higher than with the current threshold.
	Gain   Number `json:"gain"`
	Gain95 Range  `json:"gain_95"`
	// Better says that the whole interval of the gain is above zero: the
	// recommended threshold is shown to be better than the current one.
	Better bool `json:"better"`
}

// Point is one point of a ROC curve.
type Point struct {
	Threshold Number `json:"threshold"`
	TPR       Number `json:"tpr"`
	FPR       Number `json:"fpr"`
}

// Number is a number that may be unknown (NaN), which JSON has as null.
type Number float64

// MarshalJSON writes at most six decimals.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(math.Round(float64(n)*1e6) / 1e6)
}

// Known reports whether the number exists.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) }

// Range is an interval, low and high. Both are unknown or none.
type Range [2]Number

// MarshalJSON writes an unknown interval as null.
func (r Range) MarshalJSON() ([]byte, error) {
	if !r[0].Known() {
		return []byte("null"), nil
	}
	return json.Marshal([2]Number(r))
}
