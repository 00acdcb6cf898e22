package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/internal/panics"
	"github.com/pawlbot/pawl/policy"
)

// Process is a started command.
type Process struct {
	// Stdout and Stderr end soon after Kill, even if a child process still holds the pipes open.
	Stdout, Stderr io.Reader
	// Wait returns how the process ended. Run calls it once, after both streams have ended.
	Wait func() (Exit, error)
	// Kill ends the process with all its children. It may be called at any time and repeatedly.
	Kill func()
}

// RunOptions limit a run. Zero durations mean no limit.
type RunOptions struct {
	Dir string // the checkout's path for the agent
	// Total limits the run, Idle any silence, Startup the silence at the start. Signs of life are a structured
	// stream's lines except notices, or a plain agent's output. CLIs print nothing while the model streams, so Idle
	// needs minutes.
	Total, Idle, Startup time.Duration
	// Before is the time of earlier runs, which counts towards Total.
	Before time.Duration
	// Alive gets a function that reports other signs of life, such as a byte of the model's answer. The function has no
	// effect after the process has ended. Nil for none.
	Alive func(tell func())
	// Interrupt ends the agent at its next tool boundary: after a call while no other call is open, or after
	// InterruptWait. An agent without a structured stream ends at once. Nil for never.
	Interrupt     <-chan struct{}
	InterruptWait time.Duration
	// Transcript receives standard output, MaxTranscript bytes of it (zero: all).
	Transcript    io.Writer
	MaxTranscript int64
	OnEvent       func(Event) // gets each event; OnCall gets each ended call, before its last event
	OnCall        func(Call)
	// OnPrint gets each line that a program without structure prints. Calls may be concurrent. It may be nil.
	OnPrint func(line string)
	Now     func() time.Time // for reset times and the duration; nil means time.Now
}

// lingerTime limits how long a process may stay after its final event, or a child may keep the streams open.
const lingerTime = 30 * time.Second

// Run reads a process to its end and returns the report, which is always filled. It kills the process at a limit of
// the options or when ctx ends; ctx's cause becomes a reason. The error is Pawl's own: to write the transcript, or to
// wait for the process. All goroutines have ended when Run returns.
func Run(ctx context.Context, p Process, a Adapter, o RunOptions) (Report, error) {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	began := now()
	w := newWatch(p.Kill, o)
	defer context.AfterFunc(ctx, func() { w.end(stopFor(context.Cause(ctx))) })()
	if o.Alive != nil {
		o.Alive(w.alive)
	}
	read := newReading(a, o.Dir)
	read.onEvent = func(e Event) {
		w.read(ctx, e.Kind)
		e.Windows = limit.Seen(e.Windows, now())
		if o.OnEvent != nil {
			o.OnEvent(e)
		}
	}
	read.alive, read.tellTry = w.pulse, w.tellTry
	read.tally.onCall, read.onPrint = w.watchCalls(o.OnCall), o.OnPrint
	defer w.interruptible(a.Parse != nil, o)()
	copied := newTranscript(o.Transcript, o.MaxTranscript)
	outDone, errDone := make(chan error, 1), make(chan error, 1)
	go func() { outDone <- w.reads(func() error { return read.stdout(io.TeeReader(p.Stdout, copied)) }) }()
	go func() { errDone <- w.reads(func() error { return read.errors(p.Stderr) }) }()

	err := errors.Join(<-outDone, <-errDone)
	exit, waitErr := p.Wait()
	why := w.finish(ctx)
	if why.ending != "" && panics.Stack(err) == "" {
		err = nil // the streams were cut on purpose
	}
	known := &exit
	if waitErr != nil {
		known, waitErr = nil, fmt.Errorf("wait for the agent: %w", waitErr)
	}
	report := read.conclude(known, why, now(), nil)
	report.Duration = now().Sub(began)
	if cut := copied.close(); cut != nil {
		err = errors.Join(err, fmt.Errorf("write the transcript: %w", cut))
	}
	return report, errors.Join(err, waitErr)
}

type watch struct {
	kill    func()
	killing sync.WaitGroup
	// silence is the limit of each silence; zero means none.
	silence                      time.Duration
	total, startup, idle, linger *time.Timer
	boundary                     *time.Timer // runs once an interruption is wanted

	mu      sync.Mutex
	over    bool                   // the process has ended
	final   bool                   // the last turn had its final event
	late    bool                   // the final event came after the kill
	wanted  bool                   // an interruption is wanted
	why     stop                   // zero before a kill
	waiting map[string]*time.Timer // timers of refused conversations that have not asked again
}

// left returns the part of Total that earlier runs left; zero for no limit.
func (o RunOptions) left() time.Duration {
	if o.Total == 0 {
		return 0
	}
	return max(o.Total-o.Before, 1)
}

// within returns a limit of silence; zero if Total ends the run earlier.
func (o RunOptions) within(bound time.Duration) time.Duration {
	if left := o.left(); left > 0 && bound >= left {
		return 0
	}
	return bound
}

func newWatch(kill func(), o RunOptions) *watch {
	o.Idle = o.within(o.Idle)
	o.Startup = o.within(o.Startup)
	w := &watch{kill: kill, silence: o.Idle, waiting: map[string]*time.Timer{}}
	// alarm fires after d; never if d is 0.
	alarm := func(d time.Duration, why stop) *time.Timer {
		return time.AfterFunc(cmp.Or(d, math.MaxInt64), func() { w.end(why) })
	}
	w.total = alarm(o.left(), stop{ending: policy.TimedOut, reason: fmt.Sprintf("killed after %s, the limit for a run", o.Total)})
	w.startup = alarm(o.Startup, stop{ending: policy.TimedOut, silent: o.Startup, reason: fmt.Sprintf("killed because it printed nothing within %s of its start", o.Startup)})
	w.idle = alarm(o.Idle, stop{ending: policy.TimedOut, silent: o.Idle, reason: fmt.Sprintf("killed because it printed nothing for %s", o.Idle)})
	w.linger = alarm(0, stop{ending: policy.Killed, reason: fmt.Sprintf("killed because it did not end within %s", lingerTime)})
	w.boundary = alarm(0, interruption)
	return w
}

func (w *watch) read(ctx context.Context, kind Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind {
	case TurnStarted:
		w.final = false
	case Finished, Failed:
		w.linger.Reset(lingerTime)
		if w.why.ending == "" && ctx.Err() == nil {
			w.final = true
		} else if !w.final {
			w.late = true
		}
	}
}

func (w *watch) end(why stop) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over && w.why.ending == "" {
		w.why = why
		w.killing.Go(w.kill)
	}
}

var interruption = stop{ending: policy.Killed, reason: "interrupted", interrupts: true}

// interruptible starts to wait for o.Interrupt. The caller must call end.
func (w *watch) interruptible(structured bool, o RunOptions) (end func()) {
	over := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-o.Interrupt:
		case <-over:
			return
		}
		if structured {
			w.interrupt(o.InterruptWait)
		} else {
			w.end(interruption)
		}
	})
	return func() { close(over); waiting.Wait() }
}

func (w *watch) interrupt(within time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.wanted = true
	w.boundary.Reset(within)
}

// watchCalls carries out a wanted interruption when no call is open.
func (w *watch) watchCalls(visit func(Call)) func(Call) {
	return func(d Call) {
		if visit != nil {
			visit(d)
		}
		w.mu.Lock()
		ends := w.wanted && d.Open == 0
		w.mu.Unlock()
		if ends {
			w.end(interruption)
		}
	}
}

// reads kills the process if reading its output panics, since nothing else would drain the pipe.
func (w *watch) reads(read func() error) error {
	err := panics.Try(read)
	if panics.Stack(err) != "" {
		w.end(stop{ending: policy.Killed, reason: "killed: " + err.Error()})
	}
	return err
}

func (w *watch) finish(ctx context.Context) stop {
	w.mu.Lock()
	w.over = true
	for _, alarm := range []*time.Timer{w.total, w.startup, w.idle, w.linger, w.boundary} {
		alarm.Stop()
	}
	w.awake()
	if w.why.ending == "" && ctx.Err() != nil { // another holder of the context may have killed it first
		w.why = stopFor(context.Cause(ctx))
	}
	w.why.first = w.late
	w.mu.Unlock()
	w.killing.Wait()
	return w.why
}

func (w *watch) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.startup.Stop()
	if w.silence > 0 {
		w.idle.Reset(w.silence)
	}
}

// pulse handles a sign of life in the output. A CLI that prints is not waiting.
func (w *watch) pulse() {
	w.mu.Lock()
	w.awake()
	w.mu.Unlock()
	w.alive()
}

// awake ends all waits. The caller holds the lock.
func (w *watch) awake() {
	for _, alarm := range w.waiting {
		alarm.Stop()
	}
	clear(w.waiting)
}

// maxWaiting exceeds the conversations of any CLI.
const maxWaiting = 64

// tellTry handles a failed or repeated request. It starts or stops the timer for the conversation's next request.
func (w *watch) tellTry(n Try) {
	if n.Wait > LongestWait {
		w.end(n.stop())
	}
	if !n.Over && !n.Unknown {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if alarm := w.waiting[n.Session]; alarm != nil {
		alarm.Stop()
		delete(w.waiting, n.Session)
	}
	if !n.Over && len(w.waiting) < maxWaiting {
		w.waiting[n.Session] = time.AfterFunc(quietWait, func() { w.end(n.stop()) })
	}
}

func stopFor(cause error) stop {
	if errors.Is(cause, context.DeadlineExceeded) {
		return stop{ending: policy.TimedOut, reason: "killed: the time for the run is over"}
	}
	return stop{ending: policy.Killed, reason: "killed: " + cause.Error()}
}

// LongestWait limits a CLI's own wait before it asks a provider again. For longer waits, Pawl kills the CLI and waits
// itself. A CLI silent for quietWait has waited longer than LongestWait, even on a busy machine.
const (
	LongestWait = time.Minute
	quietWait   = LongestWait + 15*time.Second
)

// Try is a CLI's report of a failed request and its wait.
type Try struct {
	Session string // the waiting conversation; empty if the CLI has only one
	// Over means that the conversation asks again.
	Over    bool
	Wait    time.Duration // Unknown means an unknown length
	Unknown bool
	Text    string // the provider's message
}

// Tries parses failed tries on standard error. The pattern's groups are wait, in units, and said, the provider's
// message.
func Tries(pattern *regexp.Regexp, unit time.Duration) func(lines string) (Try, bool) {
	return func(lines string) (Try, bool) {
		m := pattern.FindStringSubmatch(lines)
		if m == nil {
			return Try{}, false
		}
		units, _ := strconv.ParseInt(m[pattern.SubexpIndex("wait")], 10, 64) // 0 if missing
		return Try{Wait: time.Duration(units) * unit, Text: m[pattern.SubexpIndex("said")]}, true
	}
}

// stop returns the kill of a run whose CLI sleeps too long.
func (n Try) stop() stop {
	e := Event{Kind: Notice, Text: n.Text}
	if found := limit.Read(limit.Evidence{Message: n.Text}); !found.Kind.IsLimit() {
		e.Ending = policy.RateLimited
	}
	reason := fmt.Sprintf("killed because it slept for more than %s after the refusal; Pawl does such waits itself", LongestWait)
	if n.Wait > 0 {
		reason = fmt.Sprintf("killed because it went to sleep for %s; Pawl does such waits itself", n.Wait.Round(time.Second))
	}
	return stop{ending: policy.Killed, reason: reason, notice: e}
}

const maxTryLine = 16 << 10

// tryReader finds failed tries in its input, each line together with the previous one.
type tryReader struct {
	read       func(lines string) (Try, bool)
	onTry      func(Try)
	line, last []byte
}

func (w *tryReader) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		w.line = append(w.line, part[:min(len(part), maxTryLine-len(w.line))]...)
		if rest = after; !ended {
			break
		}
		w.line = bytes.TrimRight(w.line, "\r")
		if n, ok := w.read(string(w.last) + "\n" + string(w.line)); ok {
			w.onTry(n)
		}
		w.last, w.line = w.line, w.last[:0]
	}
	return len(p), nil
}
