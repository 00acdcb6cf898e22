package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// watch ends a process that overstays one of its bounds.
type watch struct {
	pulse chan struct{} // the agent gave a sign of life
	final chan struct{} // the final event was read
	naps  chan nap      // the agent said something of a wait
	deaf  chan struct{} // closed when naps are no longer received
	over  chan struct{} // closed when the process has ended
}

func newWatch() *watch {
	return &watch{
		pulse: make(chan struct{}, 1), final: make(chan struct{}, 1),
		naps: make(chan nap), deaf: make(chan struct{}), over: make(chan struct{}),
	}
}

// napping passes a nap on as long as somebody wants it.
func (w *watch) napping(n nap) {
	select {
	case w.naps <- n:
	case <-w.deaf:
	}
}

// guard waits for the end of the process or of its time. It returns why it
// killed the process, or nothing.
func (w *watch) guard(ctx context.Context, p Process, o RunOptions) stop {
	total, startup, idle, linger, dream := newAlarm(o.Total), newAlarm(o.Startup), newAlarm(o.Idle), newAlarm(0), newAlarm(0)
	defer func() { total.Stop(); startup.Stop(); idle.Stop(); linger.Stop(); dream.Stop() }()
	var asleep sleepers
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
			asleep.wake(dream)
			if o.Idle > 0 {
				idle.Reset(o.Idle)
			}
			continue
		case <-w.final:
			linger.Reset(lingerTime)
			continue
		case n := <-w.naps:
			switch {
			case n.wait > longestSleep:
				why = n.stop()
			case n.over || n.untold:
				asleep.note(n, time.Now(), dream)
			}
		case <-dream.C:
			why = asleep[0].stop()
		case <-ctx.Done():
			why = stopFor(context.Cause(ctx))
		case <-total.C:
			why = stop{ending: TimedOut, reason: fmt.Sprintf("killed after %s, the limit for a run", o.Total)}
		case <-startup.C:
			why = stop{ending: TimedOut, reason: fmt.Sprintf("killed because it printed nothing within %s of its start", o.Startup)}
		case <-idle.C:
			why = stop{ending: TimedOut, reason: fmt.Sprintf("killed because it printed nothing for %s", o.Idle)}
		case <-linger.C:
			why = stop{ending: Killed, reason: fmt.Sprintf("killed because it did not end within %s", lingerTime)}
		}
	}
	close(w.deaf)
	p.Kill()
	w.drain(p)
	return why
}

// drain closes the streams if the kill did not end them, for example because a
// child left the process group and still holds them.
func (w *watch) drain(p Process) {
	patience := time.NewTimer(drainTime)
	defer patience.Stop()
	select {
	case <-w.over:
		return
	case <-patience.C:
	}
	for _, stream := range []io.Reader{p.Stdout, p.Stderr} {
		if c, ok := stream.(io.Closer); ok {
			c.Close() // an error changes nothing: the read ends or it already has
		}
	}
	<-w.over
}

// stopFor turns the end of a context into the record of a kill.
func stopFor(cause error) stop {
	if errors.Is(cause, context.DeadlineExceeded) {
		return stop{ending: TimedOut, reason: "killed: the time for the run is over"}
	}
	return stop{ending: Killed, reason: "killed: " + cause.Error()}
}

// newAlarm returns a timer that fires after d, never for zero.
func newAlarm(d time.Duration) *time.Timer {
	if d > 0 {
		return time.NewTimer(d)
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
