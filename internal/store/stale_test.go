package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

func theSweepWakesWhatWasLost(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	sweep := func(threads, deliveries int) {
		t.Helper()
		want := store.Woken{Threads: threads, Deliveries: deliveries}
		if diff := cmp.Diff(want, must(s.Stale(ctx, c.Now()))(t)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		steps, guids := r.take()
		if len(steps) != threads || len(guids) != deliveries {
			t.Errorf("%d steps and %d deliveries were enqueued, want %d and %d", len(steps), len(guids), threads, deliveries)
		}
	}
	must(s.Append(ctx, thread(1), true, event("", "queued, and the job is lost")))(t)
	must(s.Acquire(ctx, thread(2), "dead", c.Now()))(t)
	l := must(s.Acquire(ctx, thread(3), "node", c.Now()))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{WakeAt: c.Now().Add(10 * time.Second)}))
	check(t, s.Release(ctx, l))
	must(s.Acquire(ctx, thread(4), "alive", c.Now()))(t)
	must(s.Append(ctx, thread(4), true, event("", "queued behind a running step")))(t)
	must(s.Receive(ctx, solver.Delivery{GUID: "g", Event: "ping", ReceivedAt: c.Now()}))(t)
	r.take()

	c.Advance(10 * time.Second)
	sweep(0, 0)
	c.Advance(2 * time.Second)
	sweep(1, 0) // thread 3: its time has passed
	c.Advance(8 * time.Second)
	sweep(1, 0) // thread 1: queued 20 s ago
	c.Advance(10 * time.Second)
	sweep(2, 1) // threads 2 and 4 (their leases ran out), the delivery
	c.Advance(time.Millisecond)
	sweep(0, 0) // nothing twice

	l = must(s.Acquire(ctx, thread(5), "node", c.Now()))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{WakeAt: c.Now().Add(365 * 24 * time.Hour)}))
	check(t, s.Release(ctx, l))
	r.take()    // the step of a year from now, which the wait brought
	sweep(1, 0) // thread 5: it waits longer than anything may, so a clock was wrong
}

func theSweepDoesNotFloodABacklog(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	for n := range 3 {
		must(s.Append(ctx, thread(n+1), true, event("", n)))(t)
		must(s.Receive(ctx, solver.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()}))(t)
	}
	r.take()
	for range 24 * 60 { // a day of sweeps, a minute apart
		c.Advance(time.Minute)
		must(s.Stale(ctx, c.Now()))(t)
	}
	steps, guids := r.take()
	// A delivery is given out for 150 s; whoever has it already does not take it again.
	most, mostDeliveries := 3*(8+24), 3*24*60*60/150
	if len(steps) == 0 || len(steps) > most || len(guids) == 0 || len(guids) > mostDeliveries {
		t.Errorf("%d steps and %d deliveries were given out again, want 1 to %d and 1 to %d", len(steps), len(guids), most, mostDeliveries)
	}
}

func statsCount(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	empty := store.Stats{Deliveries: map[solver.DeliveryState]int{}}
	if diff := cmp.Diff(empty, must(s.Stats(ctx))(t)); diff != "" {
		t.Errorf("empty (-want +got)\n%s", diff)
	}
	must(s.Append(ctx, thread(1), true, event("", 1)))(t)
	l := must(s.Acquire(ctx, thread(2), "node", c.Now()))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{WakeAt: c.Now().Add(time.Hour)}))
	for _, guid := range []string{"a", "b", "c"} {
		must(s.Receive(ctx, solver.Delivery{GUID: guid, Event: "ping", ReceivedAt: c.Now()}))(t)
	}
	check(t, s.FinishDelivery(ctx, "b", solver.Handled, ""))
	check(t, s.FinishDelivery(ctx, "c", solver.Unparsable, "no JSON"))
	c.Advance(7 * time.Second)
	want := store.Stats{Waiting: 1, Running: 1, Queued: 1, QueueAge: 7 * time.Second, DeliveryAge: 7 * time.Second,
		Deliveries: map[solver.DeliveryState]int{solver.Received: 1, solver.Handled: 1, solver.Unparsable: 1}}
	if diff := cmp.Diff(want, must(s.Stats(ctx))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
