package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/pawlbot/pawl/solver"
)

// Options are what the queue works with; all but Workers and Logger are needed.
type Options struct {
	// DB is the store's pool, for SQLite the one writing connection.
	DB       *sql.DB
	Postgres bool
	// Workers is how many steps, and so attempts, run at a time; 0 means 4.
	Workers int
	// HandleDelivery handles one stored delivery, of which maybe only the GUID is
	// known here. It notes in the store what became of it, also when it is to be
	// tried again, and must do nothing for a delivery that was handled already.
	HandleDelivery func(ctx context.Context, d solver.Delivery) error
	// Due reports whether the thread needs a step. A job that finds it false is a
	// duplicate and does nothing.
	Due func(ctx context.Context, t solver.Thread) (bool, error)
	// Step takes the thread's next step, and stores when the thread is due again,
	// also where the step fails. A *solver.HeldError is no failure: whoever holds
	// the lease enqueues again on giving it back. ctx ends when the queue stops;
	// the step should then leave a state to go on from.
	Step func(ctx context.Context, t solver.Thread) error
	// Sweep is called every SweepInterval and must not take longer.
	Sweep  func(ctx context.Context) error
	Logger *slog.Logger
}

// SweepInterval is how often Sweep is called.
const SweepInterval = 5 * time.Second

// The name of River's queue, and how many steps are worked at a time where
// Options does not say.
const (
	stepQueue      = "steps"
	defaultWorkers = 4
)

// Queue is a River client for steps, an inbox of deliveries and a sweep. It
// implements store.Enqueuer, also before Start.
type Queue struct {
	client *river.Client[*sql.Tx]
	bell   bell
	inbox  *inbox
	sweep  func(context.Context) error
	logger *slog.Logger

	end  context.CancelFunc // of the sweep and the inbox's workers
	ends sync.WaitGroup
}

// New prepares a queue; nothing runs until Start. The database must have
// River's tables, which the store's migration makes.
func New(o Options) (*Queue, error) { return newQueue(o, pollInterval) }

func newQueue(o Options, poll time.Duration) (*Queue, error) {
	if o.DB == nil || o.HandleDelivery == nil || o.Due == nil || o.Step == nil || o.Sweep == nil {
		return nil, errors.New("queue: DB, HandleDelivery, Due, Step and Sweep are needed")
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &stepWorker{due: o.Due, step: o.Step, logger: o.Logger}); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	var driver riverdriver.Driver[*sql.Tx] = riversqlite.New(o.DB)
	if o.Postgres {
		driver = riverdatabasesql.New(o.DB)
	}
	bell := newBell()
	driver = belled{driver, bell}
	client, err := river.NewClient(driver, config(o, workers, poll))
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Queue{client: client, bell: bell, inbox: newInbox(o.HandleDelivery, o.Logger), sweep: o.Sweep, logger: o.Logger}, nil
}

// River's times.
//
// pollInterval is how late at most the jobs start that the bell does not tell
// of: those of other nodes, and scheduled ones, which River makes available every
// 5 s.
//
// fetchCooldown bounds the rate of jobs at workers / cooldown (measured by
// others: exactly that).
//
// rescueAfter only tidies up the rows of a killed process. Its work has long
// been taken up by the sweep, and a job that is merely long is protected by its
// lease.
//
// keepCompleted keeps River's table small; what happened is in the store.
const (
	pollInterval  = 500 * time.Millisecond
	fetchCooldown = 2 * time.Millisecond
	rescueAfter   = 10 * time.Minute
	keepCompleted = 2 * time.Minute
	keepDiscarded = 7 * 24 * time.Hour
)

func config(o Options, workers *river.Workers, poll time.Duration) *river.Config {
	return &river.Config{
		Queues: map[string]river.QueueConfig{
			stepQueue: {MaxWorkers: o.Workers},
		},
		Workers:                     workers,
		Logger:                      o.Logger,
		FetchPollInterval:           poll,
		FetchCooldown:               fetchCooldown,
		RescueStuckJobsAfter:        rescueAfter,
		CompletedJobRetentionPeriod: keepCompleted,
		CancelledJobRetentionPeriod: keepCompleted,
		DiscardedJobRetentionPeriod: keepDiscarded,
	}
}

// Start begins to work steps and deliveries and to sweep. The work goes on until Stop, also
// when ctx ends.
func (q *Queue) Start(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if err := q.client.Start(ctx); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	ctx, q.end = context.WithCancel(ctx)
	for range deliveryWorkers {
		q.ends.Go(func() { q.inbox.work(ctx) })
	}
	q.ends.Go(func() { q.sweepEvery(ctx, SweepInterval) })
	return nil
}

// Stop fetches no more jobs, ends the contexts of those at work so that they
// leave a state to go on from, and waits for them until ctx ends. Steps that were
// cut off enqueue themselves again, for the next Start or another node; deliveries
// are taken up by the next sweep that finds them due.
func (q *Queue) Stop(ctx context.Context) error {
	if q.end == nil {
		return nil
	}
	q.end()
	err := q.client.StopAndCancel(ctx)
	ended := make(chan struct{})
	go func() { q.ends.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("stop the queue: %w", err)
	}
	return nil
}

// sweepEvery sweeps at once, for what a crash left behind, and then at the
// interval.
func (q *Queue) sweepEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := q.sweep(ctx); err != nil && ctx.Err() == nil {
			q.logger.ErrorContext(ctx, "the sweep failed; it is repeated", slog.String("err", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Step enqueues a step of the thread in the transaction, at once if the time is
// zero or has passed.
func (q *Queue) Step(ctx context.Context, tx *sql.Tx, t solver.Thread, at time.Time) error {
	opts := &river.InsertOpts{}
	if at.After(time.Now()) {
		// River keeps milliseconds; a step that came early would find nothing due.
		opts.ScheduledAt = at.Truncate(time.Millisecond).Add(time.Millisecond)
	}
	if _, err := q.client.InsertManyFastTx(ctx, tx, []river.InsertManyParams{{Args: stepArgs{t}, InsertOpts: opts}}); err != nil {
		return fmt.Errorf("queue a step of %s: %w", t, err)
	}
	return nil
}

// Committed wakes the workers for steps that were just committed, and takes the
// deliveries that this process is to handle.
func (q *Queue) Committed(steps bool, deliveries []solver.Delivery) {
	if steps {
		q.bell.ring()
	}
	q.inbox.put(deliveries)
}
