package learning

import (
	"slices"
	"time"
)

// LearnUnchecked is Learn without validation: it trusts every signal. The simulations compare it with Learn to measure the
// benefit of validation.
func LearnUnchecked(rows []Graded, now time.Time) Learned {
	l := Learned{rows: ordered(rows, now), now: now, trust: fullTrust}
	for i := range l.rows {
		r := &l.rows[i]
		g, _ := r.grade(&r.set, &aside{}, &fullTrust)
		r.reward, r.weight, r.learnt = g.Value, 1, g.Known
	}
	l.group()
	return l
}

// Violations returns all violations in the rows, oldest first.
func (l Learned) Violations() []Violation { return slices.Clone(l.found) }

// SignalSources returns all sources, in order of trust.
func SignalSources() []SignalSource {
	var all []SignalSource
	for _, s := range sources {
		all = append(all, s.name)
	}
	return all
}

// Weight is the weight of a source's value in a grade. It is 0 for a source that decides alone.
func (s SignalSource) Weight() float64 { return sources[s.place()].weight }

// Rewarded reports whether the grade is known and passed validation.
func (j Judged) Rewarded() bool { return j.Grade.Known && len(j.Quarantine) == 0 }
