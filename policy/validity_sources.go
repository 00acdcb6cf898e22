package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// longestAttempt is how long after a row's end an attempt that ran beside it is
// looked for; attempts have time limits of hours.
const longestAttempt = 24 * time.Hour

// maxNamed is how many attempts a reason names.
const maxNamed = 12

// streak is a run of equal values of one source; rows are its positions.
type streak struct {
	value float64
	basis string
	rows  []int
}

// repeats finds sources that give the same value again and again. A judge is
// stuck by its value; trajectory and journal are so only when what they computed
// it from is the same as well. A verifier that passes each time is good news, so
// only failures count, and only over two backends, since one may simply be bad.
// People are never stuck, and severity speaks only where there is a loop.
func (c *checks) repeats(i int) {
	r := &c.rows[i]
	for p := 2; p < sourceCount; p++ {
		s := r.set[p]
		if !s.usable() {
			continue
		}
		k := &c.streaks[p]
		if s.Value != k.value || s.Basis != k.basis || len(k.rows) == 0 {
			k.value, k.basis, k.rows = s.Value, s.Basis, k.rows[:0]
		}
		k.rows = append(k.rows, i)
		if len(k.rows) < stuckAfter || c.plausible(s, k.rows) {
			continue
		}
		for n := len(k.rows) - 1; n >= 0 && !c.rows[k.rows[n]].stuck.has(p); n-- {
			c.rows[k.rows[n]].stuck |= 1 << p
		}
		c.found = append(c.found, Violation{Source: s.Source, Check: Stuck, Attempt: r.ID, At: r.At,
			Reason: fmt.Sprintf("%s gave %.2f %d times in a row: %s", s.Source, s.Value, len(k.rows), c.named(k.rows))})
	}
}

// plausible reports whether a streak of a verifier may be real.
func (c *checks) plausible(s *Signal, rows []int) bool {
	if s.Source != VerifierSource && s.Source != CISource {
		return false
	}
	return s.Value >= failedBelow || !slices.ContainsFunc(rows, func(j int) bool { return c.rows[j].Backend != c.rows[rows[0]].Backend })
}

// dayOf holds how one source answered within the last day.
type dayOf struct {
	asked  []int // positions of rows, oldest first
	failed []int
	said   time.Time // of the last violation
}

// availability finds sources that fail too often. From then on, their values are
// set aside until they answer again: what is left of the answers is no fair
// sample. One violation a day is charged, as there is one cause.
func (c *checks) availability(i int) {
	r := &c.rows[i]
	for p := 2; p < sourceCount; p++ {
		s := r.set[p]
		if s == nil || !s.Failed && !s.usable() {
			continue
		}
		d := &c.days[p]
		old := func(j int) bool { return !c.rows[j].At.After(r.At.Add(-day)) }
		d.asked, d.failed = dropWhile(append(d.asked, i), old), dropWhile(d.failed, old)
		if s.Failed {
			d.failed = append(d.failed, i)
		}
		if len(d.asked) < minAsked || unavailableOf*len(d.failed) <= len(d.asked) {
			continue
		}
		r.unavailable |= 1 << p
		if d.said.IsZero() || !d.said.After(r.At.Add(-day)) {
			d.said = r.At
			last := &c.rows[d.failed[len(d.failed)-1]]
			c.found = append(c.found, Violation{Source: s.Source, Check: Unavailable, Attempt: r.ID, At: r.At,
				Reason: fmt.Sprintf("%s failed %d of %d times within a day, last with: %s: %s",
					s.Source, len(d.failed), len(d.asked), last.set[p].why(), c.named(d.failed))})
		}
	}
}

func dropWhile(list []int, drop func(int) bool) []int {
	for len(list) > 0 && drop(list[0]) {
		list = list[1:]
	}
	return list
}

// named names the attempts of rows, the newest ones if there are many.
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
