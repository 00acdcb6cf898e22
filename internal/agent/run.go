package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Process is a process that was started with the adapter's command.
type Process struct {
	// Stdout and Stderr end when nobody holds their other ends any more. Where
	// they are io.Closers they are closed if that does not happen soon after Kill.
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
	// OnEvent is told each event as it is read, OnDeed each call when it has
	// ended, before the event that ended it; both on the reading goroutine.
	OnEvent func(Event)
	OnDeed  func(Deed)
	// Now is the clock for reset times and the duration; nil means time.Now.
	Now func() time.Time
	// Zone is that of clock times without a zone; nil means UTC.
	Zone *time.Location
}

// After the final event a process that stays, or a child that holds its
// streams, gets lingerTime; after Kill the streams get drainTime to end.
const (
	lingerTime = 30 * time.Second
	drainTime  = 5 * time.Second
)

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
	read := newReading(a, o.Dir, func(e Event) {
		if e.Kind == Finished || e.Kind == Failed {
			signal(w.final)
		}
		if o.OnEvent != nil {
			o.OnEvent(e)
		}
	})
	read.alive = func() { signal(w.pulse) }
	read.napping = w.napping
	read.tally.onDeed = o.OnDeed
	copied := newTranscript(o.Transcript, o.MaxTranscript)
	outDone, errDone := make(chan error, 1), make(chan error, 1)
	go func() { outDone <- read.stdout(io.TeeReader(p.Stdout, copied)) }()
	go func() {
		errDone <- read.errors(p.Stderr)
	}()
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
	report := read.conclude(known, why, now(), o.Zone)
	report.Duration = now().Sub(began)
	if cut := copied.close(); cut != nil {
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
