package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// forgetThreads forgets the threads that are over and were not touched since a
// time. A log goes as a whole or not at all: half of one would tell a false story,
// and Pawl could do again what it has done. So a thread first loses its name, in
// one transaction, and is unknown from then on; its events go after that, however
// many they are. What is told of its number later begins a new log.
func (s *cleaning) forgetThreads(ctx context.Context, before time.Time) error {
	for {
		rows := s.pace.rows
		old, err := s.oldThreads(ctx, before, rows)
		if err != nil {
			return err
		}
		for i := range old {
			if old[i].over, err = s.over(ctx, old[i].thread); err != nil {
				return err
			}
		}
		forgotten, err := s.takeNames(ctx, old)
		if err != nil {
			return err
		}
		s.done.Threads += forgotten
		if len(old) < rows {
			return s.dropNameless(ctx)
		}
	}
}

// oldThread is a thread that nothing was done with since updatedAt.
type oldThread struct {
	id, updatedAt int64
	thread        solver.Thread
	over          bool
}

// oldThreads are the next ones, at most so many, that were not looked at since they were touched.
func (s *cleaning) oldThreads(ctx context.Context, before time.Time, most int) ([]oldThread, error) {
	rows, err := s.r.QueryContext(ctx, s.q(`SELECT id, owner, name, number, updated_at FROM threads
		WHERE kept_at <> updated_at AND updated_at < ?1 AND `+untouched+" ORDER BY updated_at, id LIMIT ?2"), micros(before), most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var old []oldThread
	for rows.Next() {
		var o oldThread
		if err := rows.Scan(&o.id, &o.thread.Owner, &o.thread.Name, &o.thread.Number, &o.updatedAt); err != nil {
			return nil, err
		}
		old = append(old, o)
	}
	return old, rows.Err()
}

// untouched holds for a thread with a name that nobody works on or will work on.
const untouched = "owner <> '' AND wake_at = 0 AND queued_at = 0 AND lease_owner = ''"

// over reports whether a thread may be forgotten. A log that cannot be read
// stays for a person to look at.
func (s *cleaning) over(ctx context.Context, t solver.Thread) (bool, error) {
	events, err := s.Events(ctx, t, 0)
	if err != nil {
		return false, err
	}
	state, err := solver.Fold(events)
	if err != nil {
		return false, nil
	}
	_, running := state.Running()
	return !running && !state.Open() && (state.Closed != "" || !state.Tracked()), nil
}

// takeNames takes the names of threads that are over, unless they were touched
// meanwhile, and marks the others as looked at. It counts the names taken.
func (s *cleaning) takeNames(ctx context.Context, old []oldThread) (taken int, err error) {
	if len(old) == 0 {
		return 0, nil
	}
	err = s.writeSome(ctx, func(tx *txn) error {
		taken = 0
		for _, o := range old {
			change := "kept_at = updated_at"
			if o.over {
				change = "owner = '', name = '', number = id, active = 0"
			}
			res, err := tx.ExecContext(ctx, s.q("UPDATE threads SET "+change+" WHERE id = ?1 AND updated_at = ?2 AND "+untouched), o.id, o.updatedAt)
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return err
			}
			if n == 0 || !o.over {
				continue
			}
			taken++
			if _, err := tx.ExecContext(ctx, s.q("DELETE FROM aliases WHERE thread_id = ?1"), o.id); err != nil {
				return err
			}
		}
		return nil
	})
	return taken, err
}

// dropNameless removes the events of threads without a name, as many rows in a
// transaction as the pace says, and then the threads.
func (s *cleaning) dropNameless(ctx context.Context) error {
	for {
		events, more := 0, true
		err := s.writeSome(ctx, func(tx *txn) (err error) {
			events, more, err = s.dropSome(ctx, tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("drop events: %w", err)
		}
		s.done.Events += events
		if !more {
			return nil
		}
	}
}

func (s *cleaning) dropSome(ctx context.Context, tx *txn) (events int, more bool, err error) {
	for left := int64(s.pace.rows); left > 0; {
		var id int64
		err := tx.QueryRowContext(ctx, "SELECT id FROM threads WHERE owner = '' ORDER BY number LIMIT 1"+s.locking(" FOR UPDATE SKIP LOCKED")).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return events, false, nil
		}
		if err != nil {
			return events, false, err
		}
		res, err := tx.ExecContext(ctx, s.q(`DELETE FROM events WHERE thread_id = ?1
			AND seq < (SELECT min(seq) FROM events WHERE thread_id = ?1) + ?2`), id, left)
		if err != nil {
			return events, false, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return events, false, err
		}
		events += int(n)
		if n == left {
			break
		}
		if _, err := tx.ExecContext(ctx, s.q("DELETE FROM threads WHERE id = ?1"), id); err != nil {
			return events, false, err
		}
		left -= n + 1
	}
	return events, true, nil
}
