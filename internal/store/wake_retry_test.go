package store_test

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// in returns a retry after a fixed wait.
func in(wait time.Duration) thread.Retry {
	return func(int) time.Duration { return wait }
}

// failing acquires a thread's lease and releases it like a failed step.
func failing(t *testing.T, s *store.Store, c *clock, retry thread.Retry, batches ...thread.Batch) {
	t.Helper()
	l := must(s.Acquire(t.Context(), issue(1), "node"))(t)
	for _, b := range batches {
		check(t, s.AppendLeased(t.Context(), l, b))
	}
	check(t, s.Release(t.Context(), l, retry))
}

// The time of the retry is in the row, so it survives the process.
func failedStepIsRetried(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	must(s.Append(ctx, issue(1), true, event("", 1)))(t)
	r.take()
	at := c.Now().UTC().Add(time.Minute)
	failing(t, s, c, in(time.Minute))
	if row := must(s.Thread(ctx, issue(1)))(t); row.Running || !row.WakeAt.Equal(at) {
		t.Errorf("after the failure: %+v, want it free and woken at %s", row, at)
	}
	wantDue(t, s)
	c.Advance(time.Minute)
	wantDue(t, s, 1)
	// A successful step clears the retry.
	check(t, s.Release(ctx, must(s.Acquire(ctx, issue(1), "node"))(t), nil))
	c.Advance(time.Hour)
	if row := must(s.Thread(ctx, issue(1)))(t); !row.WakeAt.IsZero() {
		t.Errorf("after a successful step it wakes at %s", row.WakeAt)
	}
	wantDue(t, s)
	// An event before the retry leads to a step, which replaces the retry.
	failing(t, s, c, in(time.Hour))
	must(s.Append(ctx, issue(1), true, event("", 2)))(t)
	check(t, s.Release(ctx, must(s.Acquire(ctx, issue(1), "node"))(t), nil))
	if row := must(s.Thread(ctx, issue(1)))(t); !row.WakeAt.IsZero() {
		t.Errorf("an unneeded retry is left at %s", row.WakeAt)
	}
	// A lost lease stores nothing.
	lost := must(s.Acquire(ctx, issue(1), "slow"))(t)
	c.Advance(thread.LeaseTime + time.Second)
	must(s.Acquire(ctx, issue(1), "quick"))(t)
	r.take()
	check(t, s.Release(ctx, lost, in(time.Minute)))
	if row := must(s.Thread(ctx, issue(1)))(t); !row.WakeAt.IsZero() || !row.Running {
		t.Errorf("a lost lease left %+v behind", row)
	}
	wantWakes(t, r, 0)
}

// If a step of a waiting thread fails, it is retried soon. Then the thread continues to wait.
func aFailureKeepsTheWait(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	reset := c.Now().UTC().Add(5 * time.Hour)
	wakeAt := func(want time.Time) {
		t.Helper()
		if got := must(s.Thread(ctx, issue(1)))(t).WakeAt; !got.Equal(want) {
			t.Errorf("it wakes at %s, want %s", got, want)
		}
	}
	failing(t, s, c, in(time.Minute), thread.Batch{WakeAt: reset})
	wakeAt(c.Now().Add(time.Minute))
	for range 3 { // retries on time and early
		c.Advance(time.Minute)
		failing(t, s, c, in(time.Minute))
		wakeAt(c.Now().Add(time.Minute))
		must(s.Append(ctx, issue(1), true, event("", "early")))(t)
		failing(t, s, c, in(time.Minute))
	}
	// A node that dies during a retry loses neither time.
	must(s.Acquire(ctx, issue(1), "dead"))(t)
	c.Advance(thread.LeaseTime + time.Second)
	must(s.Sweep(ctx))(t)
	failing(t, s, c, in(time.Minute))
	// If the wait ends before the retry, its end is the retry.
	c.Advance(reset.Sub(c.Now()) - time.Second)
	failing(t, s, c, in(time.Minute))
	wakeAt(reset)
	c.Advance(time.Second)
	check(t, s.Release(ctx, must(s.Acquire(ctx, issue(1), "node"))(t), nil))
	wakeAt(time.Time{})
}

func failuresInARowAreCounted(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	fail := func(want int) {
		t.Helper()
		c.Advance(time.Second)
		failing(t, s, c, func(inARow int) time.Duration {
			if inARow != want {
				t.Errorf("failure %d in a row, want %d", inARow, want)
			}
			return time.Second
		})
	}
	for n := 1; n < 4; n++ {
		fail(n)
	}
	check(t, s.Release(ctx, must(s.Acquire(ctx, issue(1), "node"))(t), nil))
	fail(1)
	// A dead node's step does not count as a failure and does not reset the count.
	must(s.Acquire(ctx, issue(1), "dead"))(t)
	c.Advance(thread.LeaseTime)
	fail(2)
}

func interruptedStepIsFreeAtOnce(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	failing(t, s, c, in(0))
	wantWakes(t, r, 1)
	wantDue(t, s, 1)
	must(s.Acquire(ctx, issue(1), "another"))(t)
}
