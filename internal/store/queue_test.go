package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// patience limits a test's wait. It is long, so that no test fails on a busy machine.
const patience = 10 * time.Minute

// await receives or fails.
func await[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing came in %s", what, patience)
		panic("unreachable")
	}
}

// newQueue returns a real queue on the store.
func newQueue(s *store.Store, node string, step func(context.Context, thread.Lease, time.Time) error,
	deliver func(context.Context, thread.Delivery) error) *queue.Queue {
	q := queue.New(queue.Options{
		Store: s, Node: node, Workers: 4, Logger: slog.New(slog.DiscardHandler), Step: step, HandleDelivery: deliver,
		Sweep: func(ctx context.Context) error { _, err := s.Sweep(ctx); return err },
	})
	s.UseQueue(q)
	return q
}

// start runs a queue until the test ends.
func start(t *testing.T, s *store.Store, step func(context.Context, thread.Lease, time.Time) error,
	deliver func(context.Context, thread.Delivery) error) *queue.Queue {
	t.Helper()
	q := newQueue(s, "node", step, deliver)
	q.Start(t.Context())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		check(t, q.Stop(ctx))
	})
	return q
}

func noDelivery(context.Context, thread.Delivery) error { return nil }

// stepper takes steps as the solver does: read the log, work, release the lease.
type stepper struct {
	store *store.Store
	seen  chan int64                   // the last seq of the log at the step's start
	work  func(context.Context, int64) // between reading and releasing
}

func (st *stepper) step(ctx context.Context, l thread.Lease, _ time.Time) error {
	defer func() {
		ended := context.WithoutCancel(ctx)
		if ctx.Err() != nil {
			st.store.Release(ended, l, func(int) time.Duration { return 0 })
			return
		}
		st.store.Release(ended, l, nil)
	}()
	events, err := st.store.Events(ctx, l.Thread, 0)
	if err != nil {
		return err
	}
	st.seen <- int64(len(events))
	if st.work != nil {
		st.work(ctx, int64(len(events)))
	}
	return ctx.Err()
}

func aWakeUpDuringAStepLeadsToOneMore(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	proceed := make(chan struct{})
	st := &stepper{store: s, seen: make(chan int64, 100), work: func(context.Context, int64) { <-proceed }}
	start(t, s, st.step, noDelivery)
	must(s.Append(t.Context(), issue(1), true, event("", 1)))(t)
	for n := int64(1); n < 4; n++ {
		if got := await(t, "step", st.seen); got != n {
			t.Fatalf("step %d saw %d events", n, got)
		}
		must(s.Append(t.Context(), issue(1), true, event("", "while the step runs")))(t)
		proceed <- struct{}{}
	}
	if got := await(t, "the last step", st.seen); got != 4 {
		t.Errorf("the last step saw %d events, want 4", got)
	}
	close(proceed)
}

func aWakeUpAfterAStepLeadsToOneMore(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	st := &stepper{store: s, seen: make(chan int64, 100)}
	finished := make(chan struct{}, 100)
	start(t, s, func(ctx context.Context, l thread.Lease, asked time.Time) error {
		err := st.step(ctx, l, asked)
		finished <- struct{}{} // the lease is released, but the worker is still busy
		return err
	}, noDelivery)
	for n := int64(1); n <= 20; n++ {
		must(s.Append(t.Context(), issue(1), true, event("", n)))(t)
		if got := await(t, "step", st.seen); got != n {
			t.Fatalf("step %d saw %d events", n, got)
		}
		await(t, "the step's end", finished)
	}
}

func noWakeUpIsLostUnderLoad(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	noWakeUpIsLost(t, s)
}

// noWakeUpIsLost has four callers of each store append to the same threads, while each store's queue takes steps.
func noWakeUpIsLost(t *testing.T, stores ...*store.Store) {
	t.Helper()
	const threads, appenders, each = 5, 4, 25
	var mu sync.Mutex
	seen := map[thread.ID]int{}
	complete := make(chan struct{}, 1)
	for _, s := range stores {
		start(t, s, func(ctx context.Context, l thread.Lease, _ time.Time) error {
			defer s.Release(ctx, l, nil)
			events, err := s.Events(ctx, l.Thread, 0)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			seen[l.Thread] = max(seen[l.Thread], len(events))
			sum := 0
			for _, n := range seen {
				sum += n
			}
			if sum == threads*appenders*each*len(stores) {
				select {
				case complete <- struct{}{}:
				default:
				}
			}
			return nil
		}, noDelivery)
	}
	var wg sync.WaitGroup
	for n := range appenders * len(stores) {
		wg.Go(func() {
			for i := range threads * each {
				if _, err := stores[n%len(stores)].Append(t.Context(), issue(i%threads+1), true, event("", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	await(t, "the last step of every thread", complete)
}

// killedStepIsTakenOver kills a process in the middle of a step with SIGKILL. Its lease remains; on SQLite it ends once
// the next process has the file.
func killedStepIsTakenOver(t *testing.T, dsn string) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "PAWL_TEST_DSN="+dsn)
	child.Stderr = os.Stderr
	out := must(child.StdoutPipe())(t)
	check(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "in the middle of the step" {
	}
	_, one := cutSQLite(dsn)
	if one {
		wantRefusal(t, dsn, "in use by another process", "stop it first")
		r := must(store.Open(t.Context(), dsn, store.Options{Access: store.Reading}))(t)
		if rows := must(r.Events(t.Context(), issue(1), 0))(t); len(rows) != 1 {
			t.Errorf("a reader sees %d events while the process runs, want 1", len(rows))
		}
		check(t, r.Close())
	}
	check(t, child.Process.Kill())
	child.Wait()

	s, _, c := open(t, dsn)
	if !one {
		if _, err := s.Acquire(t.Context(), issue(1), "node"); err == nil {
			t.Error("the dead process's lease was taken at once, though it might live")
		}
		c.Advance(thread.LeaseTime + time.Second)
	}
	st := &stepper{store: s, seen: make(chan int64, 100)}
	start(t, s, st.step, noDelivery)
	if got := await(t, "the step of the next process", st.seen); got != 1 {
		t.Errorf("the next process saw %d events, want 1", got)
	}
}

// TestMain runs the tests, or in a child process the step that killedStepIsTakenOver kills.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("PAWL_TEST_DSN"); dsn != "" {
		fmt.Fprintln(os.Stderr, stepForever(context.Background(), dsn))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// stepForever begins a step that never ends, and announces it on stdout.
func stepForever(ctx context.Context, dsn string) error {
	s, err := store.Open(ctx, dsn, store.Options{})
	if err != nil {
		return err
	}
	st := &stepper{store: s, seen: make(chan int64, 1), work: func(context.Context, int64) {
		fmt.Println("in the middle of the step")
		select {}
	}}
	newQueue(s, "child", st.step, noDelivery).Start(ctx)
	if _, err := s.Append(ctx, issue(1), true, event("", 1)); err != nil {
		return err
	}
	select {}
}

func interruptedStepContinuesAfterStart(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	st := &stepper{store: s, seen: make(chan int64, 100), work: func(ctx context.Context, _ int64) { <-ctx.Done() }}
	q := start(t, s, st.step, noDelivery)
	must(s.Append(t.Context(), issue(1), true, event("", 1)))(t)
	await(t, "step", st.seen)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	check(t, q.Stop(ctx))
	wantDue(t, s, 1)
	st.work = nil
	start(t, s, st.step, noDelivery)
	await(t, "the step after the restart", st.seen)
}

func deliveriesAreHandled(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	handled := make(chan string, 200)
	var mu sync.Mutex
	failed := map[string]bool{}
	start(t, s, func(context.Context, thread.Lease, time.Time) error { return nil }, func(ctx context.Context, d thread.Delivery) error {
		guid := d.GUID
		if d, err := s.Delivery(ctx, guid); err != nil || d.State == thread.Handled {
			return err
		}
		mu.Lock()
		first := guid == "g7" && !failed[guid]
		failed[guid] = true
		mu.Unlock()
		if first {
			err := s.FinishDelivery(ctx, guid, thread.Failed, "")
			c.Advance(time.Minute) // then the delivery is due again
			return errors.Join(errTest, err)
		}
		if err := s.FinishDelivery(ctx, guid, thread.Handled, ""); err != nil {
			return err
		}
		handled <- guid
		return nil
	})
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			if _, err := s.Receive(t.Context(), thread.Delivery{GUID: fmt.Sprintf("g%d", n), Event: "ping", ReceivedAt: c.Now()}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for len(seen) < 100 {
		seen[await(t, "delivery", handled)] = true
	}
}
