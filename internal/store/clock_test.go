package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// aClockThatWasAYearAheadHoldsNothing: what was written then has times that are
// a year off, and none of it may wait for a year.
func aClockThatWasAYearAheadHoldsNothing(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	const year = 365 * 24 * time.Hour
	c.Advance(year)
	must(s.Acquire(ctx, issue(1), "dead", c.Now()))(t)
	must(s.Append(ctx, issue(2), true, event("", "woken by a wrong clock")))(t)
	must(s.Receive(ctx, thread.Delivery{GUID: "g", Event: "ping", ReceivedAt: c.Now()}))(t)
	c.Advance(-year)
	if _, err := s.Acquire(ctx, issue(1), "node", c.Now()); err == nil {
		t.Error("a lease was taken that may be held")
	}
	wantDue(t, s, 2)
	must(s.Sweep(ctx, c.Now()))(t)
	c.Advance(thread.LeaseTime)
	if n := must(s.Sweep(ctx, c.Now()))(t); n != 1 {
		t.Errorf("%d threads are freed when the dead holder's lease must be over, want 1", n)
	}
	must(s.Acquire(ctx, issue(1), "node", c.Now()))(t)
	c.Advance(time.Hour)
	if n := claimed(t, s); n != 1 {
		t.Errorf("%d deliveries are due after an hour, want the one of the wrong clock", n)
	}
}

// aClockThatIsSetMovesNoLease: somebody sets the machine's clock while steps run.
func aClockThatIsSetMovesNoLease(t *testing.T, dsn string) {
	for name, by := range map[string]time.Duration{
		"an hour forward": time.Hour, "an hour back": -time.Hour, "a year forward": 8766 * time.Hour, "a year back": -8766 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			c := newClock()
			started := c.Now()
			machine := func() time.Time { return time.Now().Add(c.Now().Sub(started)) }
			s := must(store.Open(ctx, dsn, store.Options{Now: machine, Wall: machine}))(t)
			defer s.Close()
			s.UseQueue(&recorder{})
			th := thread.ID{Owner: "octo", Name: name, Number: 1}
			l := must(s.Acquire(ctx, th, "node", machine()))(t)
			must(s.AcquireProbe(ctx, l, name, 1, machine()))(t)
			c.Advance(by)
			if n := must(s.Sweep(ctx, machine()))(t); n != 0 {
				t.Errorf("the sweep freed %d threads", n)
			}
			if _, err := s.Acquire(ctx, th, "thief", machine()); err == nil {
				t.Error("the lease was taken")
			}
			other := must(s.Acquire(ctx, thread.ID{Owner: "octo", Name: name, Number: 2}, "node", machine()))(t)
			if must(s.AcquireProbe(ctx, other, name, 1, machine()))(t) {
				t.Error("the account was entered")
			}
			l = must(s.Renew(ctx, l, machine()))(t)
			if off := (s.Skew() + by).Abs(); off > time.Minute {
				t.Errorf("the clock was set by %s, and the store noticed %s", by, s.Skew())
			}
			c.Advance(-by)
			if _, err := s.Acquire(ctx, th, "thief", machine()); err == nil {
				t.Error("the lease was taken after the clock was set right")
			}
			check(t, s.Release(ctx, l, nil))
			check(t, s.Release(ctx, other, nil))
		})
	}
}

// aWrongClockStealsNothing: two nodes, one of them an hour off.
func aWrongClockStealsNothing(t *testing.T, dsn string) {
	for name, by := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			wrong := func() time.Time { return time.Now().Add(by) }
			right := must(store.Open(ctx, dsn, store.Options{}))(t)
			defer right.Close()
			off := must(store.Open(ctx, dsn, store.Options{Now: wrong, Wall: wrong}))(t)
			defer off.Close()
			th := func(n int) thread.ID { return thread.ID{Owner: "octo", Name: name, Number: n} }
			held := must(right.Acquire(ctx, th(1), "right", time.Now()))(t)
			must(right.AcquireProbe(ctx, held, name, 1, time.Now()))(t)
			if _, err := off.Acquire(ctx, th(1), "off", wrong()); !isHeld(err) {
				t.Errorf("the node that is off takes a lease: %v", err)
			}
			l := must(off.Acquire(ctx, th(2), "off", wrong()))(t)
			if must(off.AcquireProbe(ctx, l, name, 1, wrong()))(t) {
				t.Error("the node that is off enters an account that is in use")
			}
			for _, l := range []thread.Lease{l, must(off.Renew(ctx, l, wrong()))(t)} {
				if left := time.Until(l.Until); left < 0 || left > thread.LeaseTime+time.Second {
					t.Errorf("the node that is off holds a lease for another %s", left)
				}
			}
			if _, err := right.Acquire(ctx, th(2), "right", time.Now()); !isHeld(err) {
				t.Errorf("the lease of the node that is off does not hold: %v", err)
			}
			if n := must(off.Sweep(ctx, wrong()))(t); n != 0 {
				t.Errorf("the sweep of the node that is off freed %d threads", n)
			}
			must(right.Renew(ctx, held, time.Now()))(t)
			if right.Skew() != 0 || (off.Skew()+by).Abs() > time.Minute {
				t.Errorf("the nodes are said to be %s and %s off", right.Skew(), off.Skew())
			}
		})
	}
}

func isHeld(err error) bool {
	_, held := errors.AsType[*thread.HeldError](err)
	return held
}
