package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/pawlbot/pawl/solver"
)

type stepArgs struct {
	Thread solver.Thread `json:"thread"`
}

func (stepArgs) Kind() string { return "step" }

// stepTries is how often River tries a job: once. What is left to do stands in
// the thread's row, also after a step that failed.
const stepTries = 1

// InsertOpts says where steps queue.
func (stepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: stepQueue, MaxAttempts: stepTries}
}

type stepWorker struct {
	river.WorkerDefaults[stepArgs]
	due    func(context.Context, solver.Thread) (bool, error)
	step   func(context.Context, solver.Thread) error
	logger *slog.Logger
}

// Timeout is none: an attempt has its own.
func (w *stepWorker) Timeout(*river.Job[stepArgs]) time.Duration { return -1 }

// Work takes a step if one is due; otherwise the job is a duplicate. It always ends
// well: of a thread whose step failed, or that could not be looked at, the row says
// when it is due again.
func (w *stepWorker) Work(ctx context.Context, job *river.Job[stepArgs]) error {
	t := job.Args.Thread
	due, err := true, error(nil)
	if job.MaxAttempts == stepTries {
		// A job of an older version, which has more tries, may have taken its
		// thread's wake-up already.
		due, err = w.due(ctx, t)
	}
	if due && err == nil {
		err = w.step(ctx, t)
	}
	if _, held := errors.AsType[*solver.HeldError](err); err != nil && !held && ctx.Err() == nil {
		w.logger.WarnContext(ctx, "a step failed; it is tried again", slog.String("thread", t.String()), slog.String("err", err.Error()))
	}
	return nil
}
