package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/solver/thread"
)

func aWakeUpIsQueuedOnce(t *testing.T, dsn string) {
	s, r, _ := open(t, dsn)
	ctx := t.Context()
	must(s.Append(ctx, issue(1), false, event("", 1)))(t)
	wantWakes(t, r, 0)
	wantDue(t, s)
	must(s.Append(ctx, issue(1), true))(t) // a wake-up needs no event
	must(s.Append(ctx, issue(1), true, event("", 2)))(t)
	wantWakes(t, r, 1)
	wantDue(t, s, 1)
	l := must(s.Acquire(ctx, issue(1), "node"))(t)
	wantDue(t, s)
	must(s.Append(ctx, issue(1), true, event("", 3)))(t)
	wantWakes(t, r, 1)
	wantDue(t, s) // another step has the lease
	check(t, s.Release(ctx, l, nil))
	wantWakes(t, r, 1)
	wantDue(t, s, 1)
}

func threadsAreClaimedInWakeUpOrder(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	l := must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{WakeAt: c.Now().Add(time.Second)}))
	check(t, s.Release(ctx, l, nil))
	for _, n := range []int{4, 3, 5, 2} {
		c.Advance(time.Second)
		must(s.Append(ctx, issue(n), true))(t)
	}
	var got []int
	for _, most := range []int{1, 2, 3, 3} {
		leases := must(s.Claim(ctx, "node", most))(t)
		for _, l := range leases {
			got = append(got, l.Thread.Number)
		}
	}
	// Woken threads come before threads whose wait ended.
	if diff := cmp.Diff([]int{4, 3, 5, 2, 1}, got); diff != "" {
		t.Errorf("claimed (-want +got)\n%s", diff)
	}
}

// The thread is due for both reasons.
func aThreadThatWaitedAndWasWokenIsClaimedOnce(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	l := must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{WakeAt: c.Now().Add(time.Second)}))
	check(t, s.Release(ctx, l, nil))
	must(s.Append(ctx, issue(1), true, event("", 1)))(t)
	c.Advance(2 * time.Second)
	if leases := must(s.Claim(ctx, "node", 8))(t); len(leases) != 1 {
		t.Errorf("claimed %+v", leases)
	}
}

// A claim is also the lease, so concurrent claims never share a thread.
func aThreadIsClaimedOnce(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	ctx := t.Context()
	for n := range 20 {
		must(s.Append(ctx, issue(n+1), true, event("", n)))(t)
	}
	var mu sync.Mutex
	claims := map[thread.ID]int{}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for {
				leases, err := s.Claim(ctx, fmt.Sprint("worker ", n), 2)
				if err != nil {
					t.Error(err)
				}
				if err != nil || len(leases) == 0 {
					return
				}
				mu.Lock()
				for _, l := range leases {
					claims[l.Thread]++
				}
				mu.Unlock()
				for _, l := range leases {
					if _, err := s.Acquire(ctx, l.Thread, "another"); !isHeld(err) {
						t.Errorf("a claimed thread's lease: %v, want it held", err)
					}
					if err := s.AppendLeased(ctx, l, thread.Batch{Events: []thread.NewEvent{event("", "claimed")}}); err != nil {
						t.Errorf("append under a claim: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	wantDue(t, s)
	for th, n := range claims {
		if n != 1 {
			t.Errorf("%s was claimed %d times", th, n)
		}
	}
	if len(claims) != 20 {
		t.Errorf("%d threads were claimed, want 20", len(claims))
	}
}

func releaseMakesWokenThreadDue(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	l := must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.Release(ctx, l, nil))
	wantWakes(t, r, 0)
	wantDue(t, s)

	l = must(s.Acquire(ctx, issue(1), "node"))(t)
	must(s.Append(ctx, issue(1), true, event("", 1)))(t)
	r.take() // a claim now would find the thread leased
	check(t, s.Release(ctx, l, nil))
	wantWakes(t, r, 1)
	wantDue(t, s, 1)

	// A wake-up time that passed while the step ran also makes the thread due.
	l = must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{WakeAt: c.Now().Add(time.Second)}))
	c.Advance(2 * time.Second)
	wantDue(t, s)
	check(t, s.Release(ctx, l, nil))
	wantWakes(t, r, 1)
	wantDue(t, s, 1)
}

func aWakeTimeIsStored(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	first, second := c.Now().UTC().Add(time.Hour), c.Now().UTC().Add(2*time.Hour)
	l := must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{WakeAt: first}))
	check(t, s.AppendLeased(ctx, l, thread.Batch{WakeAt: second}))
	check(t, s.AppendLeased(ctx, l, thread.Batch{Events: []thread.NewEvent{event("", 1)}}))
	check(t, s.Release(ctx, l, nil))
	wantWakes(t, r, 0)
	wakeAt := func() time.Time { return must(s.Thread(ctx, issue(1)))(t).WakeAt }
	if got := wakeAt(); !got.Equal(second) {
		t.Errorf("wakes at %s, want %s", got, second)
	}
	// A step before the wake-up time keeps it; a step after it clears it.
	l = must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.Release(ctx, l, nil))
	if got := wakeAt(); !got.Equal(second) {
		t.Errorf("an early step changed the time to %s", got)
	}
	wantDue(t, s)
	c.Advance(2 * time.Hour)
	wantDue(t, s, 1)
	l = must(s.Claim(ctx, "node", 1))(t)[0]
	check(t, s.Release(ctx, l, nil))
	if got := wakeAt(); !got.IsZero() {
		t.Errorf("a step after its time left the time %s", got)
	}
	wantDue(t, s)
}
