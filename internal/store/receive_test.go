package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

func deliveriesAreStoredOnce(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	payload := []byte("{\"action\": \"\x00\xff not even UTF-8\"}")
	var fresh atomic.Int64
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			d := solver.Delivery{GUID: fmt.Sprintf("guid-%02d", n/2), Event: "issues", Payload: payload, ReceivedAt: c.Now()}
			ok, err := s.Receive(ctx, d)
			if err != nil {
				t.Error(err)
			}
			if ok {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if fresh.Load() != 32 {
		t.Errorf("%d deliveries were fresh, want 32", fresh.Load())
	}
	_, guids := r.take()
	slices.Sort(guids)
	if len(guids) != 32 || len(slices.Compact(guids)) != 32 {
		t.Errorf("enqueued %v, want every GUID once", guids)
	}
	want := solver.Delivery{GUID: "guid-03", Event: "issues", Payload: payload, ReceivedAt: c.Now().UTC(), State: solver.Received}
	if diff := cmp.Diff(want, must(s.Delivery(ctx, "guid-03"))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	check(t, s.FinishDelivery(ctx, "guid-03", solver.Unparsable, "not UTF-8: \x00\xff"))
	want.State, want.Note, want.Payload = solver.Unparsable, "not UTF-8: ", nil
	list := must(s.Deliveries(ctx, 100))(t)
	i := slices.IndexFunc(list, func(d solver.Delivery) bool { return d.GUID == "guid-03" })
	if len(list) != 32 || i < 0 || cmp.Diff(want, list[i]) != "" {
		t.Errorf("listed %d: %v", len(list), list[max(i, 0)])
	}
	if _, err := s.Delivery(ctx, "none"); !errors.Is(err, solver.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := s.FinishDelivery(ctx, "none", solver.Handled, ""); !errors.Is(err, solver.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	for _, bad := range []string{"", "a b", "a\x00b", "ä", string(bytes.Repeat([]byte("g"), 101))} {
		if _, err := s.Receive(ctx, solver.Delivery{GUID: bad}); err == nil {
			t.Errorf("the GUID %q was taken", bad)
		}
	}
}

func anEndedCallerDoesNotBreakTheBatch(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	for n := range 32 {
		wg.Go(func() {
			ctx := t.Context()
			if n%2 == 0 {
				ctx = ended
			}
			fresh, err := s.Receive(ctx, solver.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()})
			if n%2 == 1 && (err != nil || !fresh) {
				t.Errorf("delivery %d: fresh %t, %v", n, fresh, err)
			}
			if n%2 == 0 && err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("delivery %d: %v", n, err)
			}
		})
	}
	wg.Wait()
}

func aBatchThatFailsFailsForAll(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	r.fail(errTest)
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			if _, err := s.Receive(t.Context(), solver.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()}); !errors.Is(err, errTest) {
				t.Errorf("delivery %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if list := must(s.Deliveries(t.Context(), 100))(t); len(list) != 0 {
		t.Errorf("%d deliveries were kept without their jobs", len(list))
	}
	r.fail(nil)
	if fresh := must(s.Receive(t.Context(), solver.Delivery{GUID: "0", Event: "ping", ReceivedAt: c.Now()}))(t); !fresh {
		t.Error("a delivery that was refused before is not fresh")
	}
}

// gate is a queue that lets no batch through until it is opened.
type gate struct {
	recorder
	open chan struct{}
}

func (g *gate) Deliveries(ctx context.Context, tx *sql.Tx, guids []string) error {
	<-g.open
	return g.recorder.Deliveries(ctx, tx, guids)
}

func deliveriesBeyondTheQueueAreRefused(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	g := &gate{open: make(chan struct{})}
	s.UseQueue(g)
	var busy, stored atomic.Int64
	var wg sync.WaitGroup
	send := func(n int, payload []byte) {
		wg.Go(func() {
			_, err := s.Receive(t.Context(), solver.Delivery{GUID: fmt.Sprint(n), Event: "ping", Payload: payload, ReceivedAt: c.Now()})
			switch {
			case errors.Is(err, store.ErrBusy):
				if busy.Add(1) == 1 {
					close(g.open)
				}
			case err != nil:
				t.Error(err)
			default:
				stored.Add(1)
			}
		})
	}
	for n := range 100 { // too many bytes
		send(n, make([]byte, 1<<20))
	}
	wg.Wait()
	if busy.Load() == 0 || stored.Load() == 0 || busy.Load()+stored.Load() != 100 {
		t.Errorf("%d refused, %d stored", busy.Load(), stored.Load())
	}
	busy.Store(0)
	stored.Store(0)
	g.open = make(chan struct{})
	for n := range 4000 { // too many deliveries
		send(1000+n, nil)
	}
	wg.Wait()
	if busy.Load() == 0 || stored.Load() == 0 || busy.Load()+stored.Load() != 4000 {
		t.Errorf("%d refused, %d stored", busy.Load(), stored.Load())
	}
}

func pruneKeepsGUIDsThirtyDays(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	day := 24 * time.Hour
	for guid, age := range map[string]time.Duration{"old": 31 * day, "open": 31 * day, "middle": 10 * day, "new": day} {
		must(s.Receive(ctx, solver.Delivery{GUID: guid, Event: "ping", Payload: []byte("{}"), ReceivedAt: c.Now().Add(-age)}))(t)
		if guid != "open" {
			check(t, s.FinishDelivery(ctx, guid, solver.Handled, ""))
		}
	}
	if n := must(s.Clean(ctx, store.Retention{Deliveries: c.Now().Add(-7 * day)}))(t); n.Payloads+n.Deliveries != 2 {
		t.Errorf("cleaned %+v, want 2 in all", n)
	}
	if _, err := s.Delivery(ctx, "old"); !errors.Is(err, solver.ErrNotFound) {
		t.Errorf("a delivery of 31 days: %v, want ErrNotFound", err)
	}
	for guid, payload := range map[string]string{"open": "{}", "middle": "", "new": "{}"} {
		if d := must(s.Delivery(ctx, guid))(t); string(d.Payload) != payload {
			t.Errorf("%s has payload %q, want %q", guid, d.Payload, payload)
		}
	}
	if fresh := must(s.Receive(ctx, solver.Delivery{GUID: "middle", Event: "ping", ReceivedAt: c.Now()}))(t); fresh {
		t.Error("a GUID younger than 30 days was forgotten")
	}
}

func failedDeliveriesAreTriedAgain(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	must(s.Receive(ctx, solver.Delivery{GUID: "g", Event: "ping", ReceivedAt: c.Now()}))(t)
	r.take()
	tries := 0
	for range 4 * 24 * 12 { // four days of sweeps, five minutes apart
		c.Advance(5 * time.Minute)
		if w := must(s.Stale(ctx, c.Now()))(t); w.Deliveries > 0 {
			tries++
			check(t, s.FinishDelivery(ctx, "g", solver.Failed, "GitHub is down"))
		}
	}
	if tries < 3*24 || tries > 3*24+10 {
		t.Errorf("tried %d times in three days, want about once an hour", tries)
	}
	if d := must(s.Delivery(ctx, "g"))(t); d.State != solver.Failed || d.Note != "GitHub is down" {
		t.Errorf("left as %+v", d)
	}
}
