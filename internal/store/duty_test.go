package store_test

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/cluster"
)

func aDutyIsDoneByOneNode(t *testing.T, dsn string) {
	const every = 5 * time.Minute
	s, _, c := open(t, dsn)
	ctx := t.Context()
	node := func(name string) *cluster.Duty { return cluster.NewDuty(s, "look", name, every) }
	begins := func(what string, d *cluster.Duty, want bool) {
		t.Helper()
		if got := must(d.Begin(ctx))(t); got != want {
			t.Errorf("%s: %t, want %t", what, got, want)
		}
	}
	first, second := node("first"), node("second")
	begins("the first node to ask", first, true)
	begins("another node while the first is at work", second, false)
	c.Advance(29 * time.Second)
	check(t, first.Hold(ctx))
	c.Advance(29 * time.Second)
	begins("another node while the first still holds the duty", second, false)
	check(t, first.End(ctx))
	c.Advance(every - 59*time.Second)
	begins("the first node before the interval is over", first, false)
	c.Advance(time.Second)
	begins("another node after the interval", second, false)
	begins("the node that did it last", first, true)

	c.Advance(31 * time.Second) // the first node is dead
	begins("another node before its turn", second, false)
	c.Advance(every)
	begins("another node after the owner missed its turn", second, true)
	begins("a node that has just started", node("third"), false)
	check(t, second.End(ctx))
	c.Advance(15 * time.Second)
	third := node("third")
	begins("a node that starts 15 s after the duty was done", third, true)
	check(t, third.End(ctx))
	begins("the node that owned the duty before", second, false)
	for range 100 { // a server that crashes right after each start
		begins("a node that starts again and again", node("fourth"), false)
		c.Advance(100 * time.Millisecond)
	}
}

// A record with a time in the future must not block a duty for all nodes.
func dutySurvivesAClockThatWasAhead(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	c.Advance(24 * time.Hour)
	if !must(cluster.NewDuty(s, "look", "fast", time.Minute).Begin(t.Context()))(t) {
		t.Error("the first was refused")
	}
	c.Advance(-24 * time.Hour)
	if !must(cluster.NewDuty(s, "look", "right", time.Minute).Begin(t.Context()))(t) {
		t.Error("no node may do it for a day")
	}
}
