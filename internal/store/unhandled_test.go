package store_test

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

func unhandledDeliveriesAreCounted(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	want := func(unhandled int, oldest time.Time) {
		t.Helper()
		if n := must(s.Unhandled(ctx))(t); n != unhandled {
			t.Errorf("%d unhandled deliveries, want %d", n, unhandled)
		}
		if at := must(s.Oldest(ctx))(t); !at.Equal(oldest) {
			t.Errorf("the oldest is of %v, want %v", at, oldest)
		}
	}
	want(0, time.Time{})
	first := c.Now()
	for _, guid := range []string{"a", "b", "c"} {
		must(s.Receive(ctx, thread.Delivery{GUID: guid, Event: "ping", ReceivedAt: c.Now()}))(t)
		c.Advance(time.Minute)
	}
	want(3, first)
	check(t, s.FinishDelivery(ctx, "a", thread.Handled, ""))
	check(t, s.FinishDelivery(ctx, "b", thread.Failed, "GitHub is down"))
	want(1, first)
}
