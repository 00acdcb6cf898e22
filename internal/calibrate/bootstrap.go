package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// confidence is the share of resamples that an interval holds.
const confidence = 0.95

// bootstrap draws as many tasks as there are, with replacement, and shows visit
// how often each was drawn and what pairs that makes. It does so for every
// resample; the same seed gives the same draws. visit keeps neither argument.
func (s scale) bootstrap(o Options, visit func(drawn []int, c *counts)) {
	chance := rand.New(rand.NewPCG(o.Seed, 0))
	drawn := make([]int, len(s.tasks))
	c := s.none()
	for range o.Resamples {
		clear(drawn)
		for range s.tasks {
			drawn[chance.IntN(len(drawn))]++
		}
		c.reset()
		for i, n := range drawn {
			c.add(s.tasks[i], n)
		}
		visit(drawn, &c)
	}
}

// spread collects what a number came to in the resamples.
type spread []float64

// add leaves out a resample in which the number does not exist.
func (s *spread) add(v float64) {
	if !math.IsNaN(v) {
		*s = append(*s, v)
	}
}

// interval holds the middle 95 % of the resamples.
func (s spread) interval() Range {
	if len(s) == 0 {
		return unknown()
	}
	slices.Sort(s)
	return Range{Number(quantile(s, (1-confidence)/2)), Number(quantile(s, (1+confidence)/2))}
}

// unknown is the interval of a number that does not exist.
func unknown() Range { return Range{Number(math.NaN()), Number(math.NaN())} }

// share is the interval of a rate over tasks. When none or all of the pairs are
// hit, every resample agrees and seems certain; then the interval is the exact
// binomial one (Clopper and Pearson) with a task as one trial.
func (s spread) share(rate float64, tasks int) Range {
	r := s.interval()
	if !r[0].Known() {
		return r
	}
	beyond := 1 - math.Pow((1-confidence)/2, 1/float64(tasks))
	switch rate {
	case 0:
		r[1] = Number(beyond)
	case 1:
		r[0] = Number(1 - beyond)
	}
	return r
}

// quantile interpolates between the two nearest of the sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
