package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"text/template"
)

// Report evaluates thresholds on labelled pairs.
type Report struct {
	Seed      uint64 `json:"seed"`
	Resamples int    `json:"resamples"`
	Rule      string `json:"rule"` // the rule for the recommended threshold
	Views     []View `json:"views"`
}

type View struct {
	View      string `json:"view"`
	N         int    `json:"n"`
	Same      int    `json:"same"`
	Different int    `json:"different"`
	Groups    int    `json:"groups"`
	// SameGroups and DifferentGroups count the tasks that have a pair with this label.
	SameGroups      int `json:"same_groups"`
	DifferentGroups int `json:"different_groups"`
	// Empty pairs have a text without a fingerprint and count as not similar.
	Empty       int    `json:"empty"`
	AUC         Number `json:"auc"` // probability that a same pair is more similar than a different one; 0.5 is chance
	AUC95       Range  `json:"auc_95"`
	Recommended *Cut   `json:"recommended"` // nil for none
	// ROC holds the curve's points from the highest to the lowest threshold. It omits the first point, where no pair is
	// similar.
	ROC     []Point `json:"roc"`
	Current Cut     `json:"current"` // the current threshold
	HeldOut HeldOut `json:"held_out"`
	// Reservations are reasons why the numbers may be unreliable.
	Reservations []string `json:"reservations"`
}

// Cut describes one threshold.
type Cut struct {
	Threshold   Number `json:"threshold"`
	Threshold95 Range  `json:"threshold_95"` // the rule's threshold in the resamples; unknown for a given threshold
	TPR         Number `json:"tpr"`
	TPR95       Range  `json:"tpr_95"`
	FPR         Number `json:"fpr"`
	FPR95       Range  `json:"fpr_95"`
}

// HeldOut tests the rule on unseen tasks: the threshold for each task is chosen from the other tasks.
type HeldOut struct {
	TPR    Number `json:"tpr"`
	FPR    Number `json:"fpr"`
	Gain   Number `json:"gain"` // gain in TPR − FPR over the current threshold
	Gain95 Range  `json:"gain_95"`
	// Better means that the gain's whole interval is above zero.
	Better bool `json:"better"`
}

type Point struct {
	Threshold Number `json:"threshold"`
	TPR       Number `json:"tpr"`
	FPR       Number `json:"fpr"`
}

// Number is a number that may be unknown: NaN, which is null in JSON.
type Number float64

// MarshalJSON writes at most six decimals.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(math.Round(float64(n)*1e6) / 1e6)
}

func (n Number) Known() bool { return !math.IsNaN(float64(n)) }

// Range is an interval. Either both ends are known or neither is.
type Range [2]Number

func (r Range) MarshalJSON() ([]byte, error) {
	if !r[0].Known() {
		return []byte("null"), nil
	}
	return json.Marshal([2]Number(r))
}

// Text writes the report for users: a table, the verdict, and each view's ROC curve.
func (r Report) Text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t")) }
	row("view", "cut", "similar from", "true positives", "false positives", "AUC")
	for _, v := range r.Views {
		row(v.View, "current", number(v.Current.Threshold), rate(v.Current.TPR, v.Current.TPR95), rate(v.Current.FPR, v.Current.FPR95), rate(v.AUC, v.AUC95))
		row("", "recommended", v.Recommended.cells())
		row("", "on unseen tasks", "", number(v.HeldOut.TPR), number(v.HeldOut.FPR))
	}
	t.Flush()
	fmt.Fprintf(w, "\nIn brackets: 95 %% intervals over tasks, %d resamples, seed %d.\nRecommended: %s.\n"+
		"On unseen tasks: the threshold for each task is chosen from the other tasks.\n", r.Resamples, r.Seed, r.Rule)
	for _, v := range r.Views {
		fmt.Fprintf(w, "\n%s: %d pairs of %d tasks; %d same (%d tasks), %d different (%d tasks)\n%s\n",
			v.View, v.N, v.Groups, v.Same, v.SameGroups, v.Different, v.DifferentGroups, v.Verdict())
		for _, s := range v.Reservations {
			fmt.Fprintf(w, "(%s)\n", s)
		}
		if len(v.ROC) > 0 {
			io.WriteString(w, v.plot())
		}
	}
}

// Verdict reports whether the data shows that the recommended threshold is better than the current one.
func (v View) Verdict() string {
	now := number(v.Current.Threshold)
	switch {
	case !v.AUC.Known():
		return fmt.Sprintf("keep %s: nothing can be compared", now)
	case v.Recommended == nil:
		return fmt.Sprintf("keep %s: no threshold finds anything with at most %.0f %% false positives", now, 100*MaxFPR)
	case v.Recommended.TPR == v.Current.TPR && v.Recommended.FPR == v.Current.FPR:
		return fmt.Sprintf("keep %s: the recommended threshold calls the same pairs similar", now)
	}
	gain := fmt.Sprintf("on unseen tasks, true minus false positive rate changes by %+.2f", v.HeldOut.Gain)
	if v.HeldOut.Gain95[0].Known() {
		gain += fmt.Sprintf(" [%+.2f, %+.2f]", v.HeldOut.Gain95[0], v.HeldOut.Gain95[1])
	}
	if v.HeldOut.Better {
		return fmt.Sprintf("%s is shown to be better than %s: %s", number(v.Recommended.Threshold), now, gain)
	}
	return fmt.Sprintf("keep %s: %s is not shown to be better; %s", now, number(v.Recommended.Threshold), gain)
}

func (c *Cut) cells() string {
	if c == nil {
		return "none\t\t"
	}
	return rate(c.Threshold, c.Threshold95) + "\t" + rate(c.TPR, c.TPR95) + "\t" + rate(c.FPR, c.FPR95)
}

func rate(n Number, r Range) string {
	if !n.Known() || !r[0].Known() {
		return number(n)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", n, r[0], r[1])
}

func number(n Number) string {
	if !n.Known() {
		return "–"
	}
	return fmt.Sprintf("%.2f", n)
}

// The plot's size in characters.
const (
	plotWidth  = 49
	plotHeight = 13
)

// plot draws the ROC curve in characters, with the line of chance. It marks the current and the recommended threshold.
func (v View) plot() string {
	grid := make([][]rune, plotHeight)
	for y := range grid {
		grid[y] = []rune(strings.Repeat(" ", plotWidth))
	}
	mark := func(fpr, tpr Number, r rune) {
		grid[plotHeight-1-int(tpr*(plotHeight-1)+0.5)][int(fpr*(plotWidth-1)+0.5)] = r
	}
	for x := range plotWidth {
		share := Number(x) / (plotWidth - 1)
		mark(share, share, '·')
	}
	var from Point
	for _, to := range v.ROC {
		const steps = 4 * plotWidth
		for i := range steps + 1 {
			share := Number(i) / steps
			mark(from.FPR+share*(to.FPR-from.FPR), from.TPR+share*(to.TPR-from.TPR), '█')
		}
		from = to
	}
	mark(v.Current.FPR, v.Current.TPR, 'C')
	if r := v.Recommended; r != nil {
		mark(r.FPR, r.TPR, 'R')
		if r.FPR == v.Current.FPR && r.TPR == v.Current.TPR {
			mark(r.FPR, r.TPR, '*')
		}
	}
	var b strings.Builder
	for y, line := range grid {
		label := "     "
		if y%3 == 0 {
			label = fmt.Sprintf("%.2f ", 1-float64(y)/(plotHeight-1))
		}
		fmt.Fprintf(&b, "%s┤%s\n", label, strings.TrimRight(string(line), " "))
	}
	fmt.Fprintf(&b, "     └%s\n", strings.Repeat("┴───────────", 4)+"┴")
	b.WriteString("      0.00        0.25        0.50        0.75        1.00\n")
	b.WriteString("      up: true positives, right: false positives; █ fingerprint, · chance, C current, R recommended, * both\n")
	return b.String()
}

// picture is the SVG's template, readable on light and dark pages.
//
//go:embed roc.svg.tmpl
var picture string

// Sizes in SVG's user units: the side of a plot, the width of its box, and its offset in the box.
const (
	side     = 280
	boxWidth = 360
	boxLeft  = 56
)

// SVG draws the ROC curves of all views side by side.
func (r Report) SVG() string {
	x := func(rate Number) string { return fmt.Sprintf("%.1f", rate*side) }
	y := func(rate Number) string { return fmt.Sprintf("%.1f", (1-rate)*side) }
	t := template.Must(template.New("roc").Funcs(template.FuncMap{
		"x": x, "y": y, "number": number,
		"width": func(views []View) int { return boxWidth * len(views) },
		"left":  func(i int) int { return i*boxWidth + boxLeft },
		"path": func(curve []Point) string {
			d := fmt.Sprintf("M0 %d", side) // the first point, where no pair is similar
			for _, p := range curve {
				d += "L" + x(p.FPR) + " " + y(p.TPR)
			}
			return d
		},
	}).Parse(picture))
	var b strings.Builder
	if err := t.Execute(&b, r); err != nil {
		panic(err) // the template fits the report, because both are in this package
	}
	return b.String()
}
