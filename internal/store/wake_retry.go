package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// nothingLater stands in later_at where the thread waited for nothing before its
// retry; it is a time that has long come.
const nothingLater = 1

// ReleaseUnfinished is Release for a step that did not come to its end. The same
// transaction stores when the thread is tried again, so that no kill loses that. A
// wake-up time that is still to come stays, and comes back with the next step.
func (s *Store) ReleaseUnfinished(ctx context.Context, l solver.Lease, retry solver.Retry) error {
	err := s.write(ctx, func(tx *txn) error {
		r, err := s.checkLease(ctx, tx, l)
		if errors.Is(err, solver.ErrLeaseLost) {
			return nil
		}
		if err != nil {
			return err
		}
		now := s.now()
		failures, laterAt, tried := r.failures+1, int64(0), time.Time{}
		if at := now.Add(retry(failures)); r.wakeAt.IsZero() || at.Before(r.wakeAt) {
			laterAt, tried, r.wakeAt = max(micros(r.wakeAt), nothingLater), at, at
		}
		if _, err := tx.ExecContext(ctx, s.q(`UPDATE threads SET lease_owner = '', lease_until = 0, account = '',
			failures = ?2, later_at = ?3, wake_at = ?4 WHERE id = ?1`), r.id, failures, laterAt, micros(r.wakeAt)); err != nil {
			return err
		}
		switch {
		case !r.queuedAt.IsZero(), !r.wakeAt.IsZero() && !r.wakeAt.After(now):
			now = s.dueNow()
			return s.enqueue(ctx, tx, r, now, now, requeueAfter)
		case !tried.IsZero() && s.queue != nil:
			return s.queue.Step(ctx, tx.Tx, r.thread, tried)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("release %s: %w", l.Thread, err)
	}
	return nil
}
