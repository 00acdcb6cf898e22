// Package lease holds a thread's lease while a step works: it renews the lease,
// appends to the log under it, and ends the step when it is lost.
//
// How it counts as lost stands at Holder.beat, what keeps a node that lost it from sending anything at
// Holder.Confirm, and how long an attempt outlasts a store that does not answer at Holder.Outlast.
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

// Holder renews a lease while a step works, and ends the step's context when the
// lease is lost. Make one with Hold.
type Holder struct {
	store  thread.Store
	now    func() time.Time
	cancel context.CancelCauseFunc
	done   chan struct{}

	patient atomic.Bool // as Patient says

	mu    sync.Mutex
	lease thread.Lease
	known time.Time // when the store was asked that last said that the lease is ours
}

// Hold starts the heartbeat for a lease that was asked for at a time. The returned context ends with
// ErrLeaseLost as its cause when another node took the thread over. The caller must call Release.
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

// Append appends under the lease. During an attempt it outlasts a store that does
// not answer, and may have appended the same before.
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

// RenewTime bounds one heartbeat, so that a store that hangs is noticed well before the lease runs out.
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

// unconfirmed is how long ago the lease was known to be ours. The process may
// have been stopped meanwhile, and the machine suspended: the monotonic clock
// sees the first, the machine's clock the second, and the longer time counts.
func (h *Holder) unconfirmed() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return max(now.Sub(h.known), now.Round(0).Sub(h.known.Round(0)))
}

// freshTime is how long a lease counts as ours without asking: a heartbeat that
// was on time is younger. Half of the lease is left then for what is sent.
const freshTime = thread.HeartbeatTime + RenewTime

// Confirm is asked right before each act that others can see. A process that was stopped for longer than its
// lease goes on at any place when it is woken, also right before a push; the heartbeat may notice only after
// it. A lease that is still ours is renewed, and one that is not ends the step.
//
// What is left is an act that was confirmed and is stopped on its way: at most
// one request. A push of it names the branch's old commit, so that it fails once
// the next holder has pushed, and is merged by that holder otherwise.
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
	return fmt.Errorf("%w: nothing is sent any more (%w)", thread.ErrLeaseLost, err)
}

// Release ends the heartbeat and gives the lease back, also when the process is
// stopping. retry is nil after a step that did all there was to do.
func (h *Holder) Release(retry thread.Retry) {
	h.cancel(nil)
	<-h.done
	ctx, cancel := context.WithTimeout(context.Background(), StopTime)
	defer cancel()
	crash.Point("releasing")
	// A lease that cannot be given back runs out by itself, and the sweep then finds its thread.
	_ = h.store.Release(ctx, h.Current(), retry)
	crash.Point("released")
}

// How long a step works on with a store that does not answer. Ordinarily it ends before another node can have
// taken its lease. An attempt goes on for attemptPatience: to make it anew costs a run of its agent, and a
// database that restarts or changes its machine is back by then. Mostly nobody else reaches it meanwhile,
// either; where somebody does and takes the thread over, this attempt can append and send nothing, and ends
// as soon as the store answers.
const (
	stepPatience    = thread.LeaseTime - thread.HeartbeatTime
	attemptPatience = 2 * time.Minute
)

// How often a store that did not answer is asked again whether the lease is still
// ours, and for what an attempt has to write down. When the store is back the sweep
// leaves leases alone for longer than both, also where a renewal hangs first.
const (
	askAgain   = time.Second
	writeAgain = 250 * time.Millisecond
)

// StopTime bounds what a stopping process still writes: well within the 30 s that it has to exit.
const StopTime = 5 * time.Second

// Patient has the lease kept as an attempt's, or as an ordinary step's again.
func (h *Holder) Patient(on bool) { h.patient.Store(on) }

// patience is for how long the lease counts as ours without an answer.
func (h *Holder) patience() time.Duration {
	if h.patient.Load() {
		return attemptPatience
	}
	return stepPatience
}

// Outlast does something with the store. During an attempt it is tried again until the store answers, for
// attemptPatience at most; do may have had its effect before without an answer.
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

// Within bounds one call, which a store that hangs would keep for ever.
func Within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

// AfterStop is a context that goes on for StopTime when ctx has ended, for what
// must still be written down then.
func AfterStop(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(StopTime, cancel) })
	return inner, func() { stop(); cancel() }
}
