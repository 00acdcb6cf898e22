package store

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Retention gives times before which records may be removed; zero keeps all.
type Retention struct {
	// Deliveries applies to handled deliveries by arrival. Their GUIDs stay for at least 30 days.
	Deliveries time.Time
	// Threads applies to logs of closed or never tracked threads by last change.
	Threads time.Time
}

type Cleaned struct {
	Payloads, Deliveries, Threads, Events int
}

// keepGUIDs is the minimum time for which redeliveries have no effect; GitHub redelivers for 3 days. Attempts'
// usage is kept equally long.
const keepGUIDs = 30 * 24 * time.Hour

// Clean removes expired records in small transactions with pauses; run it in a goroutine. Several nodes may clean at
// once. SQLite reuses the space.
func (s *Store) Clean(ctx context.Context, r Retention) (Cleaned, error) {
	c := &cleaning{Store: s}
	err := c.clean(ctx, r)
	return c.done, err
}

type cleaning struct {
	*Store
	done Cleaned
}

func (s *cleaning) clean(ctx context.Context, r Retention) (err error) {
	guids := policy.Earlier(r.Deliveries, s.Now().Add(-keepGUIDs))
	var attempts int
	for _, step := range []struct {
		what, query string
		before      time.Time
		count       *int
	}{
		{"the deliveries", `DELETE FROM deliveries WHERE guid IN (SELECT guid FROM deliveries
			WHERE received_at < $1 AND state = 'handled' AND retry_at = 0 ORDER BY received_at LIMIT $2%s)`, guids, &s.done.Deliveries},
		{"the deliveries", `UPDATE deliveries SET payload = NULL WHERE guid IN (SELECT guid FROM deliveries
			WHERE received_at < $1 AND state = 'handled' AND retry_at = 0 AND payload IS NOT NULL ORDER BY received_at LIMIT $2%s)`, r.Deliveries, &s.done.Payloads},
		{"the attempts", `DELETE FROM attempts WHERE (thread_id, n) IN (SELECT thread_id, n FROM attempts
			WHERE at < $1 ORDER BY at LIMIT $2%s)`, s.Now().Add(-keepGUIDs), &attempts},
	} {
		query := fmt.Sprintf(step.query, s.locking(" FOR UPDATE SKIP LOCKED"))
		if *step.count, err = s.inChunks(ctx, query, micros(step.before)); err != nil {
			return fmt.Errorf("clean %s: %w", step.what, err)
		}
	}
	if err := s.forgetThreads(ctx, r.Threads); err != nil {
		return fmt.Errorf("clean the threads: %w", err)
	}
	return nil
}

// inChunks runs a statement on cleanChunk rows per transaction until it finds fewer.
func (s *cleaning) inChunks(ctx context.Context, query string, arg int64) (total int, err error) {
	for {
		n := 0
		err := s.writeSome(ctx, func(tx *txn) (err error) {
			n, err = tx.change(ctx, query, arg, cleanChunk)
			return err
		})
		if err != nil {
			return total, err
		}
		total += n
		if n < cleanChunk {
			return total, nil
		}
	}
}

const (
	// cleanChunk limits a transaction's rows, so that others wait less than 50 ms (BenchmarkClean). Some rows hold
	// megabytes.
	cleanChunk = 50
	// cleanPause is the pause as a multiple of a transaction's time. Cleaning thus takes at most a quarter of the
	// database's time.
	cleanPause = 3
)

// writeSome runs one transaction and then pauses.
func (s *cleaning) writeSome(ctx context.Context, fn func(*txn) error) error {
	asked := time.Now()
	if err := s.write(ctx, fn); err != nil {
		return err
	}
	return wait.For(ctx, cleanPause*time.Since(asked))
}

// forgetThreads removes old finished threads. A thread first loses its name in one transaction, then its events: half
// a log would make Pawl repeat work. Later events start a new log.
func (s *cleaning) forgetThreads(ctx context.Context, before time.Time) error {
	for {
		old, err := s.oldThreads(ctx, before)
		if err != nil {
			return err
		}
		for i := range old {
			if old[i].finished, err = s.finished(ctx, old[i].thread); err != nil {
				return err
			}
		}
		forgotten, err := s.takeNames(ctx, old)
		if err != nil {
			return err
		}
		s.done.Threads += forgotten
		if len(old) < cleanChunk {
			return s.dropNameless(ctx)
		}
	}
}

type oldThread struct {
	id, updatedAt int64
	thread        thread.ID
	finished      bool
}

// oldThreads returns the next threads not checked since their last change.
func (s *cleaning) oldThreads(ctx context.Context, before time.Time) (_ []oldThread, err error) {
	defer s.wrap(&err, "look up old threads")
	rows, err := s.r.QueryContext(ctx, `SELECT id, owner, name, number, updated_at FROM threads
		WHERE kept_at <> updated_at AND updated_at < $1 AND `+untouched+`
		ORDER BY updated_at, id
		LIMIT $2`,
		micros(before), cleanChunk)
	return list(rows, err, func(scan func(...any) error) (o oldThread, err error) {
		err = scan(&o.id, &o.thread.Owner, &o.thread.Name, &o.thread.Number, &o.updatedAt)
		return o, err
	})
}

// untouched selects named threads without present or future work. Number 0, the log of a repository or the server,
// stays: it records whether the repository is paused.
const untouched = "owner <> '' AND number > 0 AND wake_at = 0 AND queued_at = 0 AND lease_owner = ''"

// finished reports whether a thread may be forgotten. Unreadable logs stay for an operator.
func (s *cleaning) finished(ctx context.Context, t thread.ID) (bool, error) {
	events, err := s.Events(ctx, t, 0)
	if err != nil {
		return false, err
	}
	state, err := thread.Fold(events)
	if err != nil {
		return false, nil
	}
	if _, running := state.Running(); running || state.Open() {
		return false, nil
	}
	return state.Closed != "" || !state.Worked(), nil
}

// takeNames removes names of finished threads unless they changed, and marks the others as checked.
func (s *cleaning) takeNames(ctx context.Context, old []oldThread) (taken int, err error) {
	if len(old) == 0 {
		return 0, nil
	}
	err = s.writeSome(ctx, func(tx *txn) error {
		taken = 0
		for _, o := range old {
			change := "kept_at = updated_at"
			if o.finished {
				change = "owner = '', name = '', number = id, active = 0"
			}
			query := "UPDATE threads SET " + change + " WHERE id = $1 AND updated_at = $2 AND " + untouched
			n, err := tx.change(ctx, query, o.id, o.updatedAt)
			if err != nil {
				return err
			}
			if n == 0 || !o.finished {
				continue
			}
			taken++
			if err := tx.exec(ctx, "DELETE FROM aliases WHERE thread_id = $1", o.id); err != nil {
				return err
			}
		}
		return nil
	})
	return taken, err
}

// dropNameless removes nameless threads without events, then other nameless threads' events, cleanChunk rows per
// transaction.
func (s *cleaning) dropNameless(ctx context.Context) error {
	nameless := "(SELECT id FROM threads WHERE owner = '' ORDER BY name, number LIMIT $1" +
		s.locking(" FOR UPDATE SKIP LOCKED") + ")"
	dropThreads := `DELETE FROM threads
		WHERE id IN ` + nameless + `
		AND NOT EXISTS (SELECT 1 FROM events WHERE thread_id = threads.id)`
	dropEvents := `DELETE FROM events WHERE (thread_id, seq) IN (
		SELECT thread_id, seq FROM events WHERE thread_id IN ` + nameless + `
		LIMIT $2)`
	for {
		threads, events := 0, 0
		err := s.writeSome(ctx, func(tx *txn) (err error) {
			if threads, err = tx.change(ctx, dropThreads, cleanChunk); err != nil {
				return err
			}
			events, err = tx.change(ctx, dropEvents, cleanChunk, cleanChunk-threads)
			return err
		})
		if err != nil {
			return fmt.Errorf("drop events: %w", err)
		}
		s.done.Events += events
		if threads+events == 0 {
			return nil
		}
	}
}
