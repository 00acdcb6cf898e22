package learning

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The numbers of the checks. That of stuck, the share of unavailable and the
// number and days of degraded were given; the others are our choice.
const (
	// floorGrade is the highest grade that says "worthless": edit loops grade up
	// to 0.08, and no source that Pawl computes goes this low without cause.
	floorGrade  = 0.1
	topGrade    = 0.95 // the lowest grade that says "flawless"
	failedBelow = 0.5  // where a verifier says that it failed
	// minTranscript is the smallest transcript of an attempt that changed
	// something, in bytes. The shortest recorded stream of one has 849.
	minTranscript = 512
	stuckAfter    = 10 // how many equal values in a row make a source stuck
	// unavailableOf is 1 ÷ the share of failures in a day that is too much, minAsked how many questions that
	// takes: below ten, one or two are more than 20 %.
	unavailableOf = 5
	minAsked      = 10
	// degradedAbove violations within degradedFor degrade a source.
	degradedAbove = 2
	degradedFor   = 7 * 24 * time.Hour
)

// checks goes through the rows once, in order, and then decides what is learned.
type checks struct {
	*Learned
	everybody [sourceCount]streak             // of equal values, over all backends
	streaks   map[string]*[sourceCount]streak // by backend
	days      [sourceCount]dayOf
}

func (c *checks) run() {
	for i := range c.rows {
		r := &c.rows[i]
		if r.Facts.unrewarded() != "" {
			continue // it is not graded, so no source is asked
		}
		c.values(r)
		c.transcript(r)
		c.repeats(i)
		c.availability(i)
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return a.At.Compare(b.At) })
	c.decide()
}

// charge records a violation that quarantines the row.
func (c *checks) charge(r *checkedRow, v Violation) {
	v.Attempt = r.ID
	if v.At.Before(r.At) {
		v.At = r.At
	}
	r.broken = append(r.broken, v)
	c.found = append(c.found, v)
}

func (c *checks) values(r *checkedRow) {
	idle := !r.Facts.Changed && r.Facts.Commits == 0
	for p := range r.set {
		s := r.set[p]
		switch {
		case s == nil || !s.Known:
		case s.Failed:
			c.charge(r, Violation{Source: s.Source, Check: FailedAnswer,
				Reason: fmt.Sprintf("%s failed (%s) and gave %.2f nevertheless", s.Source, s.why(), s.Value)})
		case !s.usable():
		case s.Value <= floorGrade && p > 0:
			if against, at := r.against(s); against != "" {
				c.charge(r, Violation{Source: s.Source, Check: FloorWithWork, At: at,
					Reason: fmt.Sprintf("%s gave %.2f although %s", s.Source, s.Value, against)})
			}
		case s.Value >= topGrade && idle:
			v := Violation{Source: s.Source, Check: TopWithoutChange, Attempt: r.ID, At: r.At,
				Reason: fmt.Sprintf("%s gave %.2f although nothing changed", s.Source, s.Value)}
			if p == 0 {
				// People spoke of the pull request, which this attempt added nothing to.
				r.broken = append(r.broken, v)
				continue
			}
			c.charge(r, v)
		}
	}
}

// against says what speaks against a floor grade, if anything; since is zero where that was known at the end. A
// merge or an approval always does, a passing verifier where others give the floor, pushed commits against
// opinions only, unless the verifier failed or the edits went in circles.
func (r *checkedRow) against(s *Signal) (what string, since time.Time) {
	if word := r.set[0]; word != nil && word.Value > failedBelow {
		return "people did this: " + string(word.Kind), word.At
	}
	measured := s.Source == VerifierSource || s.Source == CISource
	var passed, failed bool
	for _, p := range []int{VerifierSource.place(), CISource.place()} {
		if v := r.set[p]; v.usable() {
			passed = passed || v.Value >= topGrade
			failed = failed || v.Value < failedBelow
		}
	}
	switch {
	case measured || failed:
		return "", since
	case passed:
		return "the verifier passed", since
	case s.Source == SeveritySource || r.set[SeveritySource.place()].usable():
		return "", since
	case r.Facts.Commits > 0:
		if r.Facts.Commits == 1 {
			return "1 commit was pushed", since
		}
		return fmt.Sprintf("%d commits were pushed", r.Facts.Commits), since
	}
	return "", since
}

// decide says for each row which sources are not believed, and what its reward is.
func (c *checks) decide() {
	var recent [sourceCount]int
	from, to := 0, 0
	for i := range c.rows {
		r := &c.rows[i]
		for ; to < len(c.found) && c.found[to].At.Before(r.At); to++ {
			recent[c.found[to].Source.place()]++
		}
		for ; from < to && !c.found[from].At.After(r.At.Add(-degradedFor)); from++ {
			recent[c.found[from].Source.place()]--
		}
		for p := 1; p < sourceCount; p++ { // people are never degraded
			if recent[p] > degradedAbove {
				r.aside[p] = cmp.Or(r.aside[p], isDegraded)
			}
		}
		if grade, _, _ := r.grade(&r.set, &r.aside); grade.Known && !r.quarantined() {
			r.reward, r.weight, r.learnt = grade.Value, 1, true
			if grade.By == SeveritySource {
				r.weight = max(1, r.set[SeveritySource.place()].Weight)
			}
		}
	}
}

// quarantined reports whether something is implausible that neither people's word settles nor comes from a
// source that is not believed. No word settles that nothing changed.
func (r *checkedRow) quarantined() bool {
	return slices.ContainsFunc(r.broken, func(v Violation) bool { return !r.settled(v) })
}

func (r *checkedRow) settled(v Violation) bool {
	if v.Source == PeopleSource {
		return false
	}
	return r.set[0] != nil || r.aside[v.Source.place()] != ""
}

// reasons say why a row with a grade is not learned from, each once; nil for nothing. Sources that failed are
// named as well: both are needed to see what happened.
func (r *checkedRow) reasons() []string {
	var all []string
	say := func(reason string) {
		if !slices.Contains(all, reason) {
			all = append(all, reason)
		}
	}
	for _, v := range r.broken {
		if !r.settled(v) {
			say(v.Reason)
		}
	}
	if !r.learnt && len(all) == 0 {
		if grade, _, _ := r.grade(&r.set, &aside{}); grade.Known {
			for p, s := range r.set {
				if s.usable() && r.aside[p] != "" {
					say(fmt.Sprintf("%s: %s", s.Source, r.aside[p]))
				}
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	for _, s := range r.set {
		if s != nil && s.Failed && !s.Known {
			say(fmt.Sprintf("%s gave no grade: %s", s.Source, s.why()))
		}
	}
	return all
}

// transcript checks that a row's transcript is whole; every source that reads it is charged. An attempt that
// failed at once has a short one, too.
func (c *checks) transcript(r *checkedRow) {
	if t := r.Facts.Transcript; t == nil || t.Bytes >= minTranscript || !r.Facts.Changed && r.Facts.Commits == 0 {
		return
	}
	why := fmt.Sprintf("the transcript is a stub of %d bytes; those of attempts that change something have more than %d", r.Facts.Transcript.Bytes, minTranscript)
	for _, source := range []SignalSource{TrajectorySource, SeveritySource, JournalSource} {
		if source == TrajectorySource || r.set[source.place()].usable() {
			c.charge(r, Violation{Source: source, Check: StubTranscript, Reason: why})
		}
	}
}
