package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Interval is a mean over the seeds with its 95 % bootstrap interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Cell is one scenario with one number of arms. Regret is counted in attempts
// whose work would have been good with the best fixed arm.
type Cell struct {
	Scenario Scenario `json:"scenario"`
	Arms     int      `json:"arms"`
	// Regret is that of the sampler, Uniform that of choosing evenly.
	Regret  Interval `json:"regret"`
	Uniform Interval `json:"uniform"`
	// Saved is 1 − Regret ÷ Uniform, of the means.
	Saved Interval `json:"saved"`
	// Moving is Saved for the regret against the arm that is best at the time,
	// which differs from the best fixed one where backends drift.
	Moving Interval `json:"moving"`
	// Unchecked is the sampler's regret without validation; nil where nothing is
	// corrupted.
	Unchecked      *Interval `json:"unchecked,omitempty"`
	SavedUnchecked *Interval `json:"saved_unchecked,omitempty"`
	// Loss is what corruption costs with validation, and LossUnchecked without:
	// the part of what the sampler saves over uniform choice on honest signals
	// and the same seeds that is lost. Nil where nothing is corrupted or
	// Stationary was not simulated.
	Loss          *Interval `json:"loss,omitempty"`
	LossUnchecked *Interval `json:"loss_unchecked,omitempty"`
	// MoreRegret is by how much regret grows with validation, and
	// MoreRegretUnchecked without, as a share of the regret on honest signals.
	MoreRegret          *Interval `json:"more_regret,omitempty"`
	MoreRegretUnchecked *Interval `json:"more_regret_unchecked,omitempty"`
	// Curves are the mean cumulative regrets, for the chart.
	Curves Curves `json:"curves"`
}

// Curves are mean cumulative regrets after Step, 2 × Step … attempts.
type Curves struct {
	Step      int       `json:"step"`
	Regret    []float64 `json:"regret"`
	Uniform   []float64 `json:"uniform"`
	Unchecked []float64 `json:"unchecked,omitempty"`
}

// Report is what all cells came to.
type Report struct {
	Attempts  int    `json:"attempts"`
	Seeds     int    `json:"seeds"`
	Resamples int    `json:"resamples"`
	Cells     []Cell `json:"cells"`
}

// resamples of a bootstrap over the seeds, and points of a curve.
const (
	resamples   = 2000
	curvePoints = 50
)

func report(o Options, results []result) Report {
	r := Report{Attempts: o.Attempts, Seeds: o.Seeds, Resamples: resamples}
	find := func(s Scenario, arms int) []result {
		return slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.scenario != s || r.arms != arms })
	}
	for _, s := range o.Scenarios {
		for _, arms := range o.Arms {
			r.Cells = append(r.Cells, measure(s, arms, find(s, arms), find(Stationary, arms)))
		}
	}
	return r
}

// measure adds up the seeds of one cell; honest are the same seeds with honest
// signals, empty when they were not simulated.
func measure(s Scenario, arms int, seeds, honest []result) Cell {
	last := func(curve func(result) []float64, from []result) []float64 {
		all := make([]float64, len(from))
		for i, r := range from {
			all[i] = curve(r)[len(curve(r))-1]
		}
		return all
	}
	checked := last(func(r result) []float64 { return r.checked }, seeds)
	uniform := last(func(r result) []float64 { return r.uniform }, seeds)
	moving, movingUniform := make([]float64, len(seeds)), make([]float64, len(seeds))
	for i, r := range seeds {
		moving[i], movingUniform[i] = r.moving, r.movingUniform
	}
	saved := func(m []float64) float64 { return 1 - m[0]/m[1] }
	c := Cell{Scenario: s, Arms: arms, Regret: over(single, checked), Uniform: over(single, uniform),
		Saved: over(saved, checked, uniform), Moving: over(saved, moving, movingUniform), Curves: curves(seeds)}
	if !s.corrupted() {
		return c
	}
	unchecked := last(func(r result) []float64 { return r.unchecked }, seeds)
	c.Unchecked, c.SavedUnchecked = pointer(over(single, unchecked)), pointer(over(saved, unchecked, uniform))
	if len(honest) == len(seeds) {
		clean := last(func(r result) []float64 { return r.checked }, honest)
		lost := func(m []float64) float64 { return (m[0] - m[1]) / (m[2] - m[1]) }
		more := func(m []float64) float64 { return m[0]/m[1] - 1 }
		c.Loss, c.LossUnchecked = pointer(over(lost, checked, clean, uniform)), pointer(over(lost, unchecked, clean, uniform))
		c.MoreRegret, c.MoreRegretUnchecked = pointer(over(more, checked, clean)), pointer(over(more, unchecked, clean))
	}
	return c
}

func single(m []float64) float64 { return m[0] }

func pointer(i Interval) *Interval { return &i }

// over computes a number from the means of columns over the seeds, with the
// interval that drawing other seeds gives.
func over(number func(means []float64) float64, columns ...[]float64) Interval {
	n := len(columns[0])
	chance := rand.New(rand.NewPCG(1, 0))
	means := make([]float64, len(columns))
	compute := func(row func(int) int) float64 {
		clear(means)
		for i := range n {
			at := row(i)
			for c := range columns {
				means[c] += columns[c][at] / float64(n)
			}
		}
		return number(means)
	}
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = compute(func(int) int { return chance.IntN(n) })
	}
	slices.Sort(drawn)
	return Interval{Mean: compute(func(i int) int { return i }), Low: drawn[resamples/40], High: drawn[resamples-1-resamples/40]}
}

// curves gives the mean curves of the seeds.
func curves(seeds []result) Curves {
	n := len(seeds[0].uniform)
	c := Curves{Step: max(1, n/curvePoints)}
	mean := func(curve func(result) []float64) []float64 {
		var points []float64
		for at := c.Step - 1; at < n; at += c.Step {
			sum := 0.0
			for _, r := range seeds {
				sum += curve(r)[at]
			}
			points = append(points, sum/float64(len(seeds)))
		}
		return points
	}
	c.Regret = mean(func(r result) []float64 { return r.checked })
	c.Uniform = mean(func(r result) []float64 { return r.uniform })
	if seeds[0].unchecked != nil {
		c.Unchecked = mean(func(r result) []float64 { return r.unchecked })
	}
	return c
}

// The aims: the share of uniform choice's regret that sampling must save, and
// the share of what it saves that corrupted signals may cost with validation.
// Both were given.
const (
	leastSaved = 0.40
	mostLost   = 0.10
)

// Missed says which cells miss an aim, by their means; empty when none does.
func (r Report) Missed() []string {
	var missed []string
	for _, c := range r.Cells {
		if c.Saved.Mean < leastSaved {
			missed = append(missed, fmt.Sprintf("%s with %d arms saves %.0f %% of the regret, not %.0f %%", c.Scenario, c.Arms, 100*c.Saved.Mean, 100*leastSaved))
		}
		if c.Loss != nil && c.Loss.Mean >= mostLost {
			missed = append(missed, fmt.Sprintf("%s with %d arms loses %.0f %% to corruption, not less than %.0f %%", c.Scenario, c.Arms, 100*c.Loss.Mean, 100*mostLost))
		}
	}
	return missed
}
