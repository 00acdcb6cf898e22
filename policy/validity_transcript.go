package policy

import "fmt"

// transcript checks that the transcript of a row is whole and its own. What is
// wrong with it is charged to every source that reads it.
func (c *checks) transcript(i int) {
	r := &c.rows[i]
	t := r.Facts.Transcript
	if t == nil {
		return
	}
	if why := c.foreign(i); why != "" {
		c.chargeReaders(r, ForeignTranscript, why)
	}
	if t.Bytes < minTranscript {
		c.chargeReaders(r, StubTranscript, fmt.Sprintf("the transcript is a stub of %d bytes; the shortest real ones have more than %d", t.Bytes, minTranscript))
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

// foreign says why the transcript of a row cannot be its own; empty when nothing
// speaks against it.
func (c *checks) foreign(i int) string {
	f := c.rows[i].Facts
	t := f.Transcript
	switch {
	case f.Session != "" && t.Session != "" && t.Session != f.Session:
		owner := "another attempt"
		if j := c.owner(i, t.Session); j >= 0 {
			owner = c.rows[j].ID
		}
		return fmt.Sprintf("the transcript is of session %s, which belongs to %s", t.Session, owner)
	case !t.First.IsZero() && !f.StartedAt.IsZero() && t.First.Before(f.StartedAt.Add(-clockSlack)):
		return fmt.Sprintf("the transcript starts at %s, before the attempt (%s)", clock(t.First), clock(f.StartedAt))
	case !t.Last.IsZero() && !f.EndedAt.IsZero() && t.Last.After(f.EndedAt.Add(clockSlack)):
		return fmt.Sprintf("the transcript ends at %s, after the attempt (%s)", clock(t.Last), clock(f.EndedAt))
	case t.Session != "":
		if j := c.shares(i); j >= 0 {
			return fmt.Sprintf("the transcript of session %s is also that of %s, which ran at the same time", t.Session, c.rows[j].ID)
		}
	}
	return ""
}

// owner is the row that ran at the same time and whose session it is; -1 for
// none.
func (c *checks) owner(i int, session string) int {
	return c.beside(i, func(j int) bool { return c.rows[j].Facts.Session == session })
}

// shares is a row that ran at the same time and has a transcript of the same
// session, unless that session is known to be row i's and not the other's. One
// attempt after the other may resume a session.
func (c *checks) shares(i int) int {
	f := c.rows[i].Facts
	return c.beside(i, func(j int) bool {
		other := c.rows[j].Facts
		if other.Transcript == nil || other.Transcript.Session != f.Transcript.Session {
			return false
		}
		return f.Session == "" || other.Session == "" || other.Session == f.Session
	})
}

// beside gives the nearest row that ran at the same time as row i and is as
// asked for; -1 for none. Rows are in the order of their ends, so those before
// it are looked at until one ended before i started.
func (c *checks) beside(i int, asked func(j int) bool) int {
	start, end := c.rows[i].Facts.StartedAt, c.rows[i].At
	if start.IsZero() {
		return -1
	}
	for j := i - 1; j >= 0 && c.rows[j].At.After(start); j-- {
		if asked(j) {
			return j
		}
	}
	for j := i + 1; j < len(c.rows) && c.rows[j].At.Before(end.Add(longestAttempt)); j++ {
		if s := c.rows[j].Facts.StartedAt; !s.IsZero() && s.Before(end) && asked(j) {
			return j
		}
	}
	return -1
}
