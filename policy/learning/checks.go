package learning

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// unavailableOf, degradedAbove and degradedFor are requirements; the other numbers are our choice.
const (
	// floorGrade is the highest grade that means "worthless". Edit loops get at most 0.08; no source that Pawl
	// computes goes this low without cause.
	floorGrade  = 0.1
	topGrade    = 0.95 // the lowest grade that means "flawless"
	failedBelow = 0.5  // a lower verifier value is a failure
	// minTranscript is the smallest plausible transcript of an attempt with a change, in bytes. The shortest recorded
	// one has 849.
	minTranscript = 512
	// A source is unavailable if more than 1/unavailableOf of at least minAsked questions in a day failed.
	unavailableOf = 5
	minAsked      = 10
	degradedAbove = 2
	degradedFor   = 7 * 24 * time.Hour
	// maxFloors is how many of a source's last floor grades decide whether its floor grades count.
	maxFloors = 20
)

// checks validates the rows once, in order, and then computes the rewards.
type checks struct {
	*Learned
	everybody [sourceCount]streak // equal values over all backends
	streaks   map[string]*[sourceCount]streak
	days      [sourceCount]dayOf
	floors    [sourceCount][]bool // whether others confirmed the source's floor grades
}

func (c *checks) run() {
	for i := range c.rows {
		r := &c.rows[i]
		if r.Facts.unrewarded() != "" {
			continue // not graded, so no source was asked
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

// charge records a violation. The caller excludes the source's value from this row.
func (c *checks) charge(r *checkedRow, v Violation) {
	v.Attempt = r.ID
	if v.At.Before(r.At) {
		v.At = r.At
	}
	r.broken = append(r.broken, v.Reason)
	c.found = append(c.found, v)
}

// values finds floor grades that others contradict, and top grades without a change.
func (c *checks) values(r *checkedRow) {
	for p := range r.set {
		if !r.believed(p) {
			continue
		}
		s := r.set[p]
		switch {
		case s.Value <= floorGrade && p > 0:
			c.floor(r, p)
		case s.Value >= topGrade && r.Facts.idle():
			c.unfounded(r, p)
		}
	}
}

// believed reports whether a source has a value without an objection.
func (r *checkedRow) believed(p int) bool { return r.set[p].usable() && r.aside[p] == "" }

func (r *checkedRow) disbelieved(p int) bool { return r.set[p].usable() && r.aside[p] != "" }

func (f AttemptFacts) idle() bool { return !f.Changed && f.Commits == 0 }

func (c *checks) unfounded(r *checkedRow, p int) {
	s := r.set[p]
	r.aside[p] = isUnfounded
	why := fmt.Sprintf("%s gave %.2f although nothing changed", s.Source, s.Value)
	if p == 0 { // people graded the pull request, to which this attempt added nothing
		r.broken = append(r.broken, why)
		return
	}
	c.charge(r, Violation{Source: s.Source, Check: TopWithoutChange, Reason: why})
}

// floor accepts a floor grade unless others contradicted the source's last floor grades more often than they confirmed
// them. An attempt's own acts, such as a push, are not evidence.
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
	if others == nil || *others < failedBelow {
		return
	}
	s := r.set[p]
	c.charge(r, Violation{
		Source: s.Source,
		Check:  FloorWithWork,
		At:     since,
		Reason: fmt.Sprintf("%s gave %.2f although %s", s.Source, s.Value, what),
	})
}

// others returns the value from independent sources: people, else the verifier and CI if they agree; nil if there is
// none. since is when the value became known; zero means the attempt's end.
func (r *checkedRow) others(p int) (value *float64, what string, since time.Time) {
	if p > 0 && r.believed(0) {
		word := r.set[0]
		return &word.Value, "people did this: " + string(word.Kind), word.At
	}
	verifier, checks := r.opinion(verifierPlace, p), r.opinion(ciPlace, p)
	switch {
	case verifier == nil && checks == nil:
		return nil, "", time.Time{}
	case verifier == nil:
		return &checks.Value, "other apps' checks passed", checks.At
	case checks != nil && (verifier.Value < failedBelow) != (checks.Value < failedBelow):
		return nil, "", time.Time{}
	}
	return &verifier.Value, "the verifier passed", time.Time{}
}

// opinion returns the believed signal of a source other than p; nil for none.
func (r *checkedRow) opinion(of, p int) *Signal {
	if of == p || !r.believed(of) {
		return nil
	}
	return r.set[of]
}

// transcript checks that a row's transcript is not a stub. Otherwise the sources that read it, and the judge, do not
// count.
func (c *checks) transcript(r *checkedRow) {
	t := r.Facts.Transcript
	if t == nil || r.Facts.idle() {
		return
	}
	if t.Bytes >= minTranscript {
		return
	}
	why := fmt.Sprintf("the transcript is a stub of %d bytes; attempts that change something have at least %d", t.Bytes, minTranscript)
	for p, s := range r.set {
		source := sources[p].name
		var charged bool
		switch source {
		case PeopleSource, VerifierSource, CISource:
			continue // these do not read transcripts
		case TrajectorySource:
			charged = true
		case JudgeSource:
			charged = false
		default:
			charged = s.usable()
		}
		r.aside[p] = isBlind
		if charged {
			c.charge(r, Violation{Source: source, Check: StubTranscript, Reason: why})
		}
	}
}

// degrade rejects sources that broke too many rules in the days before a row.
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

// decide computes each row's reward, weighted by the trust in its sources.
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

// reasons returns why a row with signals has no reward, each reason once; nil for none.
func (r *checkedRow) reasons() []string {
	if r.learnt || r.Facts.unrewarded() != "" {
		return nil
	}
	if r.aside == (aside{}) {
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
		case r.disbelieved(p):
			say(fmt.Sprintf("%s gave %.2f: %s", s.Source, s.Value, r.aside[p]))
		case s.failed():
			say(fmt.Sprintf("%s gave no grade: %s", s.Source, s.why()))
		}
	}
	return all
}
