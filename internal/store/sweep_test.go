package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func sweepWakesLostThreads(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	sweep := func(freed int) {
		t.Helper()
		if got := must(s.Sweep(ctx))(t); got != freed {
			t.Errorf("the sweep freed %d threads, want %d", got, freed)
		}
		wakes := 0
		if freed > 0 {
			wakes = 1
		}
		wantWakes(t, r, wakes)
	}
	must(s.Acquire(ctx, issue(2), "dead"))(t)
	must(s.Acquire(ctx, issue(3), "dead"))(t)
	must(s.Append(ctx, issue(3), true, event("", "queued behind a running step")))(t)
	alive := must(s.Acquire(ctx, issue(4), "alive"))(t)
	r.take()
	c.Advance(thread.LeaseTime - time.Second)
	sweep(0)
	must(s.Renew(ctx, alive))(t)
	c.Advance(2 * time.Second)
	sweep(2)
	wantDue(t, s, 2, 3)
	sweep(0) // each lease is freed once
	if l := must(s.Claim(ctx, "node", 1))(t)[0]; l.From != "dead" {
		t.Errorf("taken over from %q, want the dead node", l.From)
	}
}

// The worst moment to die is right after a renewal and right after the other nodes' sweep. The claim adds no wait, since
// the sweep wakes its node.
func aKilledNodesThreadIsTakenOverWithin35Seconds(t *testing.T, dsn string) {
	const atMost = 35 * time.Second
	s, r, c := open(t, dsn)
	ctx := t.Context()
	if longest := thread.LeaseTime + queue.SweepInterval; longest != atMost {
		t.Errorf("a lease and the time between two sweeps are %s, want %s", longest, atMost)
	}
	must(s.Append(ctx, issue(1), true, event("", "work")))(t)
	lease := must(s.Claim(ctx, "node 0", 1))(t)[0]
	for death := 1; death <= 3; death++ {
		c.Advance(thread.HeartbeatTime)
		must(s.Renew(ctx, lease))(t)
		killed := c.Now()
		c.Advance(-time.Millisecond) // the last sweep came just before the death
		r.take()
		var leases []thread.Lease
		for len(leases) == 0 && c.Now().Sub(killed) < atMost {
			c.Advance(queue.SweepInterval)
			must(s.Sweep(ctx))(t)
			leases = must(s.Claim(ctx, fmt.Sprint("node ", death), 1))(t)
		}
		if late := c.Now().Sub(killed); len(leases) != 1 || late > atMost || late < atMost-time.Second {
			t.Fatalf("death %d: taken over after %s, want at most %s, and exactly that in the worst case", death, late, atMost)
		}
		wantWakes(t, r, 1)
		lease = leases[0]
	}
}

func claimedDeliveryIsExclusive(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	for n := range 3 {
		must(s.Receive(ctx, thread.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()}))(t)
	}
	r.take()
	if n := claimed(t, s); n != 0 {
		t.Errorf("%d deliveries were claimed that their process has just stored", n)
	}
	c.Advance(31 * time.Second)
	if list := must(s.ClaimDeliveries(ctx, 2))(t); len(list) != 2 || list[0].Event != "ping" || list[0].State != thread.Received || list[0].Payload != nil {
		t.Errorf("claimed %+v, want two without their payloads", list)
	}
	if first, second := claimed(t, s), claimed(t, s); first != 1 || second != 0 {
		t.Errorf("then %d and %d were claimed, want the third and none", first, second)
	}
	c.Advance(29 * time.Second)
	if n := claimed(t, s); n != 0 {
		t.Errorf("%d were claimed while their claims last", n)
	}
	c.Advance(2 * time.Second)
	if n := claimed(t, s); n != 3 {
		t.Errorf("%d were claimed after their claims ended, want 3", n)
	}
}

func statsCount(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	empty := store.Stats{Deliveries: map[thread.DeliveryState]int{}}
	if diff := cmp.Diff(empty, must(s.Stats(ctx))(t)); diff != "" {
		t.Errorf("empty (-want +got)\n%s", diff)
	}
	must(s.Append(ctx, issue(1), true, event("", 1)))(t)
	l := must(s.Acquire(ctx, issue(2), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{WakeAt: c.Now().Add(time.Hour)}))
	begun := thread.NewEvent{Kind: thread.KindAttemptStarted, At: c.Now(), Data: thread.Started{N: 1}}
	ended := thread.NewEvent{Kind: thread.KindAttemptEnded, At: c.Now(), Data: policy.Receipt{N: 1}}
	for n, log := range [][]thread.NewEvent{3: {begun}, 4: {begun, ended, event("later", 2)}, 5: {begun, event("later", 2)}} {
		if n > 2 {
			l := must(s.Acquire(ctx, issue(n), "node"))(t)
			check(t, s.AppendLeased(ctx, l, thread.Batch{Events: log}))
		}
	}
	for _, guid := range []string{"a", "b", "c"} {
		must(s.Receive(ctx, thread.Delivery{GUID: guid, Event: "ping", ReceivedAt: c.Now()}))(t)
	}
	check(t, s.FinishDelivery(ctx, "b", thread.Handled, ""))
	check(t, s.FinishDelivery(ctx, "c", thread.Unparsable, "no JSON"))
	c.Advance(7 * time.Second)
	want := store.Stats{Waiting: 1, Running: 4, Attempts: 2, Queued: 1, QueueAge: 7 * time.Second, DeliveryAge: 7 * time.Second,
		Deliveries: map[thread.DeliveryState]int{thread.Received: 1, thread.Handled: 1, thread.Unparsable: 1}}
	if diff := cmp.Diff(want, must(s.Stats(ctx))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
