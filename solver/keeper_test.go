package solver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// leases is a store that renews until the lease is taken.
type leases struct {
	Store
	taken, down atomic.Bool
	renewals    atomic.Int64
}

var errDown = errors.New("the database does not answer")

func (l *leases) Renew(_ context.Context, lease Lease, now time.Time) (Lease, error) {
	l.renewals.Add(1)
	switch {
	case l.taken.Load():
		return Lease{}, ErrLeaseLost
	case l.down.Load():
		return Lease{}, errDown
	}
	lease.Until = now.Add(LeaseTime)
	return lease, nil
}

func (l *leases) Release(context.Context, Lease) error { return nil }

// paused is a keeper whose heartbeat has stood still for a time, as that of a
// process that was stopped and goes on with another goroutine first.
func paused(ctx context.Context, s Store, d time.Duration) (context.Context, *keeper) {
	inner, cancel := context.WithCancelCause(ctx)
	return inner, &keeper{store: s, now: time.Now, cancel: cancel, known: time.Now().Add(-d)}
}

func TestWhoWasStoppedForLongerThanItsLeaseSendsNothing(t *testing.T) {
	s := &leases{}
	s.taken.Store(true)
	ctx, k := paused(t.Context(), s, 2*LeaseTime)
	if err := k.confirm(ctx); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("confirm: %v, want that the lease was lost", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ErrLeaseLost) {
		t.Errorf("the step goes on (%v)", cause)
	}
}

func TestWhoWasStoppedAndStillHasItsLeaseGoesOn(t *testing.T) {
	s := &leases{}
	ctx, k := paused(t.Context(), s, 2*LeaseTime)
	for range 2 {
		if err := k.confirm(ctx); err != nil {
			t.Fatalf("confirm: %v", err)
		}
	}
	if n := s.renewals.Load(); n != 1 || ctx.Err() != nil {
		t.Errorf("%d renewals, %v; want one, which the second act goes by", n, ctx.Err())
	}
}

func TestWithoutAnAnswerAboutAnOldLeaseNothingIsSent(t *testing.T) {
	s := &leases{}
	s.down.Store(true)
	ctx, k := paused(t.Context(), s, freshTime+time.Second)
	if err := k.confirm(ctx); !errors.Is(err, ErrLeaseLost) || !errors.Is(err, errDown) {
		t.Errorf("confirm: %v, want that nothing is sent because the database is down", err)
	}
}

func TestASuspendedMachineIsSeenByItsClock(t *testing.T) {
	s := &leases{}
	s.taken.Store(true)
	ctx, k := paused(t.Context(), s, 0)
	k.known = k.known.Round(0).Add(-time.Minute) // the monotonic clock stood still
	if err := k.confirm(ctx); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("confirm: %v, want that the lease was lost", err)
	}
}

func TestALeaseThatIsRenewedInTimeNeedsNoAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		ctx, k := keep(t.Context(), s, Lease{}, time.Now(), time.Now)
		for range 100 {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			before := s.renewals.Load()
			if err := k.confirm(ctx); err != nil || s.renewals.Load() != before {
				t.Fatalf("confirm: %v after %d renewals; want none of its own", err, s.renewals.Load()-before)
			}
		}
		s.taken.Store(true)
		time.Sleep(HeartbeatTime)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
			t.Error("the heartbeat did not notice that the lease is lost")
		}
		k.release(nil)
	})
}

func TestADatabaseThatIsDownForTwoHeartbeatsEndsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		s.down.Store(true)
		ctx, k := keep(t.Context(), s, Lease{}, time.Now(), time.Now)
		time.Sleep(2 * HeartbeatTime)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("the step ended although its lease lasts")
		}
		time.Sleep(HeartbeatTime)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
			t.Error("the step goes on without a lease")
		}
		k.release(nil)
	})
}
