package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// aWrongClockStealsNothing runs two nodes, one with a clock that is an hour wrong.
func aWrongClockStealsNothing(t *testing.T, dsn string) {
	for name, by := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			wrong := func() time.Time { return time.Now().Add(by) }
			right := must(store.Open(ctx, dsn, store.Options{}))(t)
			defer right.Close()
			off := must(store.Open(ctx, dsn, store.Options{Now: wrong}))(t)
			defer off.Close()
			th := func(n int) thread.ID { return thread.ID{Owner: "octo", Name: name, Number: n} }
			held := must(right.Acquire(ctx, th(1), "right"))(t)
			must(right.AcquireProbe(ctx, held, name, 1))(t)
			if _, err := off.Acquire(ctx, th(1), "off"); !isHeld(err) {
				t.Errorf("the node with the wrong clock took a lease: %v", err)
			}
			l := must(off.Acquire(ctx, th(2), "off"))(t)
			if must(off.AcquireProbe(ctx, l, name, 1))(t) {
				t.Error("the node with the wrong clock entered an account in use")
			}
			for _, l := range []thread.Lease{l, must(off.Renew(ctx, l))(t)} {
				if left := time.Until(l.Until); left < 0 || left > thread.LeaseTime+time.Second {
					t.Errorf("the lease of the node with the wrong clock lasts another %s", left)
				}
			}
			if _, err := right.Acquire(ctx, th(2), "right"); !isHeld(err) {
				t.Errorf("the lease of the node with the wrong clock was lost: %v", err)
			}
			if n := must(off.Sweep(ctx))(t); n != 0 {
				t.Errorf("the sweep of the node with the wrong clock freed %d threads", n)
			}
			must(right.Renew(ctx, held))(t)
			if right.Skew().Abs() > time.Second || (off.Skew()+by).Abs() > time.Second {
				t.Errorf("the nodes' clocks are reported as %s and %s off", right.Skew(), off.Skew())
			}
		})
	}
}

// aWrongClockPutsNothingOff: work stored by a node with a wrong clock is due for other nodes on time.
func aWrongClockPutsNothingOff(t *testing.T, dsn string) {
	for name, by := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			right := must(store.Open(ctx, dsn, store.Options{}))(t)
			defer right.Close()
			off := must(store.Open(ctx, dsn, store.Options{Now: func() time.Time { return time.Now().Add(by) }}))(t)
			defer off.Close()
			if left := time.Since(off.Now()).Abs(); left > time.Second {
				t.Errorf("the node with the wrong clock takes %s for now", off.Now())
			}
			failed := thread.ID{Owner: "octo", Name: name, Number: 1}
			l := must(off.Acquire(ctx, failed, "off"))(t)
			check(t, off.Release(ctx, l, func(int) time.Duration { return 20 * time.Millisecond }))
			must(off.Receive(ctx, thread.Delivery{GUID: name, Event: "ping", ReceivedAt: off.Now()}))(t)
			check(t, off.FinishDelivery(ctx, name, thread.Failed, "Bad credentials"))
			woken := thread.ID{Owner: "octo", Name: name, Number: 2}
			must(off.Append(ctx, woken, true, event("", 1)))(t)
			time.Sleep(1100 * time.Millisecond)
			var claimed []int
			for _, l := range must(right.Claim(ctx, "right", 10))(t) {
				claimed = append(claimed, l.Thread.Number)
			}
			if len(claimed) != 2 {
				t.Errorf("threads %v are due, want the retried and the woken one", claimed)
			}
			if d := must(right.ClaimDeliveries(ctx, 10))(t); len(d) != 1 {
				t.Errorf("%d deliveries are due, want the one that failed", len(d))
			}
		})
	}
}

func isHeld(err error) bool {
	_, held := errors.AsType[*thread.LeaseHeldError](err)
	return held
}
