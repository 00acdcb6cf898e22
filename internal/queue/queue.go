package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver/thread"
)

type Store interface {
	// Claim takes the leases of threads that are due, at most so many.
	Claim(ctx context.Context, owner string, most int) ([]thread.Lease, error)
	// ClaimDeliveries gives the caller deliveries that are due, at most so many.
	ClaimDeliveries(ctx context.Context, most int) ([]thread.Delivery, error)
	// Listen calls wake whenever another node made threads due, until ctx ends.
	Listen(ctx context.Context, wake func())
}

// Options are what the queue works with; all but Halted are needed.
type Options struct {
	Store Store
	// Node names this process in leases.
	Node    string
	Workers int // how many steps, and so attempts, run at a time
	// HandleDelivery handles one stored delivery, of which maybe only the GUID is
	// known here. It notes in the store what became of it, also when it is to be
	// tried again, and must do nothing for a delivery that was handled already.
	HandleDelivery func(ctx context.Context, d thread.Delivery) error
	// Step works on a thread whose lease was asked for at a time, gives the lease
	// back, and stores when the thread is due again, also where it fails. ctx ends
	// when the queue stops; the step should then leave a state to go on from.
	Step  func(ctx context.Context, l thread.Lease, asked time.Time) error
	Sweep func(ctx context.Context) error // called every SweepInterval and must not take longer
	// Halted says why this process must claim nothing now; nil, as its answer or itself, if it may. What is at work
	// goes on.
	Halted func() error
	Logger *slog.Logger
}

// SweepInterval is how often Sweep is called.
const SweepInterval = 5 * time.Second

const (
	// pollInterval is how late at most work starts that nothing woke this process for: the end of a wait, and
	// what a lost connection kept another node from telling. Looking takes three reads of an index.
	pollInterval = time.Second
	// claimTime bounds one claim, which takes milliseconds.
	claimTime = 10 * time.Second
	// threadsAtOnce is how many threads one claim takes at most, so that others get theirs meanwhile.
	threadsAtOnce = 8
)

// Queue claims what is due and works it off: threads by steps, deliveries by their
// handler. It implements store.Queue, also before Start.
type Queue struct {
	o     Options
	woken chan struct{} // threads may be due
	inbox *inbox
	drain context.CancelFunc // ends the claiming of threads
	steps sync.WaitGroup     // and what claims them
	end   context.CancelFunc
	ends  sync.WaitGroup
	// failed is the error of the last claim of threads, nil if it had none.
	failed atomic.Pointer[error]
}

func New(o Options) *Queue {
	return &Queue{o: o, woken: make(chan struct{}, 1), inbox: newInbox(o.HandleDelivery, o.Logger)}
}

// Start begins to work steps and deliveries and to sweep. The work goes on until Stop, also when ctx ends.
func (q *Queue) Start(ctx context.Context) {
	ctx, q.end = context.WithCancel(context.WithoutCancel(ctx))
	for range deliveryWorkers {
		q.ends.Go(func() { q.inbox.work(ctx) })
	}
	q.ends.Go(func() { q.claimDeliveries(ctx) })
	claiming, drain := context.WithCancel(ctx)
	q.drain = drain
	q.steps.Go(func() { q.claimThreads(claiming, ctx) })
	q.ends.Go(func() { q.o.Store.Listen(ctx, q.wake) })
	q.ends.Go(func() { q.sweep(ctx) })
}

// Drain claims no more threads, and waits for those at work until ctx ends. Deliveries
// are handled all the while.
func (q *Queue) Drain(ctx context.Context) error {
	q.drain()
	return await(ctx, &q.steps)
}

// Stop claims nothing more, ends the contexts of those at work so that they leave a state to go on from, and
// waits for them until ctx ends. What was cut off is due in its row, for the next Start or another node.
func (q *Queue) Stop(ctx context.Context) error {
	if q.end == nil {
		return nil
	}
	q.end()
	return errors.Join(await(ctx, &q.steps), await(ctx, &q.ends))
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

// Committed wakes the workers for threads that became due, and takes the
// deliveries that this process is to handle.
func (q *Queue) Committed(threads bool, deliveries []thread.Delivery) {
	if threads {
		q.wake()
	}
	q.inbox.put(deliveries)
}

// wake has the threads looked at once more. A second call before that is done adds
// nothing: the look sees both.
func (q *Queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// claimThreads claims as many threads as there are free workers, whenever any may
// be due, until ctx ends. Their steps go on until work ends.
func (q *Queue) claimThreads(ctx, work context.Context) {
	free := semaphore.NewWeighted(int64(q.o.Workers))
	for free.Acquire(ctx, 1) == nil {
		n := 1
		for n < threadsAtOnce && free.TryAcquire(1) {
			n++
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
		if len(leases) == n {
			continue // more may be due
		}
		select {
		case <-ctx.Done():
			return
		case <-q.woken:
		// By chance, so that of several nodes not always the same one comes first: it
		// may be one that has no place for an attempt, while another has.
		case <-time.After(pollInterval/2 + rand.N(pollInterval)):
		}
	}
}

// Trouble is why the last claim of threads failed; nil if it did not.
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
	leases, err := q.o.Store.Claim(ctx, q.o.Node, n)
	q.failed.Store(&err)
	q.warn(ctx, err, "threads were not claimed; they stay due")
	return leases
}

// step works one thread. One that panics has stored when it is tried again, as any that fails.
func (q *Queue) step(ctx context.Context, l thread.Lease, asked time.Time) {
	id := slog.String("thread", l.Thread.String())
	defer func() {
		if p := recover(); p != nil {
			q.o.Logger.ErrorContext(ctx, "a step panicked; it is tried again", id, slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	q.warn(ctx, q.o.Step(ctx, l, asked), "a step failed; it is tried again", id)
}

// claimDeliveries has this process handle deliveries that are due, a few at a time
// and only while it has no others.
func (q *Queue) claimDeliveries(ctx context.Context) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		for more := true; more && q.inbox.idle() && ctx.Err() == nil && !q.halted(); {
			claiming, cancel := context.WithTimeout(ctx, claimTime)
			deliveries, err := q.o.Store.ClaimDeliveries(claiming, deliveriesAtOnce)
			cancel()
			q.warn(ctx, err, "deliveries were not claimed; they stay due")
			q.inbox.put(deliveries)
			more = len(deliveries) == deliveriesAtOnce
		}
		select {
		case <-ctx.Done():
			return
		case <-q.inbox.emptied:
		case <-poll.C:
		}
	}
}

// sweep sweeps at once, for what a crash left behind, and then again and again.
func (q *Queue) sweep(ctx context.Context) {
	for {
		q.warn(ctx, q.o.Sweep(ctx), "the sweep failed; it is repeated")
		if wait.For(ctx, SweepInterval) != nil {
			return
		}
	}
}

// warn logs an error, unless it is the end of the queue.
func (q *Queue) warn(ctx context.Context, err error, what string, more ...any) {
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		q.o.Logger.WarnContext(ctx, what, append(more, slog.String("err", err.Error()))...)
	}
}
