// Package lease renews a thread's lease while a step works, appends under it, and ends the step when it is lost.
// Holder.Confirm stops acts under a lost lease; Holder.Outlast lets attempts survive an outage of the store.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/panics"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver/thread"
)

// Holder renews a lease and ends the step's context when the lease is lost. Use Hold.
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

// Hold starts the heartbeat of a lease that was requested at asked. The returned context ends with ErrLeaseLost when
// another node takes over or the store stays unreachable. The caller must call Release.
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

// Append appends under the lease. During an attempt it retries while the store is down, and may append twice.
func (h *Holder) Append(ctx context.Context, b thread.Batch) error {
	return h.Outlast(ctx, func(ctx context.Context) error { return h.store.AppendLeased(ctx, h.Current(), b) })
}

func (h *Holder) Record(ctx context.Context, kind thread.Kind, data any) error {
	return h.Append(ctx, thread.Batch{Events: []thread.NewEvent{{Kind: kind, At: h.now(), Data: data}}})
}

func (h *Holder) beat(ctx context.Context) {
	defer close(h.done)
	for next := thread.HeartbeatTime; wait.For(ctx, next) == nil; {
		err := panics.Try(func() error { return h.Renew(ctx) })
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

// RenewTime limits a heartbeat, so that a hanging store shows before the lease ends.
const RenewTime = 5 * time.Second

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

// unconfirmed returns how long ago the lease was known to be ours. It uses the monotonic or the wall clock, whichever
// shows more time.
func (h *Holder) unconfirmed() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return max(now.Sub(h.known), now.Round(0).Sub(h.known.Round(0)))
}

// freshTime is how long a lease counts as ours without asking the store. Half of the lease remains for the act.
const freshTime = thread.HeartbeatTime + RenewTime

// Confirm is called right before each visible act, because a process may resume after its lease ended. Confirm renews
// the lease or ends the step.
//
// One request that was confirmed earlier may still be in flight. A push names the branch's old commit, so it fails
// once the next holder has pushed.
func (h *Holder) Confirm(ctx context.Context) error {
	if h.unconfirmed() <= freshTime {
		return nil
	}
	err := h.Outlast(ctx, h.Renew)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // nobody wants the act any more
	}
	h.cancel(thread.ErrLeaseLost)
	return fmt.Errorf("%w: nothing more is sent (%w)", thread.ErrLeaseLost, err)
}

// Release ends the heartbeat and releases the lease, even while the process stops. retry is nil after success.
func (h *Holder) Release(retry thread.Retry) {
	h.cancel(nil)
	<-h.done
	ctx, cancel := context.WithTimeout(context.Background(), StopTime)
	defer cancel()
	crash.Point("releasing")
	// An unreleased lease expires, and the sweep finds its thread.
	_ = h.store.Release(ctx, h.Current(), retry)
	crash.Point("released")
}

// How long a step continues without the store. Steps end before another node can take the lease. Attempts continue
// for attemptPatience, since redoing them costs an agent's run. After a takeover they can append and send nothing.
const (
	stepPatience    = thread.LeaseTime - thread.HeartbeatTime
	attemptPatience = 2 * time.Minute
)

// Intervals for checking the lease without the store, and for repeating an attempt's write. After an outage the sweep
// waits longer than both.
const (
	askAgain   = time.Second
	writeAgain = 250 * time.Millisecond
)

// StopTime limits the last writes of a stopping process, within its 30 s to exit.
const StopTime = 5 * time.Second

// Patient switches between an attempt's and a step's patience. It returns whether the attempt's patience was on before.
func (h *Holder) Patient(on bool) (before bool) { return h.patient.Swap(on) }

func (h *Holder) patience() time.Duration {
	if h.patient.Load() {
		return attemptPatience
	}
	return stepPatience
}

// Outlast calls do. During an attempt it retries do for attemptPatience while the store is down; earlier calls may have
// taken effect.
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

// Within limits the time of a call, since a hanging store never returns.
func Within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

// AfterStop returns a context that outlives ctx by StopTime.
func AfterStop(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(StopTime, cancel) })
	return inner, func() { stop(); cancel() }
}
