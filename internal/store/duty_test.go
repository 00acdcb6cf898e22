package store_test

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
)

func aDutyIsDoneByOneNode(t *testing.T, dsn string) {
	const every = 5 * time.Minute
	s, _, c := open(t, dsn)
	ctx := t.Context()
	node := func(name string) *store.Duty { return s.Duty("look", name, every) }
	begins := func(what string, d *store.Duty, want bool) {
		t.Helper()
		if got := must(d.Begin(ctx))(t); got != want {
			t.Errorf("%s: %t, want %t", what, got, want)
		}
	}
	first, second := node("first"), node("second")
	begins("the first to ask", first, true)
	begins("another while it is at work", second, false)
	c.Advance(29 * time.Second)
	check(t, first.Hold(ctx))
	c.Advance(29 * time.Second)
	begins("another while it still is", second, false)
	check(t, first.End(ctx))
	c.Advance(every - 59*time.Second)
	begins("before the interval is over", first, false)
	c.Advance(time.Second)
	begins("another when it is over", second, false)
	begins("the one that did it last", first, true)

	c.Advance(31 * time.Second) // the first is dead
	begins("another, for whom it is not yet time", second, false)
	c.Advance(every)
	begins("another when the last one does not come", second, true)
	begins("one that has just been started", node("third"), false)
	check(t, second.End(ctx))
	c.Advance(15 * time.Second)
	third := node("third")
	begins("one that has been started since", third, true)
	check(t, third.End(ctx))
	begins("the one whose duty it was", second, false)
	for range 100 { // a server that crashes right after each start
		begins("one that is started again and again", node("fourth"), false)
		c.Advance(100 * time.Millisecond)
	}
}

// A record with a time in the future must not block a duty for all nodes.
func dutySurvivesAClockThatWasAhead(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	c.Advance(24 * time.Hour)
	if !must(s.Duty("look", "fast", time.Minute).Begin(t.Context()))(t) {
		t.Error("the first was refused")
	}
	c.Advance(-24 * time.Hour)
	if !must(s.Duty("look", "right", time.Minute).Begin(t.Context()))(t) {
		t.Error("nobody may do it for a day")
	}
}
