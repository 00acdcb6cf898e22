package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// stop is Pawl's reason for killing a process; zero if Pawl did not kill it.
type stop struct {
	ending policy.Ending // TimedOut or Killed
	reason string
	silent time.Duration // the agent's silence before the kill
	// interrupts means that the agent may continue its session.
	interrupts bool
	// first means that the kill came before the final event. The final event then does not count: a terminated CLI may
	// kill its command and report success.
	first  bool
	notice Event // the refusal that the CLI was waiting for; zero for none
}

// conclude turns the events into the report. The first of these decides the ending: the stream's final event, Pawl's
// kill, the exit code, the last error, standard error, the last step.
func (t *tally) conclude(why stop, now time.Time, zone *time.Location) Report {
	r := &t.rep
	r.Killed, r.Reasons = why.ending != "", []string{}
	if why.first {
		r.final, t.failed = false, nil
	}
	t.now, t.zone = now, zone
	t.refused(t.decide(why))
	r.Interrupted = why.interrupts && r.Ending == policy.Killed
	r.Mute = t.silent()
	return *r
}

func (t *tally) refused(e Event) {
	r := &t.rep
	r.Limit = nil
	if !r.Ending.IsLimit() {
		return
	}
	if t.read(e).Kind != r.Ending {
		e.Ending = r.Ending // by an exit code or an earlier event
	}
	limited := t.read(e)
	if l, ok := limited.Limit(); ok {
		l.Message = e.Text
		r.Limit, r.Ending = &l, l.Kind
	}
	r.Reasons = append(r.Reasons, limited.Reasons...)
}

func (t *tally) read(e Event) limit.Reading {
	return limit.Read(limit.Evidence{
		Kind:     e.Ending,
		Status:   e.Status,
		Names:    e.Names,
		Message:  e.Text,
		ResetsAt: e.ResetsAt,
		Now:      t.now,
		Zone:     t.zone,
	})
}

// consequences are failures that may follow a CLI's sleep after a refusal.
var consequences = []policy.Ending{policy.Disconnected, policy.TimedOut, policy.Killed, policy.Crashed}

func (t *tally) tried(n Try) {
	if n.Over {
		return
	}
	t.try = n.Text
	if n.Wait > LongestWait {
		t.slept = n.stop().notice
	}
}

// readTry uses the last failed try as the error. After other work only an exhausted plan counts, since a short wait may
// have ended.
func (t *tally) readTry() {
	if t.try == "" || t.notice.Kind != 0 {
		return
	}
	if t.step != nil && t.step.Ending == policy.Completed {
		return
	}
	e := Event{Kind: Notice, Text: Shorten(t.try, MaxText)}
	if t.read(e).Kind == policy.UsageLimit || t.silent() {
		t.notice = e
	}
}

// silent reports whether the agent wrote nothing and called nothing.
func (t *tally) silent() bool { return t.messages == 0 && !t.called }

// decide sets the ending with its reason, and returns the error behind it.
func (t *tally) decide(why stop) Event {
	t.readTry()
	r := &t.rep
	if t.cli.Parse == nil {
		r.FinalMessage = lastOf(r.output)
	}
	switch {
	case t.failed != nil:
		t.note(why)
		e := t.judge(*t.failed, "the run ended with the error")
		if t.slept.Kind != 0 && slices.Contains(consequences, r.Ending) {
			e = t.judge(t.slept, "which followed a long wait after the refusal")
		}
		return e
	case r.final && why.ending != "":
		t.note(why)
		return t.finished()
	case r.final:
		return t.endedItself()
	case why.notice.Kind != 0:
		e := t.judge(why.notice, "it was waiting after the refusal")
		r.because(why.reason)
		return e
	case why.ending == policy.TimedOut:
		return t.outOfTime(why)
	case why.ending != "":
		r.end(why.ending, why.reason)
		return t.lastNotice()
	}
	return t.unended()
}

func (t *tally) endedItself() Event {
	r := &t.rep
	if r.Exit.Code == exitTimeout {
		return t.outOfTime(stop{reason: "exit code 124: the time ran out, after the final event"})
	}
	if signal := r.Exit.signal(); signal != "" {
		r.end(policy.Killed, "the process was ended by "+signal+", after its final event")
		return Event{}
	}
	return t.finished()
}

func (t *tally) unended() Event {
	r, before := &t.rep, " before a final event"
	if t.cli.Parse == nil {
		before = ""
	}
	switch {
	case r.Exit.Code == exitTimeout:
		return t.outOfTime(stop{reason: "exit code 124: the time ran out" + before})
	case r.Exit.signal() != "":
		r.end(policy.Killed, "the process was ended by "+r.Exit.signal()+before)
		return t.lastNotice()
	case t.cli.Parse == nil:
		return t.decidePlain()
	case t.notice.Kind != 0:
		return t.judge(t.notice, "the output ended without a final event; the last error was")
	case r.Exit.Code != 0:
		return t.silentFailure()
	case t.step != nil:
		return t.stepped()
	}
	t.unfinished()
	return Event{}
}

// outOfTime handles a run that reached its time limit. If the CLI was waiting after a refusal, the refusal is the
// ending.
func (t *tally) outOfTime(why stop) Event {
	r := &t.rep
	if t.notice.Kind != 0 && t.read(t.notice).Kind.IsLimit() {
		e := t.judge(t.notice, "it was waiting after the refusal")
		r.because(why.reason)
		return e
	}
	r.Silent = why.silent
	r.end(policy.TimedOut, why.reason)
	return t.lastNotice()
}

func (t *tally) note(why stop) {
	if why.ending != "" {
		t.rep.because(why.reason + ", after the final event")
	}
}

func (t *tally) finished() Event {
	r := &t.rep
	t.forgetOlder()
	switch {
	case t.silent():
		r.end(policy.NoAnswer, "the run ended without an error, but the agent said and did nothing")
		return Event{}
	case t.idle():
		r.end(policy.NoAnswer, "the run ended without an error, but the agent's last answer is empty and none of its calls had an effect")
		return Event{}
	}
	if e, ok := t.onlyError(); ok {
		return t.judge(e, "the run calls itself a success, but its whole answer is the error")
	}
	r.end(policy.Completed, "the stream ended with its final event")
	t.noteEmpty()
	t.noteEnd()
	return Event{}
}

// noteEnd adds reasons for events after a successful end, and for tasks that the end killed.
func (t *tally) noteEnd() {
	r := &t.rep
	if r.Exit.Code != 0 {
		r.because(fmt.Sprintf("the exit code %d followed the final event and is ignored", r.Exit.Code))
	}
	if t.spurious != "" {
		r.because("an error without any work followed the final event and is ignored: " + Shorten(t.spurious, 300))
	}
	if left := t.background.left(); left != "" {
		r.because("background work ended with the agent: " + left + "; to keep its result, wait for it in the foreground")
	}
}

func (t *tally) onlyError() (Event, bool) {
	if t.rep.ToolCalls > 0 || t.messages > 1 {
		return Event{}, false
	}
	e := Event{Kind: Notice, Text: t.rep.FinalMessage}
	found, ok := limit.Instead(limit.Evidence{Message: e.Text})
	return e, ok && found.Kind != policy.Killed
}

func (t *tally) forgetOlder() {
	if !t.messaged {
		t.rep.FinalMessage = ""
	}
}

// idle reports whether the agent answered nothing and no call had an effect.
func (t *tally) idle() bool { return !t.messaged && t.did == 0 }

func (t *tally) noteEmpty() {
	if !t.messaged {
		t.rep.because("the agent's last answer is empty")
	}
}

// retrying matches codex's wrapper of a retried error.
var retrying = regexp.MustCompile(`^Reconnecting\.\.\. (?:\d+/\d+ |waiting for network )?\((.*)\)$`)

func (t *tally) judge(e Event, where string) Event {
	if m := retrying.FindStringSubmatch(e.Text); m != nil {
		e.Text = m[1]
	}
	r := &t.rep
	r.Failure = Shorten(e.Text, MaxText)
	limited := t.read(e)
	r.named = limited.Certainty == policy.Certain
	r.Ending = limited.Kind
	byExit := t.exitEnding()
	switch {
	case limited.Kind != "":
		r.because(where + ": " + Shorten(e.Text, 300))
	case byExit != "":
		r.end(byExit, fmt.Sprintf("the exit code %d stands for %s; %s: %s", r.Exit.Code, byExit, where, Shorten(e.Text, 300)))
	default:
		r.end(policy.Crashed, "unclassified failure: "+Shorten(e.Text, 300))
	}
	return e
}

func (t *tally) lastNotice() Event {
	if t.notice.Text != "" {
		t.rep.Failure = Shorten(t.notice.Text, MaxText)
		t.rep.because("the last error before that was: " + Shorten(t.notice.Text, 300))
	}
	return t.notice
}

func (t *tally) exitEnding() policy.Ending {
	if t.cli.Exit == nil || !t.rep.ExitKnown {
		return ""
	}
	return t.cli.Exit(t.rep.Exit.Code)
}

func (t *tally) stepped() Event {
	r := &t.rep
	if t.step.Ending == policy.Completed {
		if e, ok := t.onlyError(); ok {
			return t.judge(e, "the last step ended the work, but the whole answer is the error")
		}
	}
	switch {
	case t.unanswered():
		r.end(policy.NoAnswer, "the run ended without an error, but the agent said nothing and none of its calls had an effect")
	case t.step.Ending == "":
		r.end(policy.CutOff, "the output ends after a tool call, with more to do")
	case t.step.Ending == policy.Completed:
		t.forgetOlder()
		r.end(policy.Completed, "the last step ended the work")
		t.noteEmpty()
	default:
		r.end(t.step.Ending, "the last step ended as "+string(t.step.Ending))
	}
	return Event{}
}

// unanswered reports whether the last step did not fail, the agent answered nothing and no call had an effect.
func (t *tally) unanswered() bool {
	switch t.step.Ending {
	case policy.Completed:
		return t.idle()
	case "":
		return t.messages == 0 && t.did == 0
	default:
		return false
	}
}

func (t *tally) unfinished() {
	r := &t.rep
	switch {
	case !t.silent():
		r.end(policy.CutOff, "the output stops in the middle of the work")
	case t.working:
		r.end(policy.Disconnected, "the output stops after the turn began")
	default:
		r.end(policy.NoAnswer, "the output holds no answer")
	}
}

// harmless matches lines that healthy CLIs write to standard error.
var harmless = regexp.MustCompile(`(?i)^(?:reading (?:additional )?(?:input|prompt) from stdin\.*|warning: .*|yolo mode is enabled.*|ripgrep is not available.*|\[startup\] .*|timestamp=\S+ level=(?:debug|info|warn) .*|at .*:\d+:\d+\)?|\s*)$`)

// firstLines and finalLines limit the lines of standard error that are read. The first lines name the problem or begin
// the usage text; the last ones end a stack trace.
const firstLines, finalLines = 3, 5

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

// silentFailure handles a failing exit code without an error in the stream. Text on standard error before the work
// began is the CLI's own error.
func (t *tally) silentFailure() Event {
	r := &t.rep
	text, byExit := t.complaints(), t.exitEnding()
	r.Failure = Shorten(text, MaxText)
	if text == "" {
		t.wordlessFailure(byExit)
		return Event{}
	}
	e := Event{Kind: Notice, Text: text}
	kind := t.read(e).Kind
	switch {
	case kind != "" && !t.working:
		r.end(kind, fmt.Sprintf("exit code %d; standard error says: %s", r.Exit.Code, Shorten(text, 300)))
		return e
	case byExit != "":
		r.end(byExit, fmt.Sprintf("the exit code %d stands for %s", r.Exit.Code, byExit))
		return e
	}
	r.end(policy.Crashed, fmt.Sprintf("unclassified failure, exit code %d: %s", r.Exit.Code, Shorten(text, 300)))
	return Event{}
}

func (t *tally) wordlessFailure(byExit policy.Ending) {
	r := &t.rep
	switch {
	case byExit != "":
		r.end(byExit, fmt.Sprintf("the exit code %d stands for %s", r.Exit.Code, byExit))
	case t.working:
		r.end(policy.Killed, fmt.Sprintf("exit code %d in the middle of a turn, without any error: it was interrupted", r.Exit.Code))
	default:
		r.end(policy.Crashed, fmt.Sprintf("exit code %d without a word", r.Exit.Code))
	}
}

const exitTimeout = 124

// signal names the signal that ended a process; empty for none. Shells report 128 plus its number.
func (e Exit) signal() string {
	if e.Signal != "" {
		return e.Signal
	}
	switch number := e.Code - 128; number {
	case 2, 9, 15:
		return fmt.Sprintf("signal %d", number)
	}
	return ""
}
