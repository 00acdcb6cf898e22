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
	notice Event // what the CLI said of the refusal that it was waiting for; zero where it said nothing
}

// conclude turns what was read into the report. In order: the stream's final
// event, Pawl's own record of having ended the process, the exit code, the last
// error that was not final, standard error, the last step.
func (t *tally) conclude(why stop, now time.Time, zone *time.Location) Report {
	t.settle()
	t.overhear()
	r := &t.rep
	r.Killed = why.ending != ""
	message := t.decide(why)
	if r.Ending == "" {
		r.Ending = Crashed
	}
	resets, source := t.reset(message, now, zone)
	t.weigh(message, resets, now)
	r.setLimit(message, resets, source, now)
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	return *r
}

// overhear takes the last failed try from standard error. What was printed
// when is not known: after other work a short wait may be long over, while a
// used-up plan is not.
func (t *tally) overhear() {
	if t.cli.tries == nil || t.notice.Kind != 0 || t.step != nil && t.step.Ending == Completed {
		return
	}
	tries := t.cli.tries.FindAllStringSubmatch(t.rep.Stderr, -1)
	if len(tries) == 0 {
		return
	}
	e := Event{Kind: Notice}
	for _, part := range tries[len(tries)-1] { // the whole, unless a part of it is the message
		if part != "" {
			e.Text = shorten(part, maxText)
		}
	}
	e.Ending, _ = classifyFailure(e.Text)
	if e.Ending == UsageLimit || t.messages == 0 && t.rep.ToolCalls == 0 {
		t.notice = e
	}
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
	case why.notice.Kind != 0:
		text := t.judge(why.notice, "it was waiting after the refusal")
		r.because(why.reason)
		return text
	case why.ending == TimedOut:
		return t.outOfTime(why.reason)
	case why.ending != "":
		r.Ending = why.ending
		r.because(why.reason)
		return t.lastNotice()
	case r.ExitKnown && r.Exit.Code == exitTimeout:
		return t.outOfTime("exit code 124: the time ran out before a final event")
	case r.ExitKnown && fromSignal(r.Exit):
		r.Ending = Killed
		r.because("the process was ended by " + signalName(r.Exit) + " before a final event")
		return t.lastNotice()
	case t.notice.Kind != 0:
		return t.judge(t.notice, "the output ended without a final event; the last error was")
	case r.ExitKnown && r.Exit.Code != 0:
		return t.silentFailure()
	case t.step != nil:
		t.stepped()
		return ""
	}
	t.unfinished()
	return ""
}

// outOfTime is a run that was still going when its time was over. Where the CLI
// was waiting for a provider that had refused it, the refusal is the ending:
// waiting longer here would not have helped.
func (t *tally) outOfTime(reason string) string {
	r := &t.rep
	if t.notice.Kind != 0 {
		ending := t.notice.Ending
		if ending == "" {
			ending, _ = classifyFailure(t.notice.Text)
		}
		if ending.isLimit() {
			text := t.judge(t.notice, "it was waiting after the refusal")
			r.because(reason)
			return text
		}
	}
	r.Ending = TimedOut
	r.because(reason)
	return t.lastNotice()
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
	t.resets = e.ResetsAt
	known := e.Ending != ""
	if t.rep.Ending = e.Ending; !known {
		t.rep.Ending, known = classifyFailure(text)
	}
	if told := t.exitEnding(); !known && told != "" {
		t.rep.Ending = told
		t.rep.because(fmt.Sprintf("the exit code %d stands for %s; %s: %s", t.rep.Exit.Code, told, where, shorten(text, 300)))
		return text
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

// exitEnding is what the exit code alone tells, "" where that is nothing.
func (t *tally) exitEnding() Ending {
	if t.cli.exit == nil || !t.rep.ExitKnown {
		return ""
	}
	return t.cli.exit(t.rep.Exit.Code)
}

// stepped is the end of a stream without a final event, after a whole step.
func (t *tally) stepped() {
	r := &t.rep
	switch {
	case (t.step.Ending == Completed || t.step.Ending == "") && t.messages == 0 && t.did == 0:
		r.Ending = NoAnswer
		r.because("the run ended without an error, but the agent said nothing and no call of it had an effect")
	case t.step.Ending == "":
		r.Ending = CutOff
		r.because("the output ends after a tool call, with more to do")
	case t.step.Ending == Completed:
		r.Ending = Completed
		r.because("the last step ended the work")
	default:
		r.Ending = t.step.Ending
		r.because("the last step ended as " + string(r.Ending))
	}
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

// harmless matches lines that healthy CLIs print on standard error.
var harmless = regexp.MustCompile(`(?i)^(?:reading (?:additional )?(?:input|prompt) from stdin\.*|warning: .*|yolo mode is enabled.*|ripgrep is not available.*|\[startup\] .*|timestamp=\S+ level=(?:debug|info|warn) .*|at .*:\d+:\d+\)?|\s*)$`)

// The lines of standard error that are looked at when nothing else tells: the
// first names the problem or begins the usage text, the last end a trace.
const firstLines, finalLines = 3, 5

// complaints are the telling lines of standard error.
func (t *tally) complaints() string {
	var lines []string
	for line := range strings.Lines(t.rep.Stderr) {
		if line = strings.TrimSpace(line); !harmless.MatchString(line) {
			lines = append(lines, line)
		}
	}
	if len(lines) > firstLines+finalLines {
		lines = append(lines[:firstLines], lines[len(lines)-finalLines:]...)
	}
	return strings.Join(lines, "\n")
}

// silentFailure is a failing exit code without any error in the stream. What
// the CLI wrote to standard error before it began to work is its own error.
func (t *tally) silentFailure() string {
	r := &t.rep
	text, told := t.complaints(), t.exitEnding()
	r.Failure = shorten(text, maxText)
	ending, known := classifyFailure(text)
	switch {
	case known && !t.working && text != "":
		r.Ending = ending
		r.because(fmt.Sprintf("exit code %d; standard error says: %s", r.Exit.Code, shorten(text, 300)))
		return text
	case told != "":
		r.Ending = told
		r.because(fmt.Sprintf("the exit code %d stands for %s", r.Exit.Code, told))
		return text
	case text == "" && t.working:
		r.Ending = Killed
		r.because(fmt.Sprintf("exit code %d in the middle of a turn, without any error: it was interrupted", r.Exit.Code))
	case text == "":
		r.Ending = Crashed
		r.because(fmt.Sprintf("exit code %d without a word", r.Exit.Code))
	default:
		r.Ending = Crashed
		r.because(fmt.Sprintf("unclassified failure, exit code %d: %s", r.Exit.Code, shorten(text, 300)))
	}
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
