package agent

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Session has data of a CLI's session file in addition to its output. The agent can write the file, so it is trusted
// no more than the output.
type Session struct {
	// Ending is the class of the file's error Code; empty for none. Failure is the error's message.
	Ending  policy.Ending
	Code    string
	Failure string
	Windows []policy.Window // the provider's last usage windows
	Tokens  *policy.Tokens  // the last turn's; nil if unknown. The output of a continued session counts all turns.
}

// Refine corrects a report by the session file: an error code overrides wording, and an exact reset overrides a printed
// minute. Refine keeps endings that the file cannot improve.
func (r *Report) Refine(s Session, now time.Time) {
	if s.Tokens != nil {
		r.Tokens = *s.Tokens
	}
	if r.settled() {
		return
	}
	message := cmp.Or(s.Failure, r.Failure)
	if r.correctedBy(s.Ending) {
		r.end(s.Ending, "the session file names the error "+s.Code)
		r.named = true
	}
	r.Failure = cmp.Or(r.Failure, message)
	byOutput := cmp.Or(r.Limit, &policy.Limit{})
	resets, source := byOutput.ResetsAt, byOutput.Source
	if r.Ending == policy.UsageLimit {
		if exact := s.resetsAt(resets); !exact.IsZero() {
			resets, source = exact, policy.SourceStructured
			r.because("the session file gives the reset: " + exact.UTC().Format(time.RFC3339))
		}
	}
	r.setLimit(Shorten(cmp.Or(byOutput.Message, message), MaxText), resets, source, now)
}

// settled reports whether no session file can improve the ending.
func (r *Report) settled() bool {
	switch r.Ending {
	case policy.Completed, policy.TimedOut:
		return true
	case policy.NoAnswer:
		return r.final || r.Killed
	default:
		return r.Killed && !r.final
	}
}

// correctedBy reports whether a session file's ending replaces the report's. A rate limit does not replace a usage
// limit.
func (r *Report) correctedBy(ending policy.Ending) bool {
	switch ending {
	case "", r.Ending:
		return false
	case policy.RateLimited:
		return r.Ending != policy.UsageLimit
	default:
		return true
	}
}

// resetsAt returns the latest reset of an exhausted window, else the window's reset whose minute the message names.
func (s Session) resetsAt(named time.Time) time.Time {
	var at time.Time
	for _, w := range s.Windows {
		if w.Used >= 1 && w.ResetsAt.After(at) {
			at = w.ResetsAt
		}
	}
	if !at.IsZero() || named.IsZero() {
		return at
	}
	for _, w := range s.Windows {
		if w.ResetsAt.Truncate(time.Minute).Equal(named) {
			return w.ResetsAt
		}
	}
	return time.Time{}
}

// ReadSession reads the last turn from the session file. now is the time of reading. CLIs without session files get a
// zero Session. If the file is missing, the error wraps fs.ErrNotExist.
func (a Adapter) ReadSession(home, session string, now time.Time) (s Session, err error) {
	err = a.inSession(home, session, func(f io.Reader) error {
		s, err = a.FoldSession(f, now)
		return err
	})
	return s, err
}

// SessionCalls visits the calls in a session file, which has patches that the output omits. If the file is missing, the
// error wraps fs.ErrNotExist.
func (a Adapter) SessionCalls(home, session, dir string, visit func(Call)) error {
	t := newTally(a, dir)
	t.onCall = visit
	return a.SessionEvents(home, session, t.add)
}

// SessionEvents visits the events of a session file; see SessionCalls.
func (a Adapter) SessionEvents(home, session string, visit func(Event)) error {
	return a.inSession(home, session, func(f io.Reader) error {
		return ReadLines(f, func(line []byte) { a.Parse(line, visit) })
	})
}

func (a Adapter) inSession(home, session string, read func(io.Reader) error) error {
	if a.OpenSession == nil {
		return nil
	}
	f, err := a.OpenSession(home, session)
	if err == nil {
		defer f.Close()
		err = read(f)
	}
	if err != nil {
		return fmt.Errorf("read the session file: %w", err)
	}
	return nil
}
