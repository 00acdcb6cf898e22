// Package calibrate measures on labelled pairs of attempts how well the
// similarity of fingerprints tells a repetition from a different attempt, what
// the threshold in use does, and which one the pairs recommend. It is pure: the
// same pairs, options and seed give the same report.
package calibrate

import (
	"errors"
	"fmt"
	"iter"
	"math"
)

// MaxFPR is the price that a recommended threshold may have: the share of
// different attempts that it calls similar. A false alarm may stop work that
// was getting on, while a missed repetition costs one more attempt, and those
// are bounded elsewhere; so false alarms are bounded first. 5 % is a convention.
const MaxFPR = 0.05

const rule = "the highest true positive rate with at most 5 % false positives; of equals the highest threshold"

// minTasks is how many tasks of either label it takes to show that a threshold
// is better: five coins agree once in 32 throws, which is more than the 2.5 %
// that an interval leaves out below; six agree once in 64.
const minTasks = 6

// ErrNoPairs is the error on input without a pair.
var ErrNoPairs = errors.New("it holds no pairs; write one JSON object a line: " +
	`{"view": "failure", "label": "same", "group": "task-1", "a": "…", "b": "…"}`)

// Options say how to measure. The zero value resamples nothing, so intervals
// are unknown.
type Options struct {
	Threshold float64 // the threshold in use
	Seed      uint64
	Resamples int
}

// Measure reads all pairs and reports on each view that they have. It keeps the
// scores of the pairs, not their texts. Its errors are those of pairs, and
// ErrNoPairs.
func Measure(pairs iter.Seq2[Pair, error], o Options) (Report, error) {
	prints, words, empty := map[string][]scored{}, map[string][]scored{}, map[string]int{}
	for p, err := range pairs {
		if err != nil {
			return Report{}, err
		}
		s := scored{group: p.Group, same: p.Label == Same}
		var known bool
		if s.score, known = byPrint(p.A, p.B); !known {
			empty[p.View]++
		}
		prints[p.View] = append(prints[p.View], s)
		s.score = byTrigrams(p.A, p.B)
		words[p.View] = append(words[p.View], s)
	}
	r := Report{Seed: o.Seed, Resamples: o.Resamples, Rule: rule}
	for _, name := range Views() {
		if len(prints[name]) > 0 {
			v := measure(newScale(prints[name]), newScale(words[name]), o)
			v.View, v.Empty = name, empty[name]
			v.Reservations = v.reservations()
			r.Views = append(r.Views, v)
		}
	}
	if len(r.Views) == 0 {
		return Report{}, ErrNoPairs
	}
	return r, nil
}

// measure reports on one view.
func measure(prints, words scale, o Options) View {
	all := prints.count()
	level := prints.level(o.Threshold)
	v := View{
		N: all.nSame + all.nDiff, Same: all.nSame, Different: all.nDiff,
		Groups: len(prints.tasks), SameGroups: prints.with(true), DifferentGroups: prints.with(false),
		Curve: prints.curve(o), Trigrams: words.curve(o), Current: prints.cut(level, o), HeldOut: prints.heldOut(level, o),
	}
	v.Current.Threshold = Number(o.Threshold)
	if r := v.Recommended; r != nil {
		r.Threshold = settable(r.Threshold)
		r.Threshold95 = Range{settable(r.Threshold95[0]), settable(r.Threshold95[1])}
	}
	return v
}

// settable rounds a similarity of fingerprints down to two decimals, which mean
// the same number of bits: one bit is 1/64, more than a hundredth.
func settable(n Number) Number { return Number(math.Floor(float64(n)*100) / 100) }

// reservations say why the numbers of a view may not be relied on.
func (v View) reservations() []string {
	said := []string{}
	for _, label := range []struct {
		name  string
		tasks int
	}{{Same, v.SameGroups}, {Different, v.DifferentGroups}} {
		switch {
		case label.tasks == 0:
			said = append(said, fmt.Sprintf("no pair is labelled %s, so the curve and the recommendation are unknown", label.name))
		case label.tasks < minTasks:
			said = append(said, fmt.Sprintf("pairs labelled %s: from fewer than %d tasks, too few to show that a threshold is better", label.name, minTasks))
		}
	}
	if v.View == prose {
		said = append(said, "the agent's prose supports a verdict and does not make one, so nothing is set from this view")
	}
	if v.Empty > 0 {
		said = append(said, fmt.Sprintf("pairs with a text that has no words, counted as not similar: %d", v.Empty))
	}
	return said
}
