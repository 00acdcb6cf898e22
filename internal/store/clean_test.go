package store_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"modernc.org/sqlite"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func closed() thread.NewEvent {
	return thread.NewEvent{Kind: thread.KindThread, Data: thread.Change{What: "closed", By: "octo"}}
}

func stopped() thread.NewEvent {
	d := thread.Decided{Seen: 1}
	d.Action = "stop"
	return thread.NewEvent{Kind: thread.KindDecision, Data: d}
}

func feedback() thread.NewEvent { return event("", thread.Feedback{Reason: "a command"}) }

func finishedThreadsAreForgotten(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	const day = 24 * time.Hour
	log := func(n int, events ...thread.NewEvent) { must(s.Append(ctx, issue(n), false, events...))(t) }
	log(1, feedback(), stopped(), closed())
	log(2, feedback(), stopped())                                                  // not closed
	log(3, thread.NewEvent{Kind: thread.KindIgnored, Data: thread.Feedback{}})     // never worked on
	log(4, feedback(), closed())                                                   // the run has not ended
	log(5, feedback(), stopped(), closed(), event("k", thread.Feedback{}))         // asked again
	log(6, thread.NewEvent{Kind: thread.KindFeedback, Data: "no feedback at all"}) // cannot be read
	log(7, feedback(), stopped(), closed())
	l := must(s.Acquire(ctx, issue(7), "node"))(t) // a step runs
	must(s.Append(ctx, issue(8), true, feedback(), stopped(), closed()))(t)
	pull := must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.AppendLeased(ctx, pull, thread.Batch{Alias: 70}))
	check(t, s.Release(ctx, pull, nil))
	c.Advance(100 * day)
	log(9, feedback(), stopped(), closed()) // too new
	clean := func(want store.Cleaned) {
		t.Helper()
		got := must(s.Clean(ctx, store.Retention{Threads: c.Now().Add(-90 * day)}))(t)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	clean(store.Cleaned{Threads: 2, Events: 4})
	clean(store.Cleaned{})
	for n := 1; n <= 9; n++ {
		gone := n == 1 || n == 3
		if got := must(s.Events(ctx, issue(n), 0))(t); (len(got) == 0) != gone {
			t.Errorf("thread %d has %d events", n, len(got))
		}
	}
	if _, err := s.Thread(ctx, issue(1)); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("a forgotten thread: %v, want ErrNotFound", err)
	}
	if got := must(s.Resolve(ctx, issue(70)))(t); got != issue(70) {
		t.Errorf("its pull request belongs to %s", got)
	}
	for _, r := range must(s.Threads(ctx, 100))(t) {
		if r.Thread == issue(1) || r.Thread.Owner == "" {
			t.Errorf("%q is listed", r.Thread)
		}
	}
	// A thread that was kept is checked again after its next change.
	log(2, closed())
	check(t, s.Release(ctx, l, nil))
	c.Advance(100 * day)
	clean(store.Cleaned{Threads: 3, Events: 9})
	// Later events begin a new log.
	log(1, feedback())
	if got := must(s.Events(ctx, issue(1), 0))(t); len(got) != 1 || got[0].Seq != 1 {
		t.Errorf("the new log is %v", got)
	}
	clean(store.Cleaned{})
	nameless := 0
	check(t, rawDB(t, dsn).QueryRow("SELECT count(*) FROM threads WHERE owner = ''").Scan(&nameless))
	if nameless > 0 {
		t.Errorf("%d threads without a name are left", nameless)
	}
}

// cleaningUsesSmallTransactions counts the rows that each transaction changes: they bound how long other writes wait.
func cleaningUsesSmallTransactions(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	const most = 100
	many := make([]thread.NewEvent, 1000)
	for i := range many {
		many[i] = thread.NewEvent{Kind: thread.KindIgnored, Data: thread.Feedback{}}
	}
	must(s.Append(ctx, issue(1), false, many...))(t)
	for n := range 150 {
		must(s.Append(ctx, issue(n+2), false, many[0]))(t)
	}
	var wg sync.WaitGroup
	for n := range 300 {
		wg.Go(func() {
			guid := fmt.Sprint("g", n)
			must(s.Receive(ctx, thread.Delivery{GUID: guid, Event: "ping", Payload: []byte("{}"), ReceivedAt: c.Now()}))(t)
			check(t, s.FinishDelivery(ctx, guid, thread.Handled, ""))
		})
	}
	wg.Wait()
	watch := watchTransactions(t, s, dsn)
	c.Advance(400 * 24 * time.Hour)
	got := must(s.Clean(ctx, store.Retention{Deliveries: c.Now(), Threads: c.Now()}))(t)
	if want := (store.Cleaned{Deliveries: 300, Threads: 151, Events: 1150}); got != want {
		t.Errorf("cleaned %+v, want %+v", got, want)
	}
	sizes := watch()
	if len(sizes) < (300+151+1150)/most {
		t.Errorf("%d transactions", len(sizes))
	}
	for _, n := range sizes {
		if n > most {
			t.Errorf("a transaction changed %d rows, want at most %d", n, most)
		}
	}
}

// watchTransactions counts the rows that each transaction changes. The returned function ends that and returns them.
func watchTransactions(t *testing.T, s *store.Store, dsn string) func() []int {
	t.Helper()
	if s.Postgres() {
		must(rawDB(t, dsn).Exec(`CREATE TABLE changed (tx bigint);
			CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO changed VALUES (txid_current()); RETURN NULL; END $$;
			CREATE TRIGGER note AFTER UPDATE OR DELETE ON threads FOR EACH ROW EXECUTE FUNCTION note_change();
			CREATE TRIGGER note AFTER UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION note_change();
			CREATE TRIGGER note AFTER UPDATE OR DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION note_change()`))(t)
		return func() (sizes []int) {
			for _, n := range column(t, dsn, "SELECT count(*)::text FROM changed GROUP BY tx") {
				sizes = append(sizes, must(strconv.Atoi(n))(t))
			}
			return sizes
		}
	}
	var sizes []int
	rows := 0
	hook := func(changed sqlite.PreUpdateHookFn, committed sqlite.CommitHookFn) {
		conn := must(s.DB().Conn(t.Context()))(t)
		defer conn.Close()
		check(t, conn.Raw(func(c any) error {
			h := c.(sqlite.HookRegisterer)
			h.RegisterPreUpdateHook(changed)
			h.RegisterCommitHook(committed)
			return nil
		}))
	}
	hook(func(sqlite.SQLitePreUpdateData) { rows++ }, func() int32 {
		sizes, rows = append(sizes, rows), 0
		return 0
	})
	return func() []int {
		hook(nil, nil)
		return sizes
	}
}

func nodesCleanAtTheSameTime(t *testing.T, dsn string) {
	c := newClock()
	nodes, _ := nodes(t, dsn, c.Now)
	ctx := t.Context()
	for n := range 300 {
		must(nodes[0].Append(ctx, issue(n+1), false, feedback(), stopped(), closed()))(t)
	}
	c.Advance(time.Hour)
	var mu sync.Mutex
	var sum store.Cleaned
	var wg sync.WaitGroup
	for _, s := range nodes {
		wg.Go(func() {
			got, err := s.Clean(ctx, store.Retention{Threads: c.Now()})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum.Threads += got.Threads
			sum.Events += got.Events
		})
	}
	wg.Wait()
	got := must(nodes[0].Clean(ctx, store.Retention{Threads: c.Now()}))(t)
	sum.Events += got.Events
	if want := (store.Cleaned{Threads: 300, Events: 900}); sum != want {
		t.Errorf("cleaned %+v, want %+v", sum, want)
	}
}
