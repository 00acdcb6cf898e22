package learning

import (
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Agreement is how far a source agrees with people, and where they are silent with the verifier and the checks of others,
// in the two parameters of Dawid and Skene: how often it calls good work good, and bad work bad. What it calls good is
// measured on its own scale, so a harsh judge, a generous one and one that only says pass or fail are all as good as any.
type Agreement struct {
	Good     int     `json:"good"` // attempts that the others call good and the source spoke of
	Bad      int     `json:"bad"`
	Hits     int     `json:"hits"`    // good ones that the source calls good
	Rejects  int     `json:"rejects"` // bad ones that it calls bad
	GoodRate float64 `json:"good_rate"`
	BadRate  float64 `json:"bad_rate"` // with what was expected of it before
	Cut      float64 `json:"cut"`      // the lowest value that is called good
}

// What is expected of a source that nobody has compared yet, like so many comparisons of each kind: our choice, which a
// week of attempts outweighs.
const (
	expectedRate  = 0.9
	expectedCount = 10
)

// Agrees is in how many of the Compared attempts the source says what the others say.
func (a Agreement) Agrees() int   { return a.Hits + a.Rejects }
func (a Agreement) Compared() int { return a.Good + a.Bad }

// trusted is how much a source's values weigh, from 0 to 1: its rates as a share of what is expected. At chance that is 0.
func (a Agreement) trusted() float64 {
	const expected = 2*expectedRate - 1
	return min(1, max(0, (a.GoodRate+a.BadRate-1)/expected))
}

// learnAgreement compares each source that is not people's word or a verdict with what the others say.
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

// cut is the middle of the scale that a source uses, from its 10th to its 90th percentile. Verifier and checks have
// two values.
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
