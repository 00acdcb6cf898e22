package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// watch ends a process that overstays one of its bounds.
type watch struct {
	pulse chan struct{} // the agent gave a sign of life
	final chan struct{} // the final event was read
	naps  chan struct{} // the agent said something of a wait: see nap
	nap   atomic.Pointer[nap]
	over  chan struct{} // closed when the process has ended
}

// guard waits for the end of the process or of its time. It returns why it
// killed the process, or nothing.
func (w *watch) guard(ctx context.Context, p Process, o RunOptions) stop {
	total, startup, idle, linger, nap := newAlarm(o.Total), newAlarm(o.Startup), newAlarm(o.Idle), newAlarm(0), newAlarm(0)
	defer func() { total.Stop(); startup.Stop(); idle.Stop(); linger.Stop(); nap.Stop() }()
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
			if o.Idle > 0 {
				idle.Reset(o.Idle)
			}
			continue
		case <-w.final:
			linger.Reset(lingerTime)
			continue
		case <-w.naps:
			switch n := *w.nap.Load(); {
			case n.over:
				nap.Stop()
			case n.wait > longestSleep:
				why = n.stop()
			case n.wait == 0:
				nap.Reset(quietSleep)
			}
		case <-nap.C:
			why = w.nap.Load().stop()
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
