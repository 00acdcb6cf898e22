package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/solver"
)

// wantSteps compares what was enqueued since the last look.
func wantSteps(t *testing.T, r *recorder, want ...step) {
	t.Helper()
	got, _ := r.take()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
}

func aWakeUpIsQueuedOnce(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	must(s.Append(ctx, thread(1), false, event("", 1)))(t)
	wantSteps(t, r)
	must(s.Append(ctx, thread(1), true))(t) // a wake-up needs no event
	must(s.Append(ctx, thread(1), true, event("", 2)))(t)
	wantSteps(t, r, step{thread: thread(1)})
	if due := must(s.Due(ctx, thread(1)))(t); !due {
		t.Error("a woken thread is not due")
	}
	must(s.Acquire(ctx, thread(1), "node", c.Now()))(t)
	if due := must(s.Due(ctx, thread(1)))(t); due {
		t.Error("a thread whose step began is due")
	}
	must(s.Append(ctx, thread(1), true, event("", 3)))(t)
	wantSteps(t, r, step{thread: thread(1)})
	if due := must(s.Due(ctx, thread(99)))(t); due {
		t.Error("an unknown thread is due")
	}
}

func aFailedEnqueueKeepsNothing(t *testing.T, dsn string) {
	s, r, _ := open(t, dsn)
	r.fail(errTest)
	if _, err := s.Append(t.Context(), thread(1), true, event("a", 1)); !errors.Is(err, errTest) {
		t.Errorf("got %v, want %v", err, errTest)
	}
	if got := must(s.Events(t.Context(), thread(1), 0))(t); len(got) != 0 {
		t.Errorf("the event was kept without its step: %v", got)
	}
	r.fail(nil)
	must(s.Append(t.Context(), thread(1), true, event("a", 1)))(t)
	wantSteps(t, r, step{thread: thread(1)})
}

func releaseQueuesWhatArrivedMeanwhile(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	l := must(s.Acquire(ctx, thread(1), "node", c.Now()))(t)
	check(t, s.Release(ctx, l))
	wantSteps(t, r)

	l = must(s.Acquire(ctx, thread(1), "node", c.Now()))(t)
	must(s.Append(ctx, thread(1), true, event("", 1)))(t)
	wantSteps(t, r, step{thread: thread(1)}) // that job meets the held lease
	check(t, s.Release(ctx, l))
	wantSteps(t, r, step{thread: thread(1)})

	// So does a wake-up time that came while the step ran.
	l = must(s.Acquire(ctx, thread(1), "node", c.Now()))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{WakeAt: c.Now().Add(time.Second)}))
	r.take()
	c.Advance(2 * time.Second)
	check(t, s.Release(ctx, l))
	wantSteps(t, r, step{thread: thread(1)})
}

func aWakeTimeIsStoredWithItsJob(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	first, second := c.Now().UTC().Add(time.Hour), c.Now().UTC().Add(2*time.Hour)
	l := must(s.Acquire(ctx, thread(1), "node", c.Now()))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{WakeAt: first}))
	check(t, s.AppendLeased(ctx, l, solver.Batch{WakeAt: first}))
	check(t, s.AppendLeased(ctx, l, solver.Batch{WakeAt: second}))
	check(t, s.AppendLeased(ctx, l, solver.Batch{Events: []solver.NewEvent{event("", 1)}}))
	check(t, s.Release(ctx, l))
	wantSteps(t, r, step{thread(1), first}, step{thread(1), second})
	wakeAt := func() time.Time { return must(s.Thread(ctx, thread(1)))(t).WakeAt }
	if got := wakeAt(); !got.Equal(second) {
		t.Errorf("wakes at %s, want %s", got, second)
	}
	// A step that comes before its time leaves the time; one after takes it.
	l = must(s.Acquire(ctx, thread(1), "node", c.Now()))(t)
	check(t, s.Release(ctx, l))
	if got := wakeAt(); !got.Equal(second) {
		t.Errorf("an early step changed the time to %s", got)
	}
	c.Advance(2 * time.Hour)
	if !must(s.Due(ctx, thread(1)))(t) {
		t.Error("a thread whose time has come is not due")
	}
	l = must(s.Acquire(ctx, thread(1), "node", c.Now()))(t)
	check(t, s.Release(ctx, l))
	if got := wakeAt(); !got.IsZero() {
		t.Errorf("a step after its time left the time %s", got)
	}
	wantSteps(t, r)
}
