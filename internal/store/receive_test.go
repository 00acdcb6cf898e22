package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
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
}

// The next version may be able to read the payload.
func unreadablePayloadStaysDue(t *testing.T, dsn string) {
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
		t.Errorf("it is stored as %+v", d)
	}
}

func refusedDeliveryIsFreshLater(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	accept := refuse(t, s, dsn, "7")
	for n := range 16 {
		_, err := s.Receive(t.Context(), thread.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()})
		if refused := err != nil && strings.Contains(err.Error(), "refused"); refused != (n == 7) {
			t.Errorf("delivery %d: %v", n, err)
		}
	}
	if list := must(s.Deliveries(t.Context(), 100))(t); len(list) != 15 {
		t.Errorf("%d deliveries are stored, want all but the refused one", len(list))
	}
	if _, guids := r.take(); len(guids) != 15 {
		t.Errorf("%v are queued, want all but the refused one", guids)
	}
	accept()
	if fresh := must(s.Receive(t.Context(), thread.Delivery{GUID: "7", Event: "ping", ReceivedAt: c.Now()}))(t); !fresh {
		t.Error("a delivery that was refused before is not fresh")
	}
}

// A database that hangs must not keep GitHub waiting for its answer.
func TestDeliveryIsAnsweredInTimeWhileTheDatabaseHangs(t *testing.T) {
	t.Parallel() // waits for a timeout
	hang := func(t *testing.T, dsn, lock string) {
		s, _, c := open(t, dsn)
		other := must(rawDB(t, dsn).Conn(t.Context()))(t)
		must(other.ExecContext(t.Context(), lock))(t)
		began := time.Now()
		var wg sync.WaitGroup
		for n := range 20 {
			wg.Go(func() {
				if _, err := s.Receive(t.Context(), thread.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()}); err == nil {
					t.Error("a delivery was stored")
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("the answer took %s; GitHub waits for 10 s", took)
		}
		must(other.ExecContext(t.Context(), "ROLLBACK"))(t)
		if fresh := must(s.Receive(t.Context(), thread.Delivery{GUID: "0", Event: "ping", ReceivedAt: c.Now()}))(t); !fresh {
			t.Error("the delivery that was refused is not fresh")
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		hang(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), "BEGIN IMMEDIATE")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		hang(t, startPostgres(t).newDatabase(t), "BEGIN; LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE")
	})
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

func failedDeliveriesAreRetriedWithBackoff(t *testing.T, dsn string) {
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
				t.Errorf("after %s it was tried %s after the previous try, want at most %s", c.Now().Sub(began), gap, most)
			}
			last, tries = c.Now(), tries+1
			check(t, s.FinishDelivery(ctx, "g", thread.Failed, "GitHub is down"))
		}
	}
	if tries < 100 || tries > 250 || last.Sub(began) > 3*24*time.Hour+2*time.Hour {
		t.Errorf("tried %d times, the last after %s; want increasing waits for three days", tries, last.Sub(began))
	}
	if d := must(s.Delivery(ctx, "g"))(t); d.State != thread.Failed || d.Note != "GitHub is down" {
		t.Errorf("left as %+v", d)
	}
}
