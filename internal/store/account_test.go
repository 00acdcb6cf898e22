package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/solver/thread"
)

func oneOfManyAcquiresTheProbe(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	ctx := t.Context()
	leases := make([]thread.Lease, 100)
	for n := range leases {
		leases[n] = must(s.Acquire(ctx, issue(n+1), "node"))(t)
	}
	probe := func(most int) (in int) {
		var entered atomic.Int64
		var wg sync.WaitGroup
		for n, l := range leases {
			wg.Go(func() {
				ok, err := s.AcquireProbe(ctx, l, "main", most)
				if err != nil {
					t.Error(err)
				}
				if ok && entered.Add(1) == int64(1) {
					in = n
				}
			})
		}
		wg.Wait()
		if want := int64(most); entered.Load() != want {
			t.Errorf("%d entered, want %d", entered.Load(), want)
		}
		return in
	}
	first := probe(1)
	if ok := must(s.AcquireProbe(ctx, leases[first], "main", 1))(t); !ok {
		t.Error("the thread that entered could not enter again")
	}
	if ok := must(s.AcquireProbe(ctx, leases[(first+1)%100], "other", 1))(t); !ok {
		t.Error("another account was refused")
	}
	check(t, s.ReleaseProbe(ctx, leases[first], "other")) // it has no probe of that account
	if ok := must(s.AcquireProbe(ctx, leases[(first+2)%100], "main", 1))(t); ok {
		t.Error("leaving another account freed this one")
	}
	check(t, s.ReleaseProbe(ctx, leases[first], "main"))
	second := probe(1)
	check(t, s.Release(ctx, leases[second], nil))
	leases[second] = must(s.Acquire(ctx, leases[second].Thread, "node"))(t)
	third := probe(1)
	check(t, s.ReleaseProbe(ctx, leases[third], "main"))
	probe(3)
}

func runningAttemptsAreCountedByAccount(t *testing.T, dsn string) {
	s, _, clock := open(t, dsn)
	ctx := t.Context()
	for n, account := range []string{1: "main", 2: "main", 3: "spare", 4: ""} {
		if n > 0 {
			must(s.AcquireProbe(ctx, must(s.Acquire(ctx, issue(n), "node"))(t), account, 0))(t)
		}
	}
	want := map[string]int{"main": 1, "spare": 1}
	if diff := cmp.Diff(want, must(s.Running(ctx, issue(1)))(t)); diff != "" {
		t.Errorf("without the first thread (-want +got)\n%s", diff)
	}
	clock.Advance(thread.LeaseTime + time.Second)
	if got := must(s.Running(ctx, issue(9)))(t); len(got) > 0 {
		t.Errorf("%v run after their leases ended", got)
	}
}

func deadHoldersProbeIsFree(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	dead := must(s.Acquire(ctx, issue(1), "dead"))(t)
	must(s.AcquireProbe(ctx, dead, "main", 1))(t)
	c.Advance(thread.LeaseTime - time.Second)
	next := must(s.Acquire(ctx, issue(2), "next"))(t)
	if must(s.AcquireProbe(ctx, next, "main", 1))(t) {
		t.Error("entered while the holder's lease lasts")
	}
	c.Advance(2 * time.Second)
	if !must(s.AcquireProbe(ctx, next, "main", 1))(t) {
		t.Error("refused although the holder's lease ran out")
	}
	// The holder was only paused: it must not return while the next one works.
	if _, err := s.Renew(ctx, dead); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("renew: %v, want ErrLeaseLost", err)
	}
	if _, err := s.AcquireProbe(ctx, dead, "main", 9); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("enter: %v, want ErrLeaseLost", err)
	}
	if err := s.ReleaseProbe(ctx, dead, "main"); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("leave: %v, want ErrLeaseLost", err)
	}
	// Its thread continues without a probe.
	if n := must(s.Sweep(ctx))(t); n != 1 {
		t.Errorf("the sweep freed %d threads, want the dead one's", n)
	}
	again := must(s.Acquire(ctx, issue(1), "again"))(t)
	if must(s.AcquireProbe(ctx, again, "main", 1))(t) {
		t.Error("entered while the next one works")
	}
	// A node that takes over a thread does not inherit its probe.
	c.Advance(thread.LeaseTime)
	must(s.Acquire(ctx, issue(2), "heir"))(t)
	if !must(s.AcquireProbe(ctx, again, "main", 1))(t) {
		t.Error("an account was inherited with the thread")
	}
}

func probesAreUnlimitedWithoutALimit(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	for n := range 3 {
		l := must(s.Acquire(ctx, issue(n+1), "node"))(t)
		if !must(s.AcquireProbe(ctx, l, "main", 0))(t) {
			t.Error("refused without a limit")
		}
	}
	l := must(s.Acquire(ctx, issue(9), "node"))(t)
	if must(s.AcquireProbe(ctx, l, "main", 3))(t) {
		t.Error("threads that entered without a limit are not counted")
	}
	for range 2 {
		if !must(s.AcquireProbe(ctx, l, "", 1))(t) {
			t.Error("an account without a name was refused")
		}
	}
	// A holder with an expired lease continues if nobody took the thread.
	c.Advance(2 * thread.LeaseTime)
	if !must(s.AcquireProbe(ctx, l, "main", 1))(t) {
		t.Error("refused because of expired leases")
	}
	if _, err := s.Acquire(ctx, issue(9), "thief"); err == nil {
		t.Error("a lease that Enter had extended was taken")
	}
}
