package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// Process is a process that was started with the adapter's command.
type Process struct {
	// Stdout and Stderr end soon after Kill at the latest, also where a stray child
	// still holds their other ends.
	Stdout, Stderr io.Reader
	// Wait returns how the process ended. It is called once, after both streams ended.
	Wait func() (Exit, error)
	// Kill ends the process with all its children. It may be called more than
	// once and at any time.
	Kill func()
}

// RunOptions bounds a run. Zero durations mean no bound.
type RunOptions struct {
	// Dir is the checkout as the agent sees it.
	Dir string
	// Total is the time for the whole run, Idle the longest time without a sign
	// of life, Startup the time until the first. A sign of life is a line of a
	// structured stream that is not the notice of a retry (codex retries a dead
	// server for ever), or anything that a plain agent prints. CLIs print nothing
	// while the model streams, so Idle must be generous (minutes).
	Total, Idle, Startup time.Duration
	// Transcript receives standard output, MaxTranscript bytes of it (zero: all).
	Transcript    io.Writer
	MaxTranscript int64
	// OnEvent is told each event as it is read, OnCall each call when it has
	// ended, before the event that ended it; both on the reading goroutine.
	OnEvent func(Event)
	OnCall  func(Call)
	// Now is the clock for reset times and the duration; nil means time.Now.
	Now func() time.Time
}

// lingerTime is what a process that stays after its final event gets, or a child that
// holds its streams.
const lingerTime = 30 * time.Second

// Run reads a process to its end and reports what it came to. It kills the
// process when a bound of the options is reached or ctx ends; the cause of ctx
// becomes a reason of the report. All goroutines have ended when Run returns.
//
// The report is always filled. The error says that Pawl could not do its own
// part: keep the transcript, or learn how the process ended.
func Run(ctx context.Context, p Process, a Adapter, o RunOptions) (Report, error) {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	began := now()
	w := newWatch()
	read := newReading(a, o.Dir)
	read.onEvent = func(e Event) {
		if e.Kind == Finished || e.Kind == Failed {
			signal(w.final)
		}
		if o.OnEvent != nil {
			o.OnEvent(e)
		}
	}
	read.alive = func() { signal(w.pulse) }
	read.tellWait = w.tellWait
	read.tally.onCall = o.OnCall
	copied, finish := newTranscript(o.Transcript, o.MaxTranscript)
	outDone, errDone := make(chan error, 1), make(chan error, 1)
	go func() { outDone <- read.stdout(io.TeeReader(p.Stdout, copied)) }()
	go func() { errDone <- read.errors(p.Stderr) }()
	stopped := make(chan stop, 1)
	go func() { stopped <- w.guard(ctx, p, o) }()

	err := errors.Join(<-outDone, <-errDone)
	exit, waitErr := p.Wait()
	close(w.over)
	why := <-stopped
	if why.ending != "" {
		err = nil // the streams were cut on purpose
	}
	known := &exit
	if waitErr != nil {
		known, waitErr = nil, fmt.Errorf("wait for the agent: %w", waitErr)
	}
	report := read.conclude(known, why, now(), nil)
	report.Duration = now().Sub(began)
	if cut := finish(); cut != nil {
		err = errors.Join(err, fmt.Errorf("write the transcript: %w", cut))
	}
	return report, errors.Join(err, waitErr)
}

// signal wakes a receiver without waiting for it.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch ends a process that overstays one of its bounds.
type watch struct {
	pulse   chan struct{}  // the agent gave a sign of life
	final   chan struct{}  // the final event was read
	waits   chan RetryWait // the agent said something of a wait
	stopped chan struct{}  // closed when waits are no longer received
	over    chan struct{}  // closed when the process has ended
}

func newWatch() *watch {
	return &watch{
		pulse: make(chan struct{}, 1), final: make(chan struct{}, 1),
		waits: make(chan RetryWait), stopped: make(chan struct{}), over: make(chan struct{}),
	}
}

// tellWait passes a wait on as long as somebody wants it.
func (w *watch) tellWait(n RetryWait) {
	select {
	case w.waits <- n:
	case <-w.stopped:
	}
}

// guard waits for the end of the process or of its time. It returns why it
// killed the process, or nothing.
func (w *watch) guard(ctx context.Context, p Process, o RunOptions) stop {
	total, startup, idle, linger, waitTimer := newAlarm(o.Total), newAlarm(o.Startup), newAlarm(o.Idle), newAlarm(0), newAlarm(0)
	defer func() { total.Stop(); startup.Stop(); idle.Stop(); linger.Stop(); waitTimer.Stop() }()
	var waiting waitingSessions
	var why stop
	for why.ending == "" {
		select {
		case <-w.over:
			if ctx.Err() != nil { // whoever holds the same context may have been quicker to kill
				return stopFor(context.Cause(ctx))
			}
			return stop{}
		case <-w.pulse:
			startup.Stop()
			waiting.wake(waitTimer)
			if o.Idle > 0 {
				idle.Reset(o.Idle)
			}
			continue
		case <-w.final:
			linger.Reset(lingerTime)
			continue
		case n := <-w.waits:
			switch {
			case n.Wait > LongestWait:
				why = n.stop()
			case n.Over || n.Unknown:
				waiting.note(n, time.Now(), waitTimer)
			}
		case <-waitTimer.C:
			why = waiting[0].stop()
		case <-ctx.Done():
			why = stopFor(context.Cause(ctx))
		case <-total.C:
			why = stop{ending: policy.TimedOut, reason: fmt.Sprintf("killed after %s, the limit for a run", o.Total)}
		case <-startup.C:
			why = stop{ending: policy.TimedOut, reason: fmt.Sprintf("killed because it printed nothing within %s of its start", o.Startup)}
		case <-idle.C:
			why = stop{ending: policy.TimedOut, reason: fmt.Sprintf("killed because it printed nothing for %s", o.Idle)}
		case <-linger.C:
			why = stop{ending: policy.Killed, reason: fmt.Sprintf("killed because it did not end within %s", lingerTime)}
		}
	}
	close(w.stopped)
	p.Kill()
	return why
}

// stopFor turns the end of a context into the record of a kill.
func stopFor(cause error) stop {
	if errors.Is(cause, context.DeadlineExceeded) {
		return stop{ending: policy.TimedOut, reason: "killed: the time for the run is over"}
	}
	return stop{ending: policy.Killed, reason: "killed: " + cause.Error()}
}

// newAlarm returns a timer that fires after d, never for zero.
func newAlarm(d time.Duration) *time.Timer {
	return time.NewTimer(cmp.Or(d, math.MaxInt64))
}

// LongestWait is how long a CLI may wait on its own before it asks a provider
// again. A longer wait is Pawl's to make: stored, it costs nothing. quietWait
// is when a wait of unknown length must have been longer, with time for a busy
// machine.
const (
	LongestWait = time.Minute
	quietWait   = LongestWait + 15*time.Second
)

// RetryWait is what a CLI says of a wait before it asks its provider again.
type RetryWait struct {
	// Session is which of the CLI's conversations waits, empty where it has one.
	Session string
	// Over says that the conversation asks again.
	Over bool
	// Wait is how long it will be; Untold says that it is not known.
	Wait    time.Duration
	Unknown bool
	Text    string // what the provider said
}

// stop is how a run ends whose CLI went to sleep for long.
func (n RetryWait) stop() stop {
	e := Event{Kind: Notice, Text: n.Text}
	if e.Ending, _ = limit.Classify(n.Text); !e.Ending.IsLimit() {
		e.Ending = policy.RateLimited
	}
	reason := fmt.Sprintf("killed because it slept for more than %s after the refusal, which is Pawl's to wait", LongestWait)
	if n.Wait > 0 {
		reason = fmt.Sprintf("killed because it went to sleep for %s, which is Pawl's to wait", n.Wait.Round(time.Second))
	}
	return stop{policy.Killed, reason, e}
}

// maxWaitLine is how much of a line of standard error is looked at.
const maxWaitLine = 16 << 10

// waitReader looks for a wait in what is written to it. CLIs may tell of it in two
// lines, so each is looked at together with the one before.
type waitReader struct {
	read       func(lines string) (RetryWait, bool)
	told       func(RetryWait)
	line, last []byte
}

// Write never fails.
func (w *waitReader) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		w.line = append(w.line, part[:min(len(part), maxWaitLine-len(w.line))]...)
		if rest = after; !ended {
			break
		}
		if n, ok := w.read(string(w.last) + "\n" + string(w.line)); ok {
			w.told(n)
		}
		w.last, w.line = w.line, w.last[:0]
	}
	return len(p), nil
}

// waitingSessions are the conversations of a CLI that were refused and have not asked
// again, the one that was refused first at the front.
type waitingSessions []waitingSession

type waitingSession struct {
	RetryWait
	until time.Time // when it must have asked again
}

// maxWaiting is more conversations than any CLI leads at once.
const maxWaiting = 64

// note takes a refusal or its end down and sets the alarm for the first that is
// late.
func (s *waitingSessions) note(n RetryWait, now time.Time, alarm *time.Timer) {
	*s = slices.DeleteFunc(*s, func(other waitingSession) bool { return other.Session == n.Session })
	if !n.Over && len(*s) < maxWaiting {
		*s = append(*s, waitingSession{n, now.Add(quietWait)})
	}
	alarm.Stop()
	if len(*s) > 0 {
		alarm.Reset((*s)[0].until.Sub(now))
	}
}

// wake forgets all: a CLI that works does not sleep, and one whose helper was
// refused for good goes on without asking again for it.
func (s *waitingSessions) wake(alarm *time.Timer) {
	*s = nil
	alarm.Stop()
}
