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
}

// keepGUIDs is how long a GUID is remembered at least, so that a redelivery has
// no second effect. GitHub redelivers for 3 days; the rest is margin.
const keepGUIDs = 30 * 24 * time.Hour

// cleanChunk is how many rows one transaction of Clean changes at most, so that
// deliveries which arrive meanwhile wait for milliseconds only: they come
// between two of them.
const cleanChunk = 100

// cleanRest is how many times as long as a transaction of Clean took nothing is
// cleaned after it, so that a quarter of the database's time goes into cleaning
// at most. A hundred thousand rows take ten to twenty seconds that way.
const cleanRest = 3

// writeSome writes in one transaction, and then leaves the database to others.
func (s *Store) writeSome(ctx context.Context, fn func(*txn) error) error {
	started := time.Now()
	if err := s.write(ctx, fn); err != nil {
		return err
	}
	rest := time.NewTimer(cleanRest * time.Since(started))
	defer rest.Stop()
	select {
	case <-rest.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Clean removes what is older than its retention, in transactions of a few rows
// each, with rests between them, so it should have a goroutine of its own.
// Several nodes may clean at a time. The file of SQLite does not shrink; what is
// free in it is used again.
//
// With a clock that cannot be trusted it removes nothing and returns ErrClock;
// whoever removes other old things should then leave them, too.
func (s *Store) Clean(ctx context.Context, r Retention) (c Cleaned, err error) {
	if err := s.trustClock(ctx); err != nil {
		return c, fmt.Errorf("clean: %w", err)
	}
	guids := r.Deliveries
	if oldest := s.now().Add(-keepGUIDs); guids.After(oldest) {
		guids = oldest
	}
	for _, step := range []struct {
		count  *int
		query  string
		before time.Time
	}{
		{&c.Deliveries, `DELETE FROM deliveries WHERE guid IN (SELECT guid FROM deliveries
			WHERE received_at < ?1 AND retry_at = 0 ORDER BY received_at LIMIT ?2%s)`, guids},
		{&c.Payloads, `UPDATE deliveries SET payload = NULL WHERE guid IN (SELECT guid FROM deliveries
			WHERE received_at < ?1 AND retry_at = 0 AND payload IS NOT NULL ORDER BY received_at LIMIT ?2%s)`, r.Deliveries},
	} {
		query := fmt.Sprintf(step.query, s.locking(" FOR UPDATE SKIP LOCKED"))
		if *step.count, err = s.inChunks(ctx, query, micros(step.before)); err != nil {
			return c, fmt.Errorf("clean the deliveries: %w", err)
		}
	}
	if err := s.forgetThreads(ctx, r.Threads, &c); err != nil {
		return c, fmt.Errorf("clean the threads: %w", err)
	}
	return c, nil
}

// inChunks repeats a statement on at most cleanChunk rows, each time in a
// transaction of its own, until it finds fewer.
func (s *Store) inChunks(ctx context.Context, query string, arg int64) (total int, err error) {
	for {
		var n int64
		err := s.writeSome(ctx, func(tx *txn) error {
			res, err := tx.ExecContext(ctx, s.q(query), arg, cleanChunk)
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
		if n < cleanChunk {
			return total, nil
		}
	}
}
