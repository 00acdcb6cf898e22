package learning

import (
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Agreement counts how often a source agrees with people's acts or, if there are none, with the verifier and other
// checks. GoodRate and BadRate are the parameters of Dawid and Skene. Each source has its own scale, so harsh, generous
// and pass-or-fail judges are comparable.
type Agreement struct {
	Good     int     `json:"good"` // attempts that the others call good and the source graded
	Bad      int     `json:"bad"`
	Hits     int     `json:"hits"`    // good attempts that the source calls good
	Rejects  int     `json:"rejects"` // bad attempts that the source calls bad
	GoodRate float64 `json:"good_rate"`
	BadRate  float64 `json:"bad_rate"` // both rates include the prior
	Cut      float64 `json:"cut"`      // the lowest value that counts as good
}

// The prior of a source: expectedRate over expectedCount comparisons of each kind. A week of attempts outweighs it (our
// choice).
const (
	expectedRate  = 0.9
	expectedCount = 10
)

// Agrees counts attempts on which the source agrees with the others.
func (a Agreement) Agrees() int   { return a.Hits + a.Rejects }
func (a Agreement) Compared() int { return a.Good + a.Bad }

// trusted returns a source's weight from 0 (chance) to 1 (the prior's rates).
func (a Agreement) trusted() float64 {
	const expected = 2*expectedRate - 1
	return min(1, max(0, (a.GoodRate+a.BadRate-1)/expected))
}

// learnAgreement compares each source with the others, except people and severity.
func (c *checks) learnAgreement() {
	c.trust = fullTrust
	for p := verifierPlace; p < sourceCount; p++ {
		a := Agreement{Cut: c.cut(p)}
		for i := range c.rows {
			r := &c.rows[i]
			s := r.set[p]
			if !r.believed(p) || r.Facts.unrewarded() != "" {
				continue
			}
			others, _, _ := r.others(p)
			switch {
			case others == nil:
			case *others >= failedBelow:
				a.Good++
				if s.Value >= a.Cut {
					a.Hits++
				}
			default:
				a.Bad++
				if s.Value < a.Cut {
					a.Rejects++
				}
			}
		}
		rate := func(right, all int) float64 {
			return (expectedCount*expectedRate + float64(right)) / float64(expectedCount+all)
		}
		a.GoodRate, a.BadRate = rate(a.Hits, a.Good), rate(a.Rejects, a.Bad)
		c.agree[p], c.trust[p] = a, a.trusted()
	}
}

// cut returns the middle of a source's scale, from its 10th to its 90th percentile. Verifier and checks have two
// values.
func (c *checks) cut(p int) float64 {
	if p == verifierPlace || p == ciPlace {
		return failedBelow
	}
	var values []float64
	for i := range c.rows {
		r := &c.rows[i]
		if r.believed(p) {
			values = append(values, r.set[p].Value)
		}
	}
	if len(values) == 0 {
		return failedBelow
	}
	slices.Sort(values)
	return (stat.Quantile(0.1, stat.Empirical, values, nil) + stat.Quantile(0.9, stat.Empirical, values, nil)) / 2
}
