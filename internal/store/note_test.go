package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// aNoteIsForWhoTakesOver: it outlives its writer, and ends with a step that did
// all there was to do.
func aNoteIsForWhoTakesOver(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	noted := func(want string) {
		t.Helper()
		if got := must(s.Noted(ctx, issue(1)))(t); string(got) != want {
			t.Errorf("noted is %q, want %q", got, want)
		}
	}
	noted("") // of a thread that nobody knows
	dead := must(s.Acquire(ctx, issue(1), "dead", c.Now()))(t)
	noted("")
	check(t, s.Note(ctx, dead, []byte("first")))
	check(t, s.Note(ctx, dead, []byte("second")))
	if err := s.Note(ctx, dead, make([]byte, 1<<20)); err == nil {
		t.Error("a note of 1 MiB was taken")
	}
	c.Advance(thread.LeaseTime + time.Second)
	next := must(s.Acquire(ctx, issue(1), "next", c.Now()))(t)
	if err := s.Note(ctx, dead, []byte("late")); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("note: %v, want ErrLeaseLost", err)
	}
	noted("second")
	check(t, s.Release(ctx, next, in(0)))
	noted("second")
	check(t, s.Release(ctx, must(s.Acquire(ctx, issue(1), "next", c.Now()))(t), nil))
	noted("")
}
