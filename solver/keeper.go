package solver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
)

// keeper renews a lease while a step works, and ends the step's context when the
// lease is lost.
type keeper struct {
	store  Store
	now    func() time.Time
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu    sync.Mutex
	lease Lease
	known time.Time // when the store was asked that last said that the lease is ours
	held  bool      // as hold says
}

// keep starts the heartbeat for a lease that was asked for at a time. The
// returned context ends with ErrLeaseLost as its cause when another node took the
// thread over; what is written to GitHub with it is fenced by confirm.
func keep(ctx context.Context, store Store, l Lease, asked time.Time, now func() time.Time) (context.Context, *keeper) {
	inner, cancel := context.WithCancelCause(ctx)
	k := &keeper{store: store, now: now, cancel: cancel, done: make(chan struct{}), lease: l, known: asked}
	go k.beat(inner)
	return forge.WithFence(inner, k.confirm), k
}

func (k *keeper) current() Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease
}

func (k *keeper) beat(ctx context.Context) {
	defer close(k.done)
	next := time.NewTimer(HeartbeatTime)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		err := k.renew(ctx)
		if errors.Is(err, ErrLeaseLost) || err != nil && k.unconfirmed() > k.patience() {
			k.cancel(ErrLeaseLost)
			return
		}
		if err != nil {
			next.Reset(askAgain)
			continue
		}
		next.Reset(HeartbeatTime)
	}
}

// renewTime bounds one heartbeat, so that a store that hangs is noticed well
// before the lease runs out.
const renewTime = 5 * time.Second

func (k *keeper) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	asked := time.Now()
	l, err := k.store.Renew(ctx, k.current(), k.now())
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lease, k.known = l, asked
	return nil
}

// unconfirmed is how long ago the lease was known to be ours. The process may
// have been stopped meanwhile, and the machine suspended: the monotonic clock
// sees the first, the machine's clock the second, and the longer time counts.
func (k *keeper) unconfirmed() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	return max(now.Sub(k.known), now.Round(0).Sub(k.known.Round(0)))
}

// freshTime is how long a lease counts as ours without asking: a heartbeat that
// was on time is younger. Half of the lease is left then for what is sent.
const freshTime = HeartbeatTime + renewTime

// confirm is asked right before each act that others can see. A process that was
// stopped for longer than its lease goes on at any place when it is woken, also
// right before a push; the heartbeat may notice only after it. A lease that is
// still ours is renewed, and one that is not ends the step.
//
// What is left is an act that was confirmed and is stopped on its way: at most
// one request. A push of it names the branch's old commit, so that it fails once
// the next holder has pushed, and is merged by that holder otherwise.
func (k *keeper) confirm(ctx context.Context) error {
	if k.unconfirmed() <= freshTime {
		return nil
	}
	err := k.outlast(ctx, k.renew)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // nobody wants the act any more
	}
	k.cancel(ErrLeaseLost)
	return fmt.Errorf("%w: nothing is sent any more (%w)", ErrLeaseLost, err)
}

// lost tells the log when a step ends because its lease is gone.
func (s *step) lost(ctx context.Context, err error) error {
	if errors.Is(err, ErrLeaseLost) || errors.Is(context.Cause(ctx), ErrLeaseLost) {
		s.log.Warn().Err(ErrLeaseLost).Msg("this node stops working on the thread; who holds the lease goes on")
	}
	return err
}

// release ends the heartbeat and gives the lease back, also when the process is
// stopping. retry is nil after a step that did all there was to do.
func (k *keeper) release(retry Retry) {
	k.cancel(nil)
	<-k.done
	ctx, cancel := context.WithTimeout(context.Background(), timeoutAfterStop)
	defer cancel()
	crash.Point("releasing")
	// A lease that cannot be given back runs out by itself, and the sweep then finds
	// its thread.
	if retry == nil {
		_ = k.store.Release(ctx, k.current())
	} else {
		_ = k.store.ReleaseUnfinished(ctx, k.current(), retry)
	}
	crash.Point("released")
}
