package learning

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const maxNamed = 12

// streak is a run of equal values of one source; rows are their positions.
type streak struct {
	value float64
	basis string
	rows  []int
	given map[float64]int // how often the source gave each value, including the run
	all   int
}

// A run of at least ten equal values is suspicious if the source's usual distribution makes it rarer than one in a
// thousand. Ten equal values at even odds have a chance of 1 in 1,024.
const (
	stuckAfter = 10
	surprising = 6.9 // natural logarithm of 1,000
)

// repeats finds sources that repeat one value, for all backends or for one. Trajectory and journal also need equal
// bases. For the verifier and CI, only failures on two or more backends count. People and severity are never stuck.
func (c *checks) repeats(i int) {
	r := &c.rows[i]
	own := c.streaks[r.Backend]
	if own == nil {
		own = &[sourceCount]streak{}
		c.streaks[r.Backend] = own
	}
	for p := 2; p < sourceCount; p++ {
		s := r.set[p]
		if !s.usable() {
			continue
		}
		c.everybody[p].extend(i, s)
		own[p].extend(i, s)
		for _, k := range []*streak{&c.everybody[p], &own[p]} {
			if k.odd() && !c.plausible(s, k.rows) {
				c.stuck(p, s, k.rows)
				break
			}
		}
	}
}

func (k *streak) extend(i int, s *Signal) {
	if s.Value != k.value || s.Basis != k.basis {
		k.value = s.Value
		k.basis = s.Basis
		k.rows = k.rows[:0]
	}
	if k.given == nil {
		k.given = map[float64]int{}
	}
	k.rows = append(k.rows, i)
	k.given[s.Value]++
	k.all++
}

// surprise returns the cross-entropy of the run under the source's usual distribution, in nats. Without a history it
// assumes even odds, and four to one for 0 and 1, since some sources only pass or fail.
func (k *streak) surprise() float64 {
	n := len(k.rows)
	same, all := float64(k.given[k.value]-n), float64(k.all-n)
	if k.value == 0 || k.value == 1 {
		return float64(n) * -math.Log((same+4)/(all+5))
	}
	return float64(n) * -math.Log((same+1)/(all+2))
}

func (k *streak) odd() bool { return len(k.rows) >= stuckAfter && k.surprise() > surprising }

// stuck rejects a source's streak; the last row gets the violation.
func (c *checks) stuck(p int, s *Signal, rows []int) {
	for n := len(rows) - 1; n >= 0 && c.rows[rows[n]].aside[p] != isStuck; n-- {
		c.rows[rows[n]].aside[p] = isStuck
	}
	r := &c.rows[rows[len(rows)-1]]
	c.found = append(c.found, Violation{
		Source:  s.Source,
		Check:   Stuck,
		Attempt: r.ID,
		At:      r.At,
		Reason:  fmt.Sprintf("%s gave %.2f %d times in a row: %s", s.Source, s.Value, len(rows), c.named(rows)),
	})
}

// plausible reports whether a verifier's streak may be real.
func (c *checks) plausible(s *Signal, rows []int) bool {
	switch {
	case s.Source != VerifierSource && s.Source != CISource:
		return false
	case s.Value >= failedBelow:
		return true
	}
	first := c.rows[rows[0]].Backend
	return !slices.ContainsFunc(rows, func(j int) bool { return c.rows[j].Backend != first })
}

// dayOf has one source's answers within the last day.
type dayOf struct {
	answers  []int // row positions, oldest first
	failed   []int
	violated time.Time // time of the last violation
}

// availability finds sources that fail too often. Their values do not count until they answer again: the remaining
// values are a biased sample. It records one violation a day.
func (c *checks) availability(i int) {
	r := &c.rows[i]
	yesterday := r.At.Add(-24 * time.Hour)
	old := func(j int) bool { return !c.rows[j].At.After(yesterday) }
	for p := 2; p < sourceCount; p++ {
		s := r.set[p]
		if !s.failed() && !s.usable() {
			continue
		}
		d := &c.days[p]
		d.answers = slices.DeleteFunc(append(d.answers, i), old)
		d.failed = slices.DeleteFunc(d.failed, old)
		if s.Failed {
			d.failed = append(d.failed, i)
		}
		if !d.unavailable() {
			continue
		}
		r.aside[p] = cmp.Or(r.aside[p], isUnavailable)
		if d.violated.After(yesterday) {
			continue
		}
		d.violated = r.At
		last := &c.rows[d.failed[len(d.failed)-1]]
		c.found = append(c.found, Violation{
			Source:  s.Source,
			Check:   Unavailable,
			Attempt: r.ID,
			At:      r.At,
			Reason: fmt.Sprintf("%s failed %d of %d times within a day, last with: %s: %s",
				s.Source, len(d.failed), len(d.answers), last.set[p].why(), c.named(d.failed)),
		})
	}
}

func (d *dayOf) unavailable() bool {
	return len(d.answers) >= minAsked && unavailableOf*len(d.failed) > len(d.answers)
}

func (c *checks) named(rows []int) string {
	var names []string
	if len(rows) > maxNamed {
		rows, names = rows[len(rows)-maxNamed:], append(names, "…")
	}
	for _, j := range rows {
		names = append(names, c.rows[j].ID)
	}
	return strings.Join(names, ", ")
}

// SourceHealth is a source's coverage and validity in the last seven days. A source that always gives the same value
// has full coverage.
type SourceHealth struct {
	Source SignalSource `json:"source"`
	// Attempts counts gradable attempts, Values those with a value, Failed the source's failures.
	Attempts int     `json:"attempts"`
	Values   int     `json:"values"`
	Failed   int     `json:"failed"`
	Coverage float64 `json:"coverage"` // Values ÷ Attempts; 0 without attempts
	// Valid is the share of values without a broken rule; meaningless without Values.
	Valid      float64     `json:"valid"`
	Violations []Violation `json:"violations,omitempty"` // in the last seven days, oldest first
	// Degraded means more than two violations: learning ignores the source until they expire.
	Degraded  bool      `json:"degraded"`
	Agreement Agreement `json:"agreement"` // with people and the verifier, over all rows; zero for people and severity
	Trust     float64   `json:"trust"`     // the factor of the source's weight
	Reason    string    `json:"reason,omitempty"`
}

// Health reports on all sources, in order of trust.
func (l Learned) Health() []SourceHealth {
	since := l.now.Add(-degradedFor)
	all := make([]SourceHealth, 0, sourceCount)
	for p := range sources {
		h := SourceHealth{Source: sources[p].name, Agreement: l.agree[p], Trust: l.trust[p]}
		for _, v := range l.found {
			if v.Source == h.Source && v.At.After(since) {
				h.Violations = append(h.Violations, v)
			}
		}
		sound := 0
		for i := range l.rows {
			r := &l.rows[i]
			if r.At.After(since) && h.count(r, p) {
				sound++
			}
		}
		h.Coverage = float64(h.Values) / float64(max(1, h.Attempts))
		h.Valid = float64(sound) / float64(max(1, h.Values))
		h.Degraded = len(h.Violations) > degradedAbove && h.Source != PeopleSource
		if h.Degraded {
			h.Reason = degradedWhy(h.Violations)
		}
		all = append(all, h)
	}
	return all
}

// count counts a row, and reports whether the source gave a valid value.
func (h *SourceHealth) count(r *checkedRow, p int) (sound bool) {
	if r.Facts.unrewarded() != "" {
		return false
	}
	h.Attempts++
	s := r.set[p]
	switch {
	case s.failed():
		h.Failed++
		return false
	case !s.usable():
		return false
	}
	h.Values++
	switch r.aside[p] {
	case "", isDegraded:
		return !slices.ContainsFunc(h.Violations, func(v Violation) bool { return v.Attempt == r.ID })
	}
	return false
}

func degradedWhy(found []Violation) string {
	var names []string
	for i := len(found) - 1; i >= 0 && len(names) < maxNamed; i-- {
		name := fmt.Sprintf("%s (%s)", found[i].Attempt, found[i].Check)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Sprintf("%d violations in %d days, more than %d; newest first: %s",
		len(found), int(degradedFor/(24*time.Hour)), degradedAbove, strings.Join(names, ", "))
}
