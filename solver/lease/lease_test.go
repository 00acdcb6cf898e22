package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// leases is a store that renews leases until another node takes over.
type leases struct {
	thread.Store
	taken, down atomic.Bool
	renewals    atomic.Int64
}

var errDown = errors.New("the database does not answer")

func (l *leases) Renew(_ context.Context, lease thread.Lease) (thread.Lease, error) {
	l.renewals.Add(1)
	switch {
	case l.taken.Load():
		return thread.Lease{}, thread.ErrLeaseLost
	case l.down.Load():
		return thread.Lease{}, errDown
	}
	lease.Until = time.Now().Add(thread.LeaseTime)
	return lease, nil
}

func (l *leases) Release(context.Context, thread.Lease, thread.Retry) error { return nil }

// paused returns a holder whose heartbeat stopped for a while, like a suspended process in which another goroutine
// continues first.
func paused(ctx context.Context, s thread.Store, d time.Duration) (context.Context, *Holder) {
	inner, cancel := context.WithCancelCause(ctx)
	return inner, &Holder{store: s, now: time.Now, cancel: cancel, known: time.Now().Add(-d)}
}

func TestHolderPausedBeyondItsLeaseSendsNothing(t *testing.T) {
	s := &leases{}
	s.taken.Store(true)
	ctx, h := paused(t.Context(), s, 2*thread.LeaseTime)
	if err := h.Confirm(ctx); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("confirm: %v, want a lost lease", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, thread.ErrLeaseLost) {
		t.Errorf("the step continues (%v)", cause)
	}
}

func TestPausedHolderWithItsLeaseContinues(t *testing.T) {
	s := &leases{}
	ctx, h := paused(t.Context(), s, 2*thread.LeaseTime)
	for range 2 {
		if err := h.Confirm(ctx); err != nil {
			t.Fatalf("confirm: %v", err)
		}
	}
	if n := s.renewals.Load(); n != 1 || ctx.Err() != nil {
		t.Errorf("%d renewals, %v; want one that also covers the second act", n, ctx.Err())
	}
}

func TestUnconfirmedLeaseSendsNothing(t *testing.T) {
	s := &leases{}
	s.down.Store(true)
	ctx, h := paused(t.Context(), s, freshTime+time.Second)
	if err := h.Confirm(ctx); !errors.Is(err, thread.ErrLeaseLost) || !errors.Is(err, errDown) {
		t.Errorf("confirm: %v, want the error of the unavailable database", err)
	}
}

func TestSuspensionIsSeenByTheWallClock(t *testing.T) {
	s := &leases{}
	s.taken.Store(true)
	ctx, h := paused(t.Context(), s, 0)
	h.known = h.known.Round(0).Add(-time.Minute) // the monotonic clock stood still
	if err := h.Confirm(ctx); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("confirm: %v, want a lost lease", err)
	}
}

func TestFreshLeaseNeedsNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		ctx, h := Hold(t.Context(), s, thread.Lease{}, time.Now(), time.Now)
		for range 100 {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			before := s.renewals.Load()
			if err := h.Confirm(ctx); err != nil || s.renewals.Load() != before {
				t.Fatalf("confirm: %v after %d renewals; want none by Confirm", err, s.renewals.Load()-before)
			}
		}
		s.taken.Store(true)
		time.Sleep(thread.HeartbeatTime)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), thread.ErrLeaseLost) {
			t.Error("the heartbeat did not notice the lost lease")
		}
		h.Release(nil)
	})
}

func TestOutageOfTwoHeartbeatsEndsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		s.down.Store(true)
		ctx, h := Hold(t.Context(), s, thread.Lease{}, time.Now(), time.Now)
		time.Sleep(2 * thread.HeartbeatTime)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("the step ended although its lease lasts")
		}
		time.Sleep(thread.HeartbeatTime)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), thread.ErrLeaseLost) {
			t.Error("the step continues without a lease")
		}
		h.Release(nil)
	})
}

func TestAttemptOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		ctx, h := Hold(t.Context(), s, thread.Lease{}, time.Now(), time.Now)
		h.Patient(true)
		s.down.Store(true)
		time.Sleep(attemptPatience - thread.HeartbeatTime)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatalf("the attempt ended: %v", context.Cause(ctx))
		}
		s.down.Store(false)
		time.Sleep(askAgain)
		synctest.Wait()
		if old := h.unconfirmed(); old > askAgain {
			t.Errorf("the lease was renewed %s ago, and the database has been back for %s", old, askAgain)
		}
		h.Release(nil)
	})
}

func TestLongOutageOrTakeoverEndsTheAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		taken bool
		after time.Duration
	}{
		"is not back":    {after: attemptPatience},
		"was taken over": {taken: true, after: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &leases{}
				ctx, h := Hold(t.Context(), s, thread.Lease{}, time.Now(), time.Now)
				h.Patient(true)
				s.down.Store(true)
				time.Sleep(thread.HeartbeatTime + c.after)
				s.taken.Store(c.taken)
				time.Sleep(2 * askAgain)
				synctest.Wait()
				if !errors.Is(context.Cause(ctx), thread.ErrLeaseLost) {
					t.Errorf("the attempt continues (%v)", context.Cause(ctx))
				}
				h.Release(nil)
			})
		})
	}
}

func TestAttemptsActWaitsForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		s.down.Store(true)
		ctx, h := paused(t.Context(), s, 2*thread.LeaseTime)
		h.Patient(true)
		time.AfterFunc(time.Minute, func() { s.down.Store(false) })
		if err := h.Confirm(ctx); err != nil || ctx.Err() != nil {
			t.Errorf("confirm: %v, and the step: %v", err, ctx.Err())
		}
	})
}

// Questions are answered in the background of an attempt. The attempt's end also ends the answer.
func TestAbandonedActEndsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		s.down.Store(true)
		ctx, h := paused(t.Context(), s, 2*thread.LeaseTime)
		h.Patient(true)
		act, giveUp := context.WithTimeout(ctx, time.Second)
		defer giveUp()
		if err := h.Confirm(act); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, thread.ErrLeaseLost) || ctx.Err() != nil {
			t.Errorf("confirm: %v, and the step: %v; want only the act to end", err, ctx.Err())
		}
	})
}
