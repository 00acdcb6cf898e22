// Package lease holds a thread's lease while a step works: it renews the lease, appends to the log under it, and
// ends the step when it is lost.
//
// Holder.beat decides when it counts as lost. Holder.Confirm keeps a node that lost it from sending anything, and
// Holder.Outlast says how long an attempt outlasts a store that does not answer.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver/thread"
)

// Holder renews a lease while a step works, and ends the step's context when the lease is lost. Use Hold.
type Holder struct {
	store  thread.Store
	now    func() time.Time
	cancel context.CancelCauseFunc
	done   chan struct{}

	patient atomic.Bool // see Patient

	mu    sync.Mutex
	lease thread.Lease
	known time.Time // when the last successful renewal was sent
}

// Hold starts the heartbeat of a lease that was requested at a time. The returned context ends with ErrLeaseLost as
// its cause when another node took the thread over. The caller must call Release.
func Hold(ctx context.Context, store thread.Store, l thread.Lease, asked time.Time, now func() time.Time) (context.Context, *Holder) {
	inner, cancel := context.WithCancelCause(ctx)
	h := &Holder{store: store, now: now, cancel: cancel, done: make(chan struct{}), lease: l, known: asked}
	go h.beat(inner)
	return inner, h
}

func (h *Holder) Current() thread.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// Append appends under the lease. During an attempt it outlasts a store that does not answer, and may then have
// appended twice.
func (h *Holder) Append(ctx context.Context, b thread.Batch) error {
	return h.Outlast(ctx, func(ctx context.Context) error { return h.store.AppendLeased(ctx, h.Current(), b) })
}

func (h *Holder) Record(ctx context.Context, kind thread.Kind, data any) error {
	return h.Append(ctx, thread.Batch{Events: []thread.NewEvent{{Kind: kind, At: h.now(), Data: data}}})
}

func (h *Holder) beat(ctx context.Context) {
	defer close(h.done)
	for next := thread.HeartbeatTime; wait.For(ctx, next) == nil; {
		err := h.Renew(ctx)
		if errors.Is(err, thread.ErrLeaseLost) || err != nil && h.unconfirmed() > h.patience() {
			h.cancel(thread.ErrLeaseLost)
			return
		}
		next = thread.HeartbeatTime
		if err != nil {
			next = askAgain
		}
	}
}

// RenewTime limits one heartbeat, so that a hanging store is noticed well before the lease runs out.
const RenewTime = 5 * time.Second

// Renew extends the lease at once, or returns ErrLeaseLost.
func (h *Holder) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, RenewTime)
	defer cancel()
	asked := time.Now()
	l, err := h.store.Renew(ctx, h.Current())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease, h.known = l, asked
	return nil
}

// unconfirmed is how long ago the lease was known to be ours. The process may have been stopped and the machine
// suspended: the monotonic clock sees the first, the wall clock the second, and the longer time counts.
func (h *Holder) unconfirmed() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return max(now.Sub(h.known), now.Round(0).Sub(h.known.Round(0)))
}

// freshTime is how long a lease counts as ours without asking: a heartbeat on time is younger. Half of the lease is
// left for the act.
const freshTime = thread.HeartbeatTime + RenewTime

// Confirm is called right before each visible act. A process that was stopped for longer than its lease continues
// anywhere when it is resumed, also right before a push, and the heartbeat may notice only later. Confirm renews a
// lease that is still ours and ends the step otherwise.
//
// A confirmed act may still be stopped on its way: at most one request. Such a push names the branch's old commit,
// so it fails once the next holder has pushed, and that holder merges it otherwise.
func (h *Holder) Confirm(ctx context.Context) error {
	if h.unconfirmed() <= freshTime {
		return nil
	}
	err := h.Outlast(ctx, h.Renew)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // the act is not wanted any more
	}
	h.cancel(thread.ErrLeaseLost)
	return fmt.Errorf("%w: nothing more is sent (%w)", thread.ErrLeaseLost, err)
}

// Release ends the heartbeat and releases the lease, also while the process stops. retry is nil after a finished
// step.
func (h *Holder) Release(retry thread.Retry) {
	h.cancel(nil)
	<-h.done
	ctx, cancel := context.WithTimeout(context.Background(), StopTime)
	defer cancel()
	crash.Point("releasing")
	// An unreleased lease runs out by itself, and the sweep finds its thread.
	_ = h.store.Release(ctx, h.Current(), retry)
	crash.Point("released")
}

// How long a step continues while the store does not answer. Usually it ends before another node can take its
// lease. An attempt continues for attemptPatience: redoing it costs an agent's run, and a database that restarts or
// moves is back by then. Mostly no other node reaches the store either. If one takes the thread over, this attempt
// can append and send nothing, and ends when the store answers.
const (
	stepPatience    = thread.LeaseTime - thread.HeartbeatTime
	attemptPatience = 2 * time.Minute
)

// How often to ask a store that did not answer about the lease, and how often to repeat an attempt's write. After
// the store is back the sweep leaves leases alone for longer than both, even if a renewal hangs first.
const (
	askAgain   = time.Second
	writeAgain = 250 * time.Millisecond
)

// StopTime limits what a stopping process still writes: well within its 30 s to exit.
const StopTime = 5 * time.Second

// Patient switches to an attempt's patience, or back to a step's.
func (h *Holder) Patient(on bool) { h.patient.Store(on) }

// patience is how long the lease counts as ours without an answer.
func (h *Holder) patience() time.Duration {
	if h.patient.Load() {
		return attemptPatience
	}
	return stepPatience
}

// Outlast calls do. During an attempt it repeats do until the store answers, for attemptPatience at most; an
// earlier call may have had its effect.
func (h *Holder) Outlast(ctx context.Context, do func(context.Context) error) error {
	if h.patience() == stepPatience {
		return do(ctx)
	}
	for began := time.Now(); ; {
		err := Within(ctx, thread.LeaseTime, do)
		if err == nil || errors.Is(err, thread.ErrLeaseLost) || time.Since(began) > attemptPatience {
			return err
		}
		if ended := wait.For(ctx, writeAgain); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// Within limits one call's time, since a hanging store would never return.
func Within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

// AfterStop is a context that lasts for StopTime after ctx has ended, for the last writes.
func AfterStop(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(StopTime, cancel) })
	return inner, func() { stop(); cancel() }
}
