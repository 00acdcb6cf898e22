package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/pawlbot/pawl/solver"
)

// How often a step is tried after errors. With retryCap between two tries it is
// tried for about a day, longer than an outage at GitHub lasts; then it waits for
// the thread's next event.
const (
	stepTries = 300
	retryCap  = 5 * time.Minute
)

type stepArgs struct {
	Thread solver.Thread `json:"thread"`
}

func (stepArgs) Kind() string { return "step" }

// InsertOpts says where steps queue.
func (stepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: stepQueue, MaxAttempts: stepTries}
}

type stepWorker struct {
	river.WorkerDefaults[stepArgs]
	due  func(context.Context, solver.Thread) (bool, error)
	step func(context.Context, solver.Thread) error
}

// Timeout is none: an attempt has its own.
func (w *stepWorker) Timeout(*river.Job[stepArgs]) time.Duration { return -1 }

func (w *stepWorker) Work(ctx context.Context, job *river.Job[stepArgs]) error {
	t := job.Args.Thread
	again, err := repeated(job.JobRow)
	if err != nil {
		return fmt.Errorf("step of %s: %w", t, err)
	}
	if !again {
		due, err := w.due(ctx, t)
		if err != nil {
			return retry(ctx, fmt.Errorf("step of %s: %w", t, err))
		}
		if !due {
			return nil
		}
	}
	err = w.step(ctx, t)
	if _, held := errors.AsType[*solver.HeldError](err); held {
		return nil
	}
	if err != nil {
		return retry(ctx, fmt.Errorf("step of %s: %w", t, err))
	}
	return nil
}

// repeated reports whether the job ran before and failed or was cut off. Only a
// job that never ran can be a duplicate: its step took the wake-up with the
// lease, so that nothing is due although work is left.
func repeated(job *rivertype.JobRow) (bool, error) {
	var meta struct {
		Snoozes int `json:"snoozes"`
	}
	if err := json.Unmarshal(job.Metadata, &meta); err != nil {
		return false, fmt.Errorf("metadata of job %d: %w", job.ID, err)
	}
	return job.Attempt > 1 || meta.Snoozes > 0, nil
}

// retry returns what makes River try again: an error counts as a try and waits,
// but a job that Stop cut off is free for the next Start. Nothing else cancels a
// job; a deadline is an error.
func retry(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return river.JobSnooze(0)
	}
	return err
}

// retryPolicy doubles the wait from one second up to retryCap and takes a
// random half of it off, so that what failed together does not return together.
type retryPolicy struct{}

// NextRetry is when a job is tried again after its last try.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	wait := min(time.Second<<min(len(job.Errors), 16), retryCap)
	return time.Now().Add(wait - rand.N(wait/2))
}
