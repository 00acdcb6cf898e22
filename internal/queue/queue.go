package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pawlbot/pawl/internal/panics"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver/thread"
)

type Store interface {
	// Claim leases up to `most` due threads.
	Claim(ctx context.Context, owner string, most int) ([]thread.Lease, error)
	// ClaimDeliveries claims up to `most` due deliveries.
	ClaimDeliveries(ctx context.Context, most int) ([]thread.Delivery, error)
	// Listen calls wake when a node has made threads due, until ctx ends. It shows other nodes that node is running.
	Listen(ctx context.Context, node string, wake func())
}

// Options are the queue's parts. Only Halted is optional.
type Options struct {
	Store   Store
	Node    string
	Workers int // concurrent steps and attempts
	// HandleDelivery handles one stored delivery, whose payload may still be in its row. It stores the result and the
	// next try, and does nothing for a handled delivery.
	HandleDelivery func(ctx context.Context, d thread.Delivery) error
	// Step works on a leased thread; asked is when the claim began. It releases the lease and stores when the thread is
	// due again, even after a failure. When ctx ends, it should leave a state from which the next step can continue.
	Step  func(ctx context.Context, l thread.Lease, asked time.Time) error
	Sweep func(ctx context.Context) error // called every SweepInterval; must not take longer
	// Halted returns why this process must claim nothing now, else nil. Running work continues.
	Halted func() error
	Logger *slog.Logger
}

const SweepInterval = 5 * time.Second

const (
	// pollInterval is the mean interval of polls for work without a wake-up: ended waits and lost notifications. Each
	// poll takes three index reads.
	pollInterval = time.Second
	// claimTime limits one claim, which takes milliseconds.
	claimTime = 10 * time.Second
	// threadsAtOnce limits one claim, so that other nodes get threads too.
	threadsAtOnce = 8
	// fullClaimTime is how long a claim waits for threadsAtOnce slots while more threads are due. Our choice.
	fullClaimTime = 20 * time.Millisecond
)

// Queue claims due work and does it. It implements store.Queue, also before Start.
type Queue struct {
	o     Options
	woken chan struct{} // threads may be due
	inbox *inbox
	drain context.CancelFunc // stops claiming threads
	steps sync.WaitGroup     // running steps and the claiming goroutine
	end   context.CancelFunc
	ends  sync.WaitGroup
	// unlisten ends Listen, which shows other nodes that this one runs. Until then its last steps keep their leases.
	unlisten context.CancelFunc
	// failed is the last error of claiming threads; nil for success.
	failed atomic.Pointer[error]
}

func New(o Options) *Queue {
	return &Queue{o: o, woken: make(chan struct{}, 1), inbox: newInbox(o.HandleDelivery, o.Logger)}
}

// Start starts the workers and the sweep. They work until Stop, even after ctx ends.
func (q *Queue) Start(ctx context.Context) {
	ctx, q.end = context.WithCancel(context.WithoutCancel(ctx))
	for range deliveryWorkers {
		q.ends.Go(func() { q.inbox.work(ctx) })
	}
	q.ends.Go(func() { q.claimDeliveries(ctx) })
	claiming, drain := context.WithCancel(ctx)
	q.drain = drain
	q.steps.Go(func() { q.claimThreads(claiming, ctx) })
	listening, unlisten := context.WithCancel(context.WithoutCancel(ctx))
	q.unlisten = unlisten
	q.ends.Go(func() {
		listen := func() { q.o.Store.Listen(listening, q.o.Node, q.wake) }
		panics.Repeat(listening, listen, func(e *panics.Error) { q.warn(listening, e, "listening for notifications failed; it begins again") })
	})
	q.ends.Go(func() { q.sweep(ctx) })
}

// Drain claims no more threads, and waits for the running steps until ctx ends. Deliveries are still handled.
func (q *Queue) Drain(ctx context.Context) error {
	q.drain()
	return await(ctx, &q.steps)
}

// Stop claims nothing more, ends the running steps' contexts, and waits for them until ctx ends. Unfinished work
// stays due in its row.
func (q *Queue) Stop(ctx context.Context) error {
	if q.end == nil {
		return nil
	}
	q.end()
	err := await(ctx, &q.steps)
	q.unlisten()
	return errors.Join(err, await(ctx, &q.ends))
}

func await(ctx context.Context, work *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() { work.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the queue: %w", ctx.Err())
	}
}

// Committed wakes the workers if threads are due, and queues deliveries in this process.
func (q *Queue) Committed(threads bool, deliveries []thread.Delivery) {
	if threads {
		q.wake()
	}
	q.inbox.put(deliveries)
}

// wake requests a claim of threads. Calls before the claim are merged.
func (q *Queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// claimThreads claims threads for free workers, whenever any may be due, until ctx ends. Their steps continue until
// work ends.
func (q *Queue) claimThreads(ctx, work context.Context) {
	free := semaphore.NewWeighted(int64(q.o.Workers))
	due := false
	for {
		n := q.slots(ctx, free, due)
		if n == 0 {
			return
		}
		asked := time.Now()
		leases := q.claim(ctx, n)
		for _, l := range leases {
			q.steps.Go(func() {
				defer free.Release(1)
				q.step(work, l, asked)
			})
		}
		free.Release(int64(n - len(leases)))
		if due = len(leases) == n; due {
			continue // more may be due
		}
		select {
		case <-ctx.Done():
			return
		case <-q.woken:
		// Polls are random, so that no node is always first: it may lack a slot that another node has.
		case <-time.After(pollInterval/2 + rand.N(pollInterval)):
		}
	}
}

// slots takes the free slots for a claim, at least one; none if ctx ends. If more threads are due, it waits a moment for
// a full claim's slots. With several nodes, claims of one thread each would take as long as the steps.
func (q *Queue) slots(ctx context.Context, free *semaphore.Weighted, due bool) (n int) {
	most := min(threadsAtOnce, q.o.Workers)
	if due {
		short, cancel := context.WithTimeout(ctx, fullClaimTime)
		defer cancel()
		if free.Acquire(short, int64(most)) == nil {
			return most
		}
	}
	if free.Acquire(ctx, 1) != nil {
		return 0
	}
	n = 1
	for n < most && free.TryAcquire(1) {
		n++
	}
	return n
}

// Trouble returns the last error of claiming threads; nil for success.
func (q *Queue) Trouble() error {
	if err := q.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (q *Queue) halted() bool { return q.o.Halted != nil && q.o.Halted() != nil }

func (q *Queue) claim(ctx context.Context, n int) []thread.Lease {
	if q.halted() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	var leases []thread.Lease
	err := panics.Try(func() (err error) {
		leases, err = q.o.Store.Claim(ctx, q.o.Node, n)
		return err
	})
	q.failed.Store(&err)
	q.warn(ctx, err, "claim threads; they stay due")
	return leases
}

// step works on one thread. A panicking step has stored its next try.
func (q *Queue) step(ctx context.Context, l thread.Lease, asked time.Time) {
	err := panics.Try(func() error { return q.o.Step(ctx, l, asked) })
	q.warn(ctx, err, "a step failed; retrying", slog.String("thread", l.Thread.String()))
}

// claimDeliveries claims a few due deliveries while this process has no others.
func (q *Queue) claimDeliveries(ctx context.Context) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		for more := true; more && q.inbox.idle() && ctx.Err() == nil && !q.halted(); {
			n, err := q.claimSomeDeliveries(ctx)
			q.warn(ctx, err, "claim deliveries; they stay due")
			more = n == deliveriesAtOnce
		}
		select {
		case <-ctx.Done():
			return
		case <-q.inbox.emptied:
		case <-poll.C:
		}
	}
}

func (q *Queue) claimSomeDeliveries(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	err = panics.Try(func() error {
		deliveries, err := q.o.Store.ClaimDeliveries(ctx, deliveriesAtOnce)
		q.inbox.put(deliveries)
		n = len(deliveries)
		return err
	})
	return n, err
}

// sweep runs at once, after a possible crash, and then periodically.
func (q *Queue) sweep(ctx context.Context) {
	for {
		err := panics.Try(func() error { return q.o.Sweep(ctx) })
		q.warn(ctx, err, "the sweep failed; retrying")
		if wait.For(ctx, SweepInterval) != nil {
			return
		}
	}
}

// warn logs an error, unless the queue is ending, and the stack of a panic.
func (q *Queue) warn(ctx context.Context, err error, what string, more ...any) {
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	more = append(more, slog.String("err", err.Error()))
	if stack := panics.Stack(err); stack != "" {
		more = append(more, slog.String("stack", stack))
	}
	q.o.Logger.WarnContext(ctx, what, more...)
}
