package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/solver"
)

// Resolve returns the thread that a number belongs to.
func (s *Store) Resolve(ctx context.Context, t solver.Thread) (solver.Thread, error) {
	owner := t
	err := s.prepared.resolve.QueryRowContext(ctx, t.Owner, t.Name, t.Number).Scan(&owner.Owner, &owner.Name, &owner.Number)
	if errors.Is(err, sql.ErrNoRows) {
		return t, nil
	}
	if err != nil {
		return solver.Thread{}, fmt.Errorf("resolve %s: %w", t, err)
	}
	return owner, nil
}

// Events returns the thread's log after a sequence number, oldest first.
func (s *Store) Events(ctx context.Context, t solver.Thread, after int64) ([]solver.Event, error) {
	rows, err := s.prepared.events.QueryContext(ctx, t.Owner, t.Name, t.Number, after)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", t, err)
	}
	defer rows.Close()
	var events []solver.Event
	for rows.Next() {
		var e solver.Event
		var at int64
		var data []byte
		if err := rows.Scan(&e.Seq, &e.Kind, &at, &data); err != nil {
			return nil, fmt.Errorf("read the log of %s: %w", t, err)
		}
		e.At, e.Data = fromMicros(at), data
		events = append(events, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", t, err)
	}
	return events, nil
}

// Append appends without a lease. With wake a step follows, unless every one of
// the events was known already: then whoever appended them woke the thread.
func (s *Store) Append(ctx context.Context, t solver.Thread, wake bool, events ...solver.NewEvent) (int, error) {
	encoded, err := encode(events)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", t, err)
	}
	fresh := 0
	err = s.write(ctx, func(tx *txn) error {
		now := s.now()
		row, err := s.lockThread(ctx, tx, t, now)
		if err != nil {
			return err
		}
		if fresh, err = s.insertEvents(ctx, tx, &row, encoded, now); err != nil {
			return err
		}
		if wake && (fresh > 0 || len(events) == 0) {
			return s.wake(ctx, tx, row)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", t, err)
	}
	return fresh, nil
}

// row is the part of a thread's row that decisions in a transaction need.
type row struct {
	id                           int64
	thread                       solver.Thread
	seq                          int64
	leaseOwner                   string
	epoch                        int64
	leaseUntil, wakeAt, queuedAt time.Time
	failures                     int           // steps in a row that did not come to their end
	laterAt                      time.Time     // what wakeAt was before a retry; zero where it is none
	ahead                        time.Duration // of the clock that judges leases, see clock
}

const rowColumns = "id, owner, name, number, last_seq, lease_owner, lease_epoch, lease_until, wake_at, queued_at, failures, later_at"

func scanRow(scan func(...any) error) (r row, err error) {
	var until, wakeAt, queuedAt, laterAt int64
	err = scan(&r.id, &r.thread.Owner, &r.thread.Name, &r.thread.Number, &r.seq, &r.leaseOwner, &r.epoch, &until, &wakeAt, &queuedAt, &r.failures, &laterAt)
	r.leaseUntil, r.wakeAt, r.queuedAt, r.laterAt = fromMicros(until), fromMicros(wakeAt), fromMicros(queuedAt), fromMicros(laterAt)
	return r, err
}

// lockThread returns the thread's row, new if need be, and keeps others from
// writing it until the transaction ends.
func (s *Store) lockThread(ctx context.Context, tx *txn, t solver.Thread, now time.Time) (row, error) {
	r, err := s.findThread(ctx, tx, t)
	if !errors.Is(err, sql.ErrNoRows) {
		return r, err
	}
	if _, err := tx.ExecContext(ctx, s.q(`INSERT INTO threads (owner, name, number, updated_at) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (owner, name, number) DO NOTHING`), t.Owner, t.Name, t.Number, micros(now)); err != nil {
		return row{}, err
	}
	return s.findThread(ctx, tx, t)
}

// findThread locks the thread's row or returns sql.ErrNoRows.
func (s *Store) findThread(ctx context.Context, tx *txn, t solver.Thread) (r row, err error) {
	ahead, err := s.compareClocks(func(reference *int64) error {
		r, err = scanRow(func(columns ...any) error {
			return tx.QueryRowContext(ctx, s.q("SELECT "+rowColumns+", "+s.referenceColumn()+
				" FROM threads WHERE owner = ?1 AND name = ?2 AND number = ?3"+s.locking(" FOR UPDATE")), t.Owner, t.Name, t.Number).
				Scan(append(columns, reference)...)
		})
		return err
	})
	r.ahead = ahead
	return r, err
}

// encodedEvent is an event as a row.
type encodedEvent struct {
	key  sql.NullString
	kind solver.Kind
	at   int64
	data string
}

// encode makes rows of events before a transaction begins, so that an event
// that cannot be written as JSON holds no lock.
func encode(events []solver.NewEvent) ([]encodedEvent, error) {
	rows := make([]encodedEvent, len(events))
	for i, e := range events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", e.Kind, err)
		}
		rows[i] = encodedEvent{sql.NullString{String: e.Key, Valid: e.Key != ""}, e.Kind, micros(e.At), string(data)}
	}
	return rows, nil
}

// insertEvents appends the events whose keys are new and counts them.
func (s *Store) insertEvents(ctx context.Context, tx *txn, r *row, events []encodedEvent, now time.Time) (int, error) {
	fresh, active := 0, 0
	for _, e := range events {
		res, err := tx.ExecContext(ctx, s.q(`INSERT INTO events (thread_id, seq, key, kind, at, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
			ON CONFLICT (thread_id, key) WHERE key IS NOT NULL DO NOTHING`), r.id, r.seq+1, e.key, string(e.kind), e.at, e.data)
		if err != nil {
			return 0, fmt.Errorf("append %s: %w", e.kind, err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, fmt.Errorf("append %s: %w", e.kind, err)
		}
		if n == 0 {
			continue
		}
		r.seq++
		fresh++
		if e.kind == solver.KindAttemptStarted || e.kind == solver.KindDecision {
			active = 1
		}
	}
	if fresh == 0 {
		return 0, nil
	}
	crash.Point("event_appended")
	_, err := tx.ExecContext(ctx, s.q(`UPDATE threads SET last_seq = ?2, updated_at = ?3,
		active = CASE WHEN ?4 = 1 THEN 1 ELSE active END WHERE id = ?1`), r.id, r.seq, micros(now), active)
	return fresh, err
}

// wake marks the thread as needing a step and enqueues one, unless that has
// been done since the last step began.
func (s *Store) wake(ctx context.Context, tx *txn, r row) error {
	if !r.queuedAt.IsZero() {
		return nil
	}
	now := s.dueNow()
	return s.enqueue(ctx, tx, r, now, now, requeueAfter)
}

// enqueue marks the thread as queued since a time, gives the queue a step, and
// tells the sweep when to look whether that step was lost. Both times are by
// dueNow: a node whose clock is ahead must not put the sweep of the others off.
func (s *Store) enqueue(ctx context.Context, tx *txn, r row, since, now time.Time, lookAfter time.Duration) error {
	if _, err := tx.ExecContext(ctx, s.q("UPDATE threads SET queued_at = ?2, requeue_at = ?3 WHERE id = ?1"),
		r.id, micros(since), micros(now.Add(lookAfter))); err != nil {
		return err
	}
	if s.queue == nil {
		return nil
	}
	if err := s.queue.Step(ctx, tx.Tx, r.thread, time.Time{}); err != nil {
		return fmt.Errorf("enqueue a step of %s: %w", r.thread, err)
	}
	tx.steps = true
	return nil
}
