package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// A note survives its writer's death. A step that needs no retry removes it.
func noteOutlivesItsWriter(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	noted := func(want string) {
		t.Helper()
		if got := must(s.Noted(ctx, issue(1)))(t); string(got) != want {
			t.Errorf("noted is %q, want %q", got, want)
		}
	}
	noted("") // an unknown thread
	dead := must(s.Acquire(ctx, issue(1), "dead"))(t)
	noted("")
	check(t, s.Note(ctx, dead, policy.Spent{N: 1}))
	check(t, s.Note(ctx, dead, policy.Spent{N: 2}))
	if err := s.Note(ctx, dead, policy.Spent{Limit: &policy.Limit{Message: strings.Repeat("x", 1<<20)}}); err == nil {
		t.Error("a note of 1 MiB was accepted")
	}
	c.Advance(thread.LeaseTime + time.Second)
	next := must(s.Acquire(ctx, issue(1), "next"))(t)
	if err := s.Note(ctx, dead, policy.Spent{N: 3}); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("note: %v, want ErrLeaseLost", err)
	}
	noted(`{"n":2,"tokens":null}`)
	check(t, s.Release(ctx, next, in(0)))
	noted(`{"n":2,"tokens":null}`)
	check(t, s.Release(ctx, must(s.Acquire(ctx, issue(1), "next"))(t), nil))
	noted("")
}
