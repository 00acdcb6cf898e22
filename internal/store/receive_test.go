package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func deliveriesAreStoredOnce(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	payload := []byte("{\"action\": \"\x00\xff not even UTF-8\"}")
	var fresh atomic.Int64
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			d := thread.Delivery{GUID: fmt.Sprintf("guid-%02d", n/2), Event: "issues", Payload: payload, ReceivedAt: c.Now()}
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
	want := thread.Delivery{GUID: "guid-03", Event: "issues", Payload: payload, ReceivedAt: c.Now().UTC(), State: thread.Received}
	if diff := cmp.Diff(want, must(s.Delivery(ctx, "guid-03"))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	check(t, s.FinishDelivery(ctx, "guid-03", thread.Unparsable, "not UTF-8: \x00\xff"))
	want.State, want.Note, want.Payload = thread.Unparsable, "not UTF-8: ", nil
	list := must(s.Deliveries(ctx, 100))(t)
	i := slices.IndexFunc(list, func(d thread.Delivery) bool { return d.GUID == "guid-03" })
	want.RetryAt = list[max(i, 0)].RetryAt // in an hour
	if len(list) != 32 || i < 0 || want.RetryAt.IsZero() || cmp.Diff(want, list[i]) != "" {
		t.Errorf("listed %d: %v", len(list), list[max(i, 0)])
	}
	if _, err := s.Delivery(ctx, "none"); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := s.FinishDelivery(ctx, "none", thread.Handled, ""); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	for _, bad := range []string{"", "a b", "a\x00b", "ä", string(bytes.Repeat([]byte("g"), 101))} {
		if _, err := s.Receive(ctx, thread.Delivery{GUID: bad}); err == nil {
			t.Errorf("the GUID %q was taken", bad)
		}
	}
}

// aPayloadThatCannotBeReadStaysDue: the next version may be able to read it.
func aPayloadThatCannotBeReadStaysDue(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	must(s.Receive(ctx, thread.Delivery{GUID: "g", Event: "issues", Payload: []byte("[]"), ReceivedAt: c.Now()}))(t)
	r.take()
	for range 3 {
		check(t, s.FinishDelivery(ctx, "g", thread.Unparsable, "no object"))
		c.Advance(time.Hour + time.Second)
		if n := claimed(t, s); n != 1 {
			t.Errorf("%d deliveries are due, want the one that could not be read", n)
		}
	}
	if d := must(s.Delivery(ctx, "g"))(t); d.State != thread.Unparsable || string(d.Payload) != "[]" {
		t.Errorf("it is kept as %+v", d)
	}
	// One whose stored form is of a newer version is an error, and as due as before.
	must(rawDB(t, dsn).Exec("UPDATE deliveries SET payload = " + map[bool]string{true: "'\x02'::bytea", false: "x'02'"}[s.Postgres()]))(t)
	if d, err := s.Delivery(ctx, "g"); err == nil {
		t.Errorf("a form of the future is read as %+v", d)
	}
	c.Advance(time.Hour)
	if n := claimed(t, s); n != 1 {
		t.Errorf("%d deliveries are due, want the one of the future", n)
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
			fresh, err := s.Receive(ctx, thread.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()})
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
	s, _, c := open(t, dsn)
	g := &gate{open: make(chan struct{})}
	s.UseQueue(g)
	accept := refuse(t, s, dsn, "7")
	var wg sync.WaitGroup
	wg.Go(func() {
		must(s.Receive(t.Context(), thread.Delivery{GUID: "first", Event: "ping", ReceivedAt: c.Now()}))(t)
	})
	for g.blocked.Load() == 0 {
		runtime.Gosched()
	}
	for n := range 16 {
		wg.Go(func() {
			if _, err := s.Receive(t.Context(), thread.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()}); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("delivery %d: %v", n, err)
			}
		})
	}
	for s.Gathered() < 16 {
		runtime.Gosched()
	}
	close(g.open)
	wg.Wait()
	if list := must(s.Deliveries(t.Context(), 100))(t); len(list) != 1 {
		t.Errorf("%d deliveries were kept, want the first only", len(list))
	}
	if _, guids := g.take(); len(guids) != 1 {
		t.Errorf("%v are to be handled, want the first only", guids)
	}
	accept()
	if fresh := must(s.Receive(t.Context(), thread.Delivery{GUID: "7", Event: "ping", ReceivedAt: c.Now()}))(t); !fresh {
		t.Error("a delivery that was refused before is not fresh")
	}
}

// gate is a queue that lets no batch through until it is opened.
type gate struct {
	recorder
	blocked atomic.Int64
	open    chan struct{}
}

// refuse makes the database refuse a delivery until accept is called.
func refuse(t *testing.T, s *store.Store, dsn, guid string) (accept func()) {
	t.Helper()
	db := rawDB(t, dsn)
	if s.Postgres() {
		must(db.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
			CREATE TRIGGER refuse BEFORE INSERT ON deliveries FOR EACH ROW WHEN (NEW.guid = '` + guid + `') EXECUTE FUNCTION refuse()`))(t)
		return func() { must(db.Exec("DROP TRIGGER refuse ON deliveries"))(t) }
	}
	must(db.Exec("CREATE TRIGGER refuse BEFORE INSERT ON deliveries WHEN NEW.guid = '" + guid + "' BEGIN SELECT RAISE(ABORT, 'refused'); END"))(t)
	return func() { must(db.Exec("DROP TRIGGER refuse"))(t) }
}

func (g *gate) Committed(steps bool, deliveries []thread.Delivery) {
	g.blocked.Add(1)
	<-g.open
	g.recorder.Committed(steps, deliveries)
}

func deliveriesBeyondTheQueueAreRefused(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	g := &gate{open: make(chan struct{})}
	s.UseQueue(g)
	var busy, stored atomic.Int64
	var wg sync.WaitGroup
	send := func(n int, payload []byte) {
		wg.Go(func() {
			_, err := s.Receive(t.Context(), thread.Delivery{GUID: fmt.Sprint(n), Event: "ping", Payload: payload, ReceivedAt: c.Now()})
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
		must(s.Receive(ctx, thread.Delivery{GUID: guid, Event: "ping", Payload: []byte("{}"), ReceivedAt: c.Now().Add(-age)}))(t)
		if guid != "open" {
			check(t, s.FinishDelivery(ctx, guid, thread.Handled, ""))
		}
	}
	if n := must(s.Clean(ctx, store.Retention{Deliveries: c.Now().Add(-7 * day)}))(t); n.Payloads+n.Deliveries != 2 {
		t.Errorf("cleaned %+v, want 2 in all", n)
	}
	if _, err := s.Delivery(ctx, "old"); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("a delivery of 31 days: %v, want ErrNotFound", err)
	}
	for guid, payload := range map[string]string{"open": "{}", "middle": "", "new": "{}"} {
		if d := must(s.Delivery(ctx, guid))(t); string(d.Payload) != payload {
			t.Errorf("%s has payload %q, want %q", guid, d.Payload, payload)
		}
	}
	if fresh := must(s.Receive(ctx, thread.Delivery{GUID: "middle", Event: "ping", ReceivedAt: c.Now()}))(t); fresh {
		t.Error("a GUID younger than 30 days was forgotten")
	}
}

func failedDeliveriesAreTriedAgain(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	must(s.Receive(ctx, thread.Delivery{GUID: "g", Event: "ping", ReceivedAt: c.Now()}))(t)
	r.take()
	began, last, tries := c.Now(), c.Now(), 0
	for range 4 * 24 * 60 { // four days of sweeps, a minute apart
		c.Advance(time.Minute)
		if claimed(t, s) > 0 {
			most := 6 * time.Minute
			if age := c.Now().Sub(began); age > 80*time.Minute {
				most = min(age/15, time.Hour) + time.Minute
			}
			if gap := c.Now().Sub(last); gap > most {
				t.Errorf("after %s it was tried %s after the try before, want at most %s", c.Now().Sub(began), gap, most)
			}
			last, tries = c.Now(), tries+1
			check(t, s.FinishDelivery(ctx, "g", thread.Failed, "GitHub is down"))
		}
	}
	if tries < 100 || tries > 250 || last.Sub(began) > 3*24*time.Hour+2*time.Hour {
		t.Errorf("tried %d times, the last after %s; want it more and more rarely for three days", tries, last.Sub(began))
	}
	if d := must(s.Delivery(ctx, "g"))(t); d.State != thread.Failed || d.Note != "GitHub is down" {
		t.Errorf("left as %+v", d)
	}
}
