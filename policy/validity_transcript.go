package policy

import (
	"fmt"
	"slices"
)

// transcript checks that the transcript of a row is whole and its own. What is
// wrong with it is charged to every source that reads it.
func (c *checks) transcript(i int) {
	r := &c.rows[i]
	t := r.Facts.Transcript
	if t == nil {
		return
	}
	if why := c.foreign(r); why != "" {
		c.chargeReaders(r, ForeignTranscript, why)
	}
	c.shared(i)
	// An attempt that failed at once has a short transcript, too; only one that
	// did something must have more.
	if t.Bytes < minTranscript && (r.Facts.Changed || r.Facts.Commits > 0) {
		c.chargeReaders(r, StubTranscript, fmt.Sprintf("the transcript is a stub of %d bytes; those of attempts that change something have more than %d", t.Bytes, minTranscript))
	}
}

// chargeReaders charges those that read the transcript and said something; the
// trajectory, which is read from nothing else, in any case.
func (c *checks) chargeReaders(r *checkedRow, check Check, why string) {
	for _, source := range []SignalSource{TrajectorySource, SeveritySource, JournalSource} {
		if source == TrajectorySource || r.set[source.place()].usable() {
			c.charge(r, Violation{Source: source, Check: check, Reason: why})
		}
	}
}

// foreign says why the transcript of a row cannot be its own by what it says
// itself; empty when nothing speaks against it.
func (c *checks) foreign(r *checkedRow) string {
	f := &r.Facts
	t := f.Transcript
	switch {
	case f.Session != "" && t.Session != "" && t.Session != f.Session:
		return fmt.Sprintf("the transcript is of session %s, which belongs to %s", t.Session, c.owner(t.Session))
	case !t.First.IsZero() && !f.StartedAt.IsZero() && t.First.Before(f.StartedAt.Add(-clockSlack)):
		return fmt.Sprintf("the transcript starts at %s, before the attempt (%s)", clock(t.First), clock(f.StartedAt))
	case !t.Last.IsZero() && !f.EndedAt.IsZero() && t.Last.After(f.EndedAt.Add(clockSlack)):
		return fmt.Sprintf("the transcript ends at %s, after the attempt (%s)", clock(t.Last), clock(f.EndedAt))
	}
	return ""
}

// owner names the attempt whose session it is.
func (c *checks) owner(session string) string {
	for i := range c.rows {
		if c.rows[i].Facts.Session == session {
			return c.rows[i].ID
		}
	}
	return "another attempt"
}

// shared finds rows that ran at the same time as row i and have a transcript of
// the same session. Only the one whose session is known to be that keeps it; one
// attempt after the other may resume a session. Rows are in the order of their
// ends, so those before i are looked at until one ended before i started.
func (c *checks) shared(i int) {
	r := &c.rows[i]
	session := r.Facts.Transcript.Session
	if session == "" || r.Facts.StartedAt.IsZero() {
		return
	}
	for j := i - 1; j >= 0 && c.rows[j].At.After(r.Facts.StartedAt); j-- {
		other := &c.rows[j]
		wrote := other.Facts.Transcript != nil && other.Facts.Transcript.Session == session
		if wrote || other.Facts.Session == session {
			c.claimed(r, other)
		}
		if wrote && other.Facts.unrewarded() == "" {
			c.claimed(other, r)
		}
	}
}

// claimed charges a row whose transcript's session is another row's as well,
// unless it is known to be its own and not the other's, or has been charged.
func (c *checks) claimed(r, other *checkedRow) {
	session := r.Facts.Transcript.Session
	own, others := r.Facts.Session == session, other.Facts.Session == session
	if own && !others || slices.ContainsFunc(r.broken, func(v Violation) bool { return v.Check == ForeignTranscript }) {
		return
	}
	c.chargeReaders(r, ForeignTranscript, fmt.Sprintf("the transcript of session %s is also that of %s, which ran at the same time", session, other.ID))
}
