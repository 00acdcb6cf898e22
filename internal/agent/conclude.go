package agent

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// stop is why Pawl itself ended a process; the zero value says that it did not.
type stop struct {
	ending Ending // TimedOut or Killed
	reason string
}

// conclude turns what was read into the report. In order: the stream's final
// event, Pawl's own record of having ended the process, the exit code, the last
// error that was not final, standard error.
func (t *tally) conclude(why stop, now time.Time, zone *time.Location) Report {
	t.settle()
	r := &t.rep
	r.Killed = why.ending != ""
	message := t.decide(why)
	if r.Ending == "" {
		r.Ending = Crashed
	}
	resets, source := t.reset(message, now, zone)
	if r.Ending == RateLimited && resets != nil && resets.Sub(now) > longWait {
		r.Ending = UsageLimit
		r.because("the wait is longer than a short rate limit lasts, so it counts as a usage limit")
	}
	r.setLimit(message, resets, source, now)
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	return *r
}

// decide sets the ending with its reason and returns the message that it was read from.
func (t *tally) decide(why stop) string {
	r := &t.rep
	switch {
	case t.failed != nil:
		t.note(why)
		return t.judge(*t.failed, "the run ended with the error")
	case r.final:
		t.note(why)
		t.finished()
		return ""
	case why.ending != "":
		r.Ending = why.ending
		r.because(why.reason)
		return t.lastNotice()
	case r.ExitKnown && r.Exit.Code == exitTimeout:
		r.Ending = TimedOut
		r.because("exit code 124: the time ran out before a final event")
		return t.lastNotice()
	case r.ExitKnown && fromSignal(r.Exit):
		r.Ending = Killed
		r.because("the process was ended by " + signalName(r.Exit) + " before a final event")
		return t.lastNotice()
	case t.notice.Kind != 0:
		return t.judge(t.notice, "the output ended without a final event; the last error was")
	case r.ExitKnown && r.Exit.Code != 0:
		return t.silentFailure()
	}
	t.unfinished()
	return ""
}

// note records a kill that came after the final event.
func (t *tally) note(why stop) {
	if why.ending != "" {
		t.rep.because(why.reason + ", after the final event")
	}
}

func (t *tally) finished() {
	r := &t.rep
	if t.messages == 0 && r.ToolCalls == 0 {
		r.Ending = NoAnswer
		r.because("the run ended without an error, but the agent said and did nothing")
		return
	}
	r.Ending = Completed
	r.because("the stream ended with its final event")
	if r.ExitKnown && r.Exit.Code != 0 {
		r.because(fmt.Sprintf("the exit code %d came after it and is ignored", r.Exit.Code))
	}
}

// retrying matches codex's wrapper around the error that it retries.
var retrying = regexp.MustCompile(`^Reconnecting\.\.\. (?:\d+/\d+ |waiting for network )?\((.*)\)$`)

// judge classifies an error of the stream.
func (t *tally) judge(e Event, where string) string {
	text := e.Text
	if m := retrying.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	t.rep.Failure = shorten(text, maxText)
	known := e.Ending != ""
	if t.rep.Ending = e.Ending; !known {
		t.rep.Ending, known = classifyFailure(text)
	}
	if known {
		t.rep.because(where + ": " + shorten(text, 300))
	} else {
		t.rep.because("unclassified failure: " + shorten(text, 300))
	}
	return text
}

func (t *tally) lastNotice() string {
	if t.notice.Text != "" {
		t.rep.Failure = shorten(t.notice.Text, maxText)
		t.rep.because("the last error before that was: " + shorten(t.notice.Text, 300))
	}
	return t.notice.Text
}

// unfinished is an exit without an error and without a final event.
func (t *tally) unfinished() {
	r := &t.rep
	switch {
	case t.messages > 0 || r.ToolCalls > 0:
		r.Ending = CutOff
		r.because("the output stops in the middle of the work")
	case t.working:
		r.Ending = Disconnected
		r.because("the output stops after the turn began")
	default:
		r.Ending = NoAnswer
		r.because("the output holds no answer")
	}
}

// harmless matches standard error of a healthy codex.
var harmless = regexp.MustCompile(`(?i)^(?:reading (?:additional )?(?:input|prompt) from stdin\.*|warning: .*|\s*)$`)

// silentFailure is a failing exit code without any error in the stream. What
// the CLI wrote to standard error before it began to work is its own error.
func (t *tally) silentFailure() string {
	r := &t.rep
	var complaints []string
	for line := range strings.Lines(r.Stderr) {
		if line = strings.TrimSpace(line); !harmless.MatchString(line) {
			complaints = append(complaints, line)
		}
	}
	if len(complaints) == 0 {
		if t.working {
			r.Ending = Killed
			r.because(fmt.Sprintf("exit code %d in the middle of a turn, without any error: it was interrupted", r.Exit.Code))
			return ""
		}
		r.Ending = Crashed
		r.because(fmt.Sprintf("exit code %d without a word", r.Exit.Code))
		return ""
	}
	text := strings.Join(complaints[max(0, len(complaints)-5):], "\n")
	r.Failure = shorten(text, maxText)
	ending, known := classifyFailure(text)
	if known && !t.working {
		r.Ending = ending
		r.because(fmt.Sprintf("exit code %d; standard error says: %s", r.Exit.Code, shorten(text, 300)))
		return text
	}
	r.Ending = Crashed
	r.because(fmt.Sprintf("unclassified failure, exit code %d: %s", r.Exit.Code, shorten(text, 300)))
	return ""
}

// exitTimeout is the exit code of timeout(1).
const exitTimeout = 124

// fromSignal reports whether a process was ended from outside; shells report a
// signal as 128 plus its number.
func fromSignal(e Exit) bool {
	return e.Signal != "" || e.Code == 128+2 || e.Code == 128+9 || e.Code == 128+15
}

func signalName(e Exit) string {
	if e.Signal != "" {
		return e.Signal
	}
	return fmt.Sprintf("signal %d", e.Code-128)
}

// reset finds the time of the reset: a field of the stream, else the message.
func (t *tally) reset(message string, now time.Time, zone *time.Location) (*time.Time, string) {
	if t.failed != nil && t.failed.ResetsAt != nil {
		return t.failed.ResetsAt, SourceStructured
	}
	if at, ok := ResetTime(message, now, zone); ok {
		return &at, SourceText
	}
	return nil, SourceNone
}
