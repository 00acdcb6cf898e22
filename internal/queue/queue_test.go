package queue

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows is a store of due threads and deliveries. Claimed rows are no longer due.
type rows struct {
	mu         sync.Mutex
	threads    []int
	deliveries []thread.Delivery
	claims     []int // number of threads in each claim
	err        error
}

func (r *rows) Claim(_ context.Context, owner string, most int) (leases []thread.Lease, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.threads) > 0 && len(leases) < most && r.err == nil {
		leases = append(leases, thread.Lease{Thread: thread.ID{Owner: "octo", Name: "cat", Number: r.threads[0]}, Owner: owner})
		r.threads = r.threads[1:]
	}
	r.claims = append(r.claims, len(leases))
	return leases, r.err
}

func (r *rows) ClaimDeliveries(_ context.Context, most int) ([]thread.Delivery, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(most, len(r.deliveries))
	claimed := r.deliveries[:n]
	r.deliveries = r.deliveries[n:]
	return claimed, nil
}

func (r *rows) Listen(ctx context.Context, _ string, _ func()) { <-ctx.Done() }

func (r *rows) add(threads ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.threads = append(r.threads, threads...)
}

func noDelivery(context.Context, thread.Delivery) error { return nil }

func started(t *testing.T, o Options) *Queue {
	t.Helper()
	if o.Sweep == nil {
		o.Sweep = func(context.Context) error { return nil }
	}
	if o.HandleDelivery == nil {
		o.HandleDelivery = noDelivery
	}
	o.Node, o.Workers, o.Logger = "node", cmp.Or(o.Workers, 4), cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	q := New(o)
	q.Start(t.Context())
	t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return q
}

func TestCommittedWorkStartsAtOnce(t *testing.T) {
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begun := make(chan string, 100)
	q := started(t, Options{
		Store: s,
		Step: func(ctx context.Context, l thread.Lease, _ time.Time) error {
			begun <- l.Thread.String()
			return s.Release(ctx, l, nil)
		},
		HandleDelivery: func(ctx context.Context, d thread.Delivery) error {
			begun <- d.GUID
			return s.FinishDelivery(ctx, d.GUID, thread.Handled, "")
		},
	})
	s.UseQueue(q)
	for n := range 10 {
		th := thread.ID{Owner: "octo", Name: "cat", Number: n + 1}
		if _, err := s.Append(t.Context(), th, true); err != nil {
			t.Fatal(err)
		}
		if got := <-begun; got != th.String() {
			t.Fatalf("%s began, want %s", got, th)
		}
		guid := fmt.Sprint("guid-", n)
		if _, err := s.Receive(t.Context(), thread.Delivery{GUID: guid, Event: "ping", ReceivedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if got := <-begun; got != guid {
			t.Fatalf("%s began, want %s", got, guid)
		}
	}
	if err := q.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestWakeUpAndPollWorkAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		r := &rows{}
		q := started(t, Options{Store: r, Workers: 1, Step: func(context.Context, thread.Lease, time.Time) error {
			at = append(at, time.Since(began))
			return nil
		}})
		time.Sleep(300 * time.Millisecond)
		r.add(1)
		q.Committed(true, nil)
		synctest.Wait()
		r.add(2) // without a wake-up
		time.Sleep(2 * pollInterval)
		synctest.Wait()
		if len(at) != 2 || at[0] != 300*time.Millisecond || at[1] > 300*time.Millisecond+3*pollInterval/2 {
			t.Errorf("steps began after %v, want the first at once and the second within a poll and a half", at)
		}
	})
}

func TestClaimsFitFreeWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rows{}
		for n := range 30 {
			r.add(n + 1)
		}
		proceed := make(chan struct{})
		var running atomic.Int64
		started(t, Options{Store: r, Workers: 10, Step: func(context.Context, thread.Lease, time.Time) error {
			running.Add(1)
			<-proceed
			return nil
		}})
		time.Sleep(fullClaimTime)
		synctest.Wait()
		if want := []int{8, 2}; running.Load() != 10 || fmt.Sprint(r.claims) != fmt.Sprint(want) {
			t.Errorf("%d steps run after claims of %v, want 10 after %v", running.Load(), r.claims, want)
		}
		close(proceed)
		synctest.Wait()
		if running.Load() != 30 || len(r.threads) != 0 {
			t.Errorf("%d steps ran, and %v are left", running.Load(), r.threads)
		}
	})
}

// A claim costs the same for one thread and for eight. Nodes would otherwise claim each thread as soon as a step ends.
func TestClaimsAreFullWhileMoreThreadsAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rows{}
		const all = 12 * threadsAtOnce
		for n := range all {
			r.add(n + 1)
		}
		started(t, Options{Store: r, Workers: 2 * threadsAtOnce, Step: func(_ context.Context, l thread.Lease, _ time.Time) error {
			time.Sleep(time.Duration(1+l.Thread.Number%threadsAtOnce) * time.Millisecond)
			return nil
		}})
		time.Sleep(pollInterval / 2)
		synctest.Wait()
		var want []int
		for range all / threadsAtOnce {
			want = append(want, threadsAtOnce)
		}
		if got := r.claims[:min(len(want), len(r.claims))]; !slices.Equal(got, want) || len(r.threads) > 0 {
			t.Errorf("claimed %v, and %v are left; want claims of %d", r.claims, r.threads, threadsAtOnce)
		}
	})
}

func TestDueDeliveriesAreClaimedWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rows{}
		for n := range 100 {
			r.deliveries = append(r.deliveries, delivery(n, 0))
		}
		var handled atomic.Int64
		proceed := make(chan struct{})
		started(t, Options{Store: r, Step: func(context.Context, thread.Lease, time.Time) error { return nil },
			HandleDelivery: func(context.Context, thread.Delivery) error { <-proceed; handled.Add(1); return nil }})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if left := 100 - deliveriesAtOnce; len(r.deliveries) != left {
			t.Errorf("%d are left to others, want %d", len(r.deliveries), left)
		}
		close(proceed)
		synctest.Wait() // without a poll
		if handled.Load() != 100 {
			t.Errorf("%d were handled, want 100", handled.Load())
		}
	})
}

func TestSweepRunsAtOnceAndEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, sweeps := time.Now(), []time.Duration{}
		started(t, Options{Store: &rows{}, Step: func(context.Context, thread.Lease, time.Time) error { return nil }, Sweep: func(context.Context) error {
			sweeps = append(sweeps, time.Since(began))
			return errors.New("the disk is on fire")
		}})
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if want := []time.Duration{0, 5 * time.Second, 10 * time.Second}; fmt.Sprint(sweeps) != fmt.Sprint(want) {
			t.Errorf("swept after %v, want %v", sweeps, want)
		}
	})
}

func TestStopCancelsStepsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		q := started(t, Options{Store: &rows{threads: []int{1}}, Step: func(ctx context.Context, _ thread.Lease, _ time.Time) error {
			<-ctx.Done()
			time.Sleep(time.Second) // it stores its state
			ended = true
			return ctx.Err()
		}})
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := q.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stop that ran out of time returned %v", err)
		}
		if err := q.Stop(t.Context()); err != nil || !ended {
			t.Errorf("stopped with %v; the step ended: %t", err, ended)
		}
	})
}

// listened records when Listen ended.
type listened struct {
	*rows
	ended time.Time
}

func (l *listened) Listen(ctx context.Context, _ string, _ func()) {
	<-ctx.Done()
	l.ended = time.Now()
}

// TestStoppingNodeListensUntilItsStepsHaveEnded: Listen shows the other nodes that this one runs. Without it they would
// take the threads whose work is being handed over.
func TestStoppingNodeListensUntilItsStepsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listened{rows: &rows{threads: []int{1}}}
		var handedOver time.Time
		q := started(t, Options{Store: l, Step: func(ctx context.Context, _ thread.Lease, _ time.Time) error {
			<-ctx.Done()
			time.Sleep(12 * time.Second)
			handedOver = time.Now()
			return nil
		}})
		synctest.Wait()
		if err := q.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if l.ended.Before(handedOver) {
			t.Errorf("Listen ended %s before the step", handedOver.Sub(l.ended))
		}
	})
}

func TestFailuresAreLoggedAndStopNothing(t *testing.T) {
	for name, c := range map[string]struct {
		claim error
		step  func(context.Context) error
		want  string
	}{
		"a step that fails":         {step: func(context.Context) error { return errors.New("GitHub is down") }, want: "GitHub is down"},
		"a step that panics":        {step: func(context.Context) error { panic("nil map") }, want: "nil map"},
		"an interrupted step":       {step: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		"a successful step":         {step: func(context.Context) error { return nil }},
		"a database that is broken": {claim: errors.New("the disk is full"), want: "the disk is full"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				r := &rows{threads: []int{1}, err: c.claim}
				q := started(t, Options{Store: r, Workers: 2, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
					Step: func(ctx context.Context, _ thread.Lease, _ time.Time) error { return c.step(ctx) }})
				time.Sleep(time.Millisecond)
				if err := q.Stop(t.Context()); err != nil {
					t.Error(err)
				}
				if got := logged.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
					t.Errorf("logged %q", got)
				}
			})
		})
	}
}

// panicking panics on the first call of each of its methods.
type panicking struct {
	rows
	claims, deliveries, listens atomic.Int64
}

func (p *panicking) Claim(ctx context.Context, owner string, most int) ([]thread.Lease, error) {
	if p.claims.Add(1) == 1 {
		panic("claim")
	}
	return p.rows.Claim(ctx, owner, most)
}

func (p *panicking) ClaimDeliveries(ctx context.Context, most int) ([]thread.Delivery, error) {
	if p.deliveries.Add(1) == 1 {
		panic("deliveries")
	}
	return p.rows.ClaimDeliveries(ctx, most)
}

func (p *panicking) Listen(ctx context.Context, node string, wake func()) {
	if p.listens.Add(1) == 1 {
		panic("listen")
	}
	p.rows.Listen(ctx, node, wake)
}

func TestPanicsInTheBackgroundStopNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		var sweeps, steps, deliveries atomic.Int64
		p := &panicking{rows: rows{threads: []int{1}, deliveries: []thread.Delivery{{GUID: "one"}}}}
		started(t, Options{
			Store:  p,
			Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			Step:   func(context.Context, thread.Lease, time.Time) error { steps.Add(1); return nil },
			HandleDelivery: func(context.Context, thread.Delivery) error {
				deliveries.Add(1)
				return nil
			},
			Sweep: func(context.Context) error {
				if sweeps.Add(1) == 1 {
					panic("sweep")
				}
				return nil
			},
		})
		time.Sleep(time.Minute)
		for what, n := range map[string]int64{"steps": steps.Load(), "deliveries": deliveries.Load(), "sweeps after the first": sweeps.Load() - 1, "listens after the first": p.listens.Load() - 1} {
			if n == 0 {
				t.Errorf("no %s", what)
			}
		}
		for _, what := range []string{"claim", "deliveries", "listen", "sweep"} {
			if !strings.Contains(logged.String(), "the stack: "+what) {
				t.Errorf("the log has no panic of %s", what)
			}
		}
		if !strings.Contains(logged.String(), "queue_test.go") {
			t.Error("the log has no stack")
		}
	})
}
