package agent

import (
	"time"
)

// Session is what a CLI's session file tells beyond its output. The agent can
// write that file, as it can print anything, so it is believed as far as the
// output is and no further.
type Session struct {
	// Ending is the class that the file's own error code names, empty where it
	// names none. Code is that code, Failure the message beside it.
	Ending  Ending
	Code    string
	Failure string
	// Windows are the provider's usage windows as last told.
	Windows []Window
	// Tokens are those of the last turn, nil where they are not told. The
	// output of a continued session counts the whole session.
	Tokens *Tokens
}

// Window is one usage window of a plan.
type Window struct {
	UsedPercent float64
	ResetsAt    time.Time
}

// Refine corrects a report by the session file: the error code beats the
// wording of the message, and the exact reset beats the printed minute. An
// ending that the output or Pawl itself settled otherwise stays.
func (r *Report) Refine(s Session, now time.Time) {
	if s.Tokens != nil {
		r.Tokens = *s.Tokens
	}
	if r.Ending == Completed || r.Ending == TimedOut || r.Ending == NoAnswer && r.final || r.Killed && !r.final {
		return
	}
	message := s.Failure
	if message == "" {
		message = r.Failure
	}
	if s.Ending != "" && s.Ending != r.Ending {
		// The structured status of a short refusal does not undo a long wait.
		if !(s.Ending == RateLimited && r.Ending == UsageLimit) {
			r.Ending = s.Ending
			r.because("the session file names the error " + s.Code)
		}
	}
	if r.Failure == "" {
		r.Failure = message
	}
	var resets *time.Time
	source := SourceNone
	if r.Limit != nil && r.Limit.ResetsAt != nil {
		resets, source = r.Limit.ResetsAt, r.Limit.Source
	}
	if r.Ending == UsageLimit {
		if exact := s.resetsAt(resets); exact != nil {
			resets, source = exact, SourceStructured
			r.because("the session file tells the reset: " + exact.UTC().Format(time.RFC3339))
		}
	}
	if r.Limit != nil && r.Limit.Message != "" {
		message = r.Limit.Message
	}
	r.setLimit(shorten(message, maxText), resets, source, now)
}

// resetsAt is the time at which the last used-up window opens again. Without a
// used-up window it is the one whose minute the message names.
func (s Session) resetsAt(named *time.Time) *time.Time {
	var at *time.Time
	for _, w := range s.Windows {
		if w.UsedPercent >= 100 && (at == nil || w.ResetsAt.After(*at)) {
			at = &w.ResetsAt
		}
	}
	if at != nil || named == nil {
		return at
	}
	for _, w := range s.Windows {
		if w.ResetsAt.Truncate(time.Minute).Equal(*named) {
			return &w.ResetsAt
		}
	}
	return nil
}
