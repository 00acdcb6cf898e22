package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SourceHealth is how a source did in the last seven days: whether it spoke
// (coverage), and whether what it said was plausible (validity). The two are
// different things: a source that always gives the same value has full coverage.
type SourceHealth struct {
	Source SignalSource `json:"source"`
	// Attempts is how many attempts could be graded, Values for how many the
	// source gave a value, and Failed how often it was asked and failed.
	Attempts int `json:"attempts"`
	Values   int `json:"values"`
	Failed   int `json:"failed"`
	// Coverage is Values ÷ Attempts; 0 without attempts.
	Coverage float64 `json:"coverage"`
	// Valid is the share of the attempts with a value at which the source broke
	// no rule; it means something only where Values is not 0.
	Valid float64 `json:"valid"`
	// Violations are those of the last seven days, oldest first.
	Violations []Violation `json:"violations,omitempty"`
	// Degraded says that there were more than two; nothing is learned from the
	// source until there are at most two again.
	Degraded bool   `json:"degraded"`
	Reason   string `json:"reason,omitempty"`
}

// Health reports on all sources, in order of trust.
func (l Learned) Health() []SourceHealth {
	since := l.now.Add(-degradedFor)
	all := make([]SourceHealth, 0, sourceCount)
	for p, source := range SignalSources() {
		h := SourceHealth{Source: source}
		for _, v := range l.found {
			if v.Source == source && v.At.After(since) {
				h.Violations = append(h.Violations, v)
			}
		}
		sound := 0
		for i := range l.rows {
			r := &l.rows[i]
			if !r.At.After(since) || r.Facts.unrewarded() != "" {
				continue
			}
			h.Attempts++
			if s := r.set[p]; s != nil && s.Failed {
				h.Failed++
			} else if s.usable() {
				h.Values++
				if !r.stuck.has(p) && !r.unavailable.has(p) && !slices.ContainsFunc(h.Violations, r.brokenBy) {
					sound++
				}
			}
		}
		if h.Attempts > 0 {
			h.Coverage = float64(h.Values) / float64(h.Attempts)
		}
		if h.Values > 0 {
			h.Valid = float64(sound) / float64(h.Values)
		}
		if h.Degraded = len(h.Violations) > degradedAbove && source != PeopleSource; h.Degraded {
			h.Reason = degradedWhy(h.Violations)
		}
		all = append(all, h)
	}
	return all
}

// brokenBy reports whether a violation is of this row.
func (r *checkedRow) brokenBy(v Violation) bool { return v.Attempt == r.ID }

// degradedWhy says what degraded a source and at which attempts.
func degradedWhy(found []Violation) string {
	var names []string
	for i := len(found) - 1; i >= 0 && len(names) < maxNamed; i-- {
		if name := fmt.Sprintf("%s (%s)", found[i].Attempt, found[i].Check); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Sprintf("%d violations in %d days, more than %d; newest first: %s",
		len(found), int(degradedFor/(24*time.Hour)), degradedAbove, strings.Join(names, ", "))
}

// Violations are all violations that the rows hold, oldest first.
func (l Learned) Violations() []Violation { return slices.Clone(l.found) }
