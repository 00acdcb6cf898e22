package store

import (
	"context"
	"fmt"
	"time"
)

// Retention says before which times records may go. A zero time keeps all of a
// kind.
type Retention struct {
	// Deliveries bounds payloads, and the GUIDs that are also older than 30 days.
	Deliveries time.Time
	// Threads bounds the logs of threads that are closed, or that Pawl never
	// worked on, by when they were touched last.
	Threads time.Time
}

// Cleaned counts what Clean removed.
type Cleaned struct {
	Payloads, Deliveries, Threads, Events int
	// Longest is how long one of its transactions took at most: that is what it
	// can have added to the wait of a delivery.
	Longest time.Duration `json:"-"`
}

// keepGUIDs is how long a GUID is remembered at least, so that a redelivery has
// no second effect. GitHub redelivers for 3 days; the rest is margin.
const keepGUIDs = 30 * 24 * time.Hour

// Clean removes what is older than its retention, in transactions of a few rows
// each, with rests between them, so it should have a goroutine of its own.
// Several nodes may clean at a time. The file of SQLite does not shrink; what is
// free in it is used again. After a power cut some of it may be there again.
//
// With a clock that cannot be trusted it removes nothing and returns ErrClock;
// whoever removes other old things should then leave them, too.
func (s *Store) Clean(ctx context.Context, r Retention) (Cleaned, error) {
	if err := s.trustClock(ctx); err != nil {
		return Cleaned{}, fmt.Errorf("clean: %w", err)
	}
	c := &cleaning{Store: s, pace: newPace()}
	err := c.clean(ctx, r)
	c.done.Longest = c.pace.longest
	return c.done, err
}

// cleaning is one Clean at work.
type cleaning struct {
	*Store
	done Cleaned
	pace pace
}

func (s *cleaning) clean(ctx context.Context, r Retention) (err error) {
	guids := r.Deliveries
	if oldest := s.now().Add(-keepGUIDs); guids.After(oldest) {
		guids = oldest
	}
	for _, step := range []struct {
		count  *int
		query  string
		before time.Time
	}{
		{&s.done.Deliveries, `DELETE FROM deliveries WHERE guid IN (SELECT guid FROM deliveries
			WHERE received_at < ?1 AND retry_at = 0 ORDER BY received_at LIMIT ?2%s)`, guids},
		{&s.done.Payloads, `UPDATE deliveries SET payload = NULL WHERE guid IN (SELECT guid FROM deliveries
			WHERE received_at < ?1 AND retry_at = 0 AND payload IS NOT NULL ORDER BY received_at LIMIT ?2%s)`, r.Deliveries},
	} {
		query := fmt.Sprintf(step.query, s.locking(" FOR UPDATE SKIP LOCKED"))
		if *step.count, err = s.inChunks(ctx, query, micros(step.before)); err != nil {
			return fmt.Errorf("clean the deliveries: %w", err)
		}
	}
	if err := s.forgetThreads(ctx, r.Threads); err != nil {
		return fmt.Errorf("clean the threads: %w", err)
	}
	return nil
}

// inChunks repeats a statement on as many rows as the pace says, each time in a
// transaction of its own, until it finds fewer.
func (s *cleaning) inChunks(ctx context.Context, query string, arg int64) (total int, err error) {
	for {
		var n int64
		rows := int64(s.pace.rows)
		err := s.writeSome(ctx, func(tx *txn) error {
			res, err := tx.ExecContext(ctx, s.q(query), arg, rows)
			if err != nil {
				return err
			}
			n, err = res.RowsAffected()
			return err
		})
		if err != nil {
			return total, err
		}
		total += int(n)
		if n < rows {
			return total, nil
		}
	}
}
