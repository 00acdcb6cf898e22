package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func aClockThatMayBeWrongRemovesNothing(t *testing.T, dsn string) {
	const day = 24 * time.Hour
	s, _, c := open(t, dsn)
	ctx := t.Context()
	all := func() store.Retention {
		return store.Retention{Deliveries: c.Now().Add(day), Threads: c.Now().Add(day)}
	}
	deliver := func(guid string, age time.Duration) {
		must(s.Receive(ctx, thread.Delivery{GUID: guid, Event: "ping", Payload: []byte("{}"), ReceivedAt: c.Now().Add(-age)}))(t)
		check(t, s.FinishDelivery(ctx, guid, thread.Handled, ""))
	}
	refused := func() {
		t.Helper()
		if got, err := s.Clean(ctx, all()); !errors.Is(err, store.ErrClock) || got != (store.Cleaned{}) {
			t.Errorf("cleaned %+v, %v; want nothing and ErrClock", got, err)
		}
	}
	must(s.Clean(ctx, all()))(t) // an empty one
	// Seen from a clock that is a year ahead everything is old.
	deliver("old", 365*day)
	refused()
	deliver("later", -time.Hour)
	refused()
	deliver("yesterday", day)
	if got := must(s.Clean(ctx, all()))(t); got.Deliveries != 1 {
		t.Errorf("cleaned %+v, want the old delivery", got)
	}
	s.SetWall(func() time.Time { return time.Now().Add(2 * time.Minute) })
	refused()
}
