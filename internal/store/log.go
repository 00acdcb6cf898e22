package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/solver/thread"
)

type threads struct {
	*database
	*shared
	// resolve and events run for every webhook.
	resolve, events statement
}

// statement is a frequent query; see dialect.
type statement struct {
	text     string
	prepared *sql.Stmt // nil if not prepared
}

func (s *database) statement(ctx context.Context, text string) (q statement, err error) {
	q.text = text
	if s.dialect.prepares {
		q.prepared, err = s.r.PrepareContext(ctx, text)
	}
	return q, err
}

func (q statement) rows(ctx context.Context, db *sql.DB, args ...any) (*sql.Rows, error) {
	if q.prepared != nil {
		return q.prepared.QueryContext(ctx, args...)
	}
	return db.QueryContext(ctx, q.text, args...)
}

func (s *threads) prepare(ctx context.Context) (err error) {
	defer s.wrap(&err, "prepare")
	if s.resolve, err = s.statement(ctx, `SELECT t.owner, t.name, t.number
		FROM aliases a JOIN threads t ON t.id = a.thread_id
		WHERE a.owner = $1 AND a.name = $2 AND a.number = $3`); err != nil {
		return err
	}
	s.events, err = s.statement(ctx, `SELECT e.seq, e.kind, e.at, e.data
		FROM events e JOIN threads t ON t.id = e.thread_id
		WHERE t.owner = $1 AND t.name = $2 AND t.number = $3 AND e.seq > $4 ORDER BY e.seq`)
	return err
}

func (s *threads) Resolve(ctx context.Context, t thread.ID) (owner thread.ID, err error) {
	defer s.wrap(&err, "resolve %s", t)
	owner = t
	rows, err := s.resolve.rows(ctx, s.r, t.Owner, t.Name, t.Number)
	return owner, each(rows, err, func(scan func(...any) error) error {
		return scan(&owner.Owner, &owner.Name, &owner.Number)
	})
}

// Events returns the thread's log after a sequence number, oldest first.
func (s *threads) Events(ctx context.Context, t thread.ID, after int64) (events []thread.Event, err error) {
	defer s.wrap(&err, "read the log of %s", t)
	rows, err := s.events.rows(ctx, s.r, t.Owner, t.Name, t.Number, after)
	return list(rows, err, func(scan func(...any) error) (e thread.Event, err error) {
		var at int64
		var data []byte
		err = scan(&e.Seq, &e.Kind, &at, &data)
		e.At, e.Data = fromMicros(at), data
		return e, err
	})
}

// Append appends without a lease. If wake is set, a step follows unless every event was known.
func (s *threads) Append(ctx context.Context, t thread.ID, wake bool, events ...thread.NewEvent) (fresh int, err error) {
	defer s.wrap(&err, "append to %s", t)
	encoded, err := encode(events)
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, func(tx *txn) error {
		row, err := s.lockThread(ctx, tx, t)
		if err != nil {
			return err
		}
		if fresh, err = s.insertEvents(ctx, tx, &row, encoded); err != nil {
			return err
		}
		if wake && (fresh > 0 || len(events) == 0) {
			return s.wake(ctx, tx, row, slices.ContainsFunc(events, thread.NewEvent.IsRequest))
		}
		return nil
	})
	return fresh, err
}

type row struct {
	id                           int64
	thread                       thread.ID
	seq                          int64
	leaseOwner                   string
	epoch                        int64
	leaseUntil, wakeAt, queuedAt time.Time
	failures                     int       // consecutive failed steps
	laterAt                      time.Time // wakeAt before a retry, or zero
	place                        string    // what the thread waits for, as in thread.Batch
}

const rowColumns = `id, owner, name, number, last_seq, lease_owner, lease_epoch, lease_until,
	wake_at, queued_at, failures, later_at, place`

func scanRow(scan func(...any) error) (r row, err error) {
	var until, wakeAt, queuedAt, laterAt int64
	err = scan(
		&r.id,
		&r.thread.Owner,
		&r.thread.Name,
		&r.thread.Number,
		&r.seq,
		&r.leaseOwner,
		&r.epoch,
		&until,
		&wakeAt,
		&queuedAt,
		&r.failures,
		&laterAt,
		&r.place,
	)
	r.leaseUntil = fromMicros(until)
	r.wakeAt = fromMicros(wakeAt)
	r.queuedAt = fromMicros(queuedAt)
	r.laterAt = fromMicros(laterAt)
	return r, err
}

// lockThread returns the thread's row, inserted if missing, locked until the transaction ends.
func (s *database) lockThread(ctx context.Context, tx *txn, t thread.ID) (row, error) {
	r, err := s.findThread(ctx, tx, t)
	if !errors.Is(err, sql.ErrNoRows) {
		return r, err
	}
	if err := tx.exec(ctx, `INSERT INTO threads (owner, name, number, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, name, number) DO NOTHING`, t.Owner, t.Name, t.Number, micros(tx.now)); err != nil {
		return row{}, err
	}
	return s.findThread(ctx, tx, t)
}

// findThread locks the thread's row or returns sql.ErrNoRows.
func (s *database) findThread(ctx context.Context, tx *txn, t thread.ID) (row, error) {
	query := "SELECT " + rowColumns + " FROM threads WHERE owner = $1 AND name = $2 AND number = $3" +
		s.locking(" FOR UPDATE")
	return scanRow(tx.QueryRowContext(ctx, query, t.Owner, t.Name, t.Number).Scan)
}

type encodedEvent struct {
	key  sql.NullString
	kind thread.Kind
	at   int64
	data string
}

// encode marshals events before a transaction begins, so that a bad value fails before any lock.
func encode(events []thread.NewEvent) ([]encodedEvent, error) {
	rows := make([]encodedEvent, len(events))
	for i, e := range events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", e.Kind, err)
		}
		rows[i] = encodedEvent{
			key:  sql.NullString{String: e.Key, Valid: e.Key != ""},
			kind: e.Kind,
			at:   micros(e.At),
			data: string(data),
		}
	}
	return rows, nil
}

func (s *threads) insertEvents(ctx context.Context, tx *txn, r *row, events []encodedEvent) (int, error) {
	fresh, active := 0, 0
	for _, e := range events {
		n, err := tx.change(ctx, `INSERT INTO events (thread_id, seq, key, kind, at, data)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (thread_id, key) WHERE key IS NOT NULL DO NOTHING`,
			r.id, r.seq+1, e.key, string(e.kind), e.at, e.data)
		if err != nil {
			return 0, fmt.Errorf("append %s: %w", e.kind, err)
		}
		if n == 0 {
			continue
		}
		r.seq++
		fresh++
		switch e.kind {
		case thread.KindAttemptStarted, thread.KindDecision, thread.KindWatched:
			active = 1
		}
	}
	if fresh == 0 {
		return 0, nil
	}
	crash.Point("event_appended")
	err := tx.exec(ctx, `UPDATE threads SET last_seq = $2, updated_at = $3,
		active = CASE WHEN $4 = 1 THEN 1 ELSE active END WHERE id = $1`, r.id, r.seq, micros(tx.now), active)
	return fresh, err
}

// wake makes the thread due, unless it already is. A thread with a user's command goes first.
func (s *threads) wake(ctx context.Context, tx *txn, r row, command bool) error {
	if !r.queuedAt.IsZero() && !command {
		return tx.exec(ctx, "UPDATE threads SET place = '' WHERE id = $1 AND place <> ''", r.id)
	}
	tx.due = true
	return tx.exec(ctx, `UPDATE threads SET queued_at = CASE WHEN queued_at > 0 THEN queued_at ELSE $2 END,
		urgent = CASE WHEN $3 THEN 1 ELSE urgent END, place = '' WHERE id = $1`, r.id, micros(tx.now), command)
}
