package learning

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The numbers of the checks. The share of unavailable and the number and days of
// degraded were given; the others are our choice.
const (
	// floorGrade is the highest grade that says "worthless": edit loops grade up
	// to 0.08, and no source that Pawl computes goes this low without cause.
	floorGrade  = 0.1
	topGrade    = 0.95 // the lowest grade that says "flawless"
	failedBelow = 0.5  // where a verifier says that it failed
	// minTranscript is the smallest transcript of an attempt that changed
	// something, in bytes. The shortest recorded stream of one has 849.
	minTranscript = 512
	// unavailableOf is 1 ÷ the share of failures in a day that is too much, minAsked how many questions that
	// takes: below ten, one or two are more than 20 %.
	unavailableOf = 5
	minAsked      = 10
	// degradedAbove violations within degradedFor degrade a source.
	degradedAbove = 2
	degradedFor   = 7 * 24 * time.Hour
	// maxFloors is how many of a source's last floor grades tell whether they are to be believed.
	maxFloors = 20
)

// checks goes through the rows once, in order, and then decides what is learned.
type checks struct {
	*Learned
	everybody [sourceCount]streak             // of equal values, over all backends
	streaks   map[string]*[sourceCount]streak // by backend
	days      [sourceCount]dayOf
	floors    [sourceCount][]bool // of the floor grades that others spoke of, whether they confirmed them
}

func (c *checks) run() {
	for i := range c.rows {
		r := &c.rows[i]
		if r.Facts.unrewarded() != "" {
			continue // it is not graded, so no source is asked
		}
		c.transcript(r)
		c.values(r)
		c.repeats(i)
		c.availability(i)
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return a.At.Compare(b.At) })
	c.degrade()
	c.learnAgreement()
	c.decide()
}

// charge records a violation, for which the source is set aside at this row.
func (c *checks) charge(r *checkedRow, v Violation) {
	v.Attempt = r.ID
	if v.At.Before(r.At) {
		v.At = r.At
	}
	r.broken = append(r.broken, v.Reason)
	c.found = append(c.found, v)
}

func (c *checks) values(r *checkedRow) {
	idle := !r.Facts.Changed && r.Facts.Commits == 0
	for p := range r.set {
		s := r.set[p]
		switch {
		case !s.usable() || r.aside[p] != "":
		case s.Value <= floorGrade && p > 0:
			c.floor(r, p)
		case s.Value >= topGrade && idle:
			r.aside[p] = isUnfounded
			why := fmt.Sprintf("%s gave %.2f although nothing changed", s.Source, s.Value)
			if p == 0 { // people spoke of the pull request, which this attempt added nothing to
				r.broken = append(r.broken, why)
			} else {
				c.charge(r, Violation{Source: s.Source, Check: TopWithoutChange, Reason: why})
			}
		}
	}
}

// floor believes a floor grade unless the source's last ones, this one with them, are more often contradicted by others
// than confirmed. What the attempt itself did, such as a push, is no evidence of its worth.
func (c *checks) floor(r *checkedRow, p int) {
	others, what, since := r.others(p)
	if others != nil {
		c.floors[p] = append(c.floors[p], *others < failedBelow)
		c.floors[p] = c.floors[p][max(0, len(c.floors[p])-maxFloors):]
	}
	balance := 0
	for _, confirmed := range c.floors[p] {
		if confirmed {
			balance++
		} else {
			balance--
		}
	}
	if balance >= 0 {
		return
	}
	r.aside[p] = isContradicted
	if s := r.set[p]; others != nil && *others >= failedBelow {
		c.charge(r, Violation{Source: s.Source, Check: FloorWithWork, At: since, Reason: fmt.Sprintf("%s gave %.2f although %s", s.Source, s.Value, what)})
	}
}

// others is what those say of the work who are independent of a source: people, else the verifier and the checks of
// others where they agree; nil where they are silent. since is when that was known, zero for the attempt's end.
func (r *checkedRow) others(p int) (value *float64, what string, since time.Time) {
	if word := r.set[0]; p > 0 && word.usable() && r.aside[0] == "" {
		return &word.Value, "people did this: " + string(word.Kind), word.At
	}
	for _, q := range []int{verifierPlace, ciPlace} {
		s := r.set[q]
		if p == q || !s.usable() || r.aside[q] != "" {
			continue
		}
		if value != nil && (*value < failedBelow) != (s.Value < failedBelow) {
			return nil, "", time.Time{}
		}
		if value == nil {
			value, what = &s.Value, "the verifier passed"
			if q == ciPlace {
				what, since = "the checks of others passed", s.At
			}
		}
	}
	return value, what, since
}

// transcript checks that a row's transcript is whole. Where it is not, neither what is read from it is believed nor the
// opinion of a judge that saw as little. An attempt that failed at once has a short one, too.
func (c *checks) transcript(r *checkedRow) {
	if t := r.Facts.Transcript; t == nil || t.Bytes >= minTranscript || !r.Facts.Changed && r.Facts.Commits == 0 {
		return
	}
	why := fmt.Sprintf("the transcript is a stub of %d bytes; those of attempts that change something have more than %d", r.Facts.Transcript.Bytes, minTranscript)
	for p, s := range r.set {
		source := sources[p].name
		if slices.Contains([]SignalSource{PeopleSource, VerifierSource, CISource}, source) {
			continue
		}
		r.aside[p] = isBlind
		if source == TrajectorySource || source != JudgeSource && s.usable() {
			c.charge(r, Violation{Source: source, Check: StubTranscript, Reason: why})
		}
	}
}

// degrade sets sources aside that broke too many rules in the days before a row.
func (c *checks) degrade() {
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
	}
}

// decide says what each row's reward is. One that rests on sources which agree little with people and the verifier
// counts less.
func (c *checks) decide() {
	for i := range c.rows {
		r := &c.rows[i]
		g, trusted := r.grade(&r.set, &r.aside, &c.trust)
		if !g.Known || trusted == 0 {
			continue
		}
		r.reward, r.weight, r.learnt = g.Value, trusted, true
		if g.From[0] == SeveritySource {
			r.weight = max(1, r.set[severityPlace].Weight)
		}
	}
}

// reasons say why a row that has signals is not learned from, each once; nil for nothing. Sources that failed are
// named as well: both are needed to see what happened.
func (r *checkedRow) reasons() []string {
	if r.learnt || r.Facts.unrewarded() != "" || !slices.ContainsFunc(r.aside[:], func(why string) bool { return why != "" }) {
		return nil
	}
	var all []string
	say := func(reason string) {
		if !slices.Contains(all, reason) {
			all = append(all, reason)
		}
	}
	for _, why := range r.broken {
		say(why)
	}
	for p, s := range r.set {
		switch {
		case s.usable() && r.aside[p] != "":
			say(fmt.Sprintf("%s gave %.2f: %s", s.Source, s.Value, r.aside[p]))
		case s != nil && s.Failed:
			say(fmt.Sprintf("%s gave no grade: %s", s.Source, s.why()))
		}
	}
	return all
}
