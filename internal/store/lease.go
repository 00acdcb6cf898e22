package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Claim leases up to `most` due threads: first those woken by a user's command, then other wake-ups, longest waiting
// first, then expired timers. It skips rows that another node is claiming. A thread woken during its lease becomes
// due at Release.
func (s *threads) Claim(ctx context.Context, owner string, most int) (leases []thread.Lease, err error) {
	defer s.wrap(&err, "claim threads")
	served, args := s.served(micros(s.Now()))
	anyDue := "SELECT EXISTS (SELECT 1 FROM threads WHERE " + woken + served + ")" +
		" OR EXISTS (SELECT 1 FROM threads WHERE " + waited + served + ")"
	err = s.writeWhere(ctx, anyDue, args, func(tx *txn) error {
		served, args := s.served()
		rows, err := s.dueRows(ctx, tx, most, woken+served+inTurn, args...)
		if err == nil && len(rows) < most {
			var more []row
			served, args := s.served(micros(tx.now))
			more, err = s.dueRows(ctx, tx, most-len(rows), waited+served+" ORDER BY wake_at", args...)
			rows = append(rows, more...)
		}
		if err != nil {
			return err
		}
		leases, err = s.take(ctx, tx, owner, rows...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

// Kinds of due threads, each with an index. A thread is of at most one kind.
const (
	woken  = "queued_at > 0 AND lease_until = 0"
	inTurn = " ORDER BY urgent DESC, queued_at"
	waited = "wake_at > 0 AND wake_at <= $1 AND queued_at = 0 AND lease_until = 0"
)

// served restricts a query with arguments to the threads that this node may take. It is empty if the node may take all.
// Times are arguments: PostgreSQL's driver prepares each new text.
func (s *database) served(args ...any) (clause string, all []any) {
	if s.self == nil {
		return "", args
	}
	places := []string{"''"}
	for _, p := range s.self.Places() {
		places = append(places, "'"+strings.ReplaceAll(p, "'", "''")+"'")
	}
	args = append(args, micros(s.Now().Add(-lookAnyway)))
	late := fmt.Sprintf("wake_at BETWEEN 1 AND $%d", len(args))
	if s.self.Agents {
		args = append(args, micros(s.Now().Add(-s.prefer)))
		late += fmt.Sprintf(" OR place LIKE '%s%%' AND wake_at BETWEEN 1 AND $%d", policy.InFolder(""), len(args))
	}
	return fmt.Sprintf(" AND (place IN (%s) OR %s)", strings.Join(places, ", "), late), args
}

// lookAnyway is how long a thread waits for a node that serves its place. Then any node looks again: the repository may
// ask for other labels now, or the node may be gone. Our choice.
const lookAnyway = 2 * time.Minute

// dueRows locks due rows and skips locked ones.
func (s *threads) dueRows(ctx context.Context, tx *txn, most int, which string, args ...any) ([]row, error) {
	query := fmt.Sprintf("SELECT %s FROM threads WHERE %s LIMIT %d", rowColumns, which, most) +
		s.locking(" FOR UPDATE SKIP LOCKED")
	rows, err := tx.QueryContext(ctx, query, args...)
	return list(rows, err, scanRow)
}

// Acquire leases a thread, due or not, or returns a *thread.LeaseHeldError.
func (s *threads) Acquire(ctx context.Context, t thread.ID, owner string) (lease thread.Lease, err error) {
	defer s.wrap(&err, "acquire %s", t)
	if owner == "" {
		return thread.Lease{}, errors.New("the owner has no name")
	}
	err = s.write(ctx, func(tx *txn) error {
		r, err := s.lockThread(ctx, tx, t)
		if err != nil {
			return err
		}
		if r.leaseOwner != "" && r.leaseUntil.After(tx.now) {
			return &thread.LeaseHeldError{Owner: r.leaseOwner, Until: r.leaseUntil}
		}
		leases, err := s.take(ctx, tx, owner, r)
		if err == nil {
			lease = leases[0]
		}
		return err
	})
	return lease, err
}

// takenAtOnce is the number of rows per statement. It is fixed, so that the statement's text is prepared only once.
const takenAtOnce = 8

// take leases locked rows to owner. If a row waited for a retry, take first restores the wake-up time from before the
// retry. A wake-up time that has passed is cleared.
func (s *threads) take(ctx context.Context, tx *txn, owner string, rows ...row) (leases []thread.Lease, err error) {
	until := tx.now.Add(thread.LeaseTime)
	for _, r := range rows {
		leases = append(leases, thread.Lease{
			Thread: r.thread,
			Owner:  owner,
			Epoch:  r.epoch + 1,
			Until:  until,
			From:   r.leaseOwner,

			Failures: r.failures,
			Place:    r.place,
		})
	}
	for some := range slices.Chunk(rows, takenAtOnce) {
		args := []any{owner, micros(until), micros(tx.now)}
		for i := range takenAtOnce {
			args = append(args, some[min(i, len(some)-1)].id)
		}
		if err := tx.exec(ctx, takeRows, args...); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

const takeRows = `UPDATE threads SET
		lease_owner = $1,
		lease_epoch = lease_epoch + 1,
		lease_until = $2,
		wake_at = CASE
			WHEN later_at > $3 THEN later_at
			WHEN later_at = 0 AND wake_at > $3 THEN wake_at
			ELSE 0 END,
		later_at = 0,
		queued_at = 0,
		urgent = 0,
		account = '',
		place = ''
	WHERE id IN ($4, $5, $6, $7, $8, $9, $10, $11)`

// Renew extends the lease, even an expired one, or returns thread.ErrLeaseLost.
func (s *threads) Renew(ctx context.Context, l thread.Lease) (thread.Lease, error) {
	err := s.leased(ctx, "renew", l, func(tx *txn, r row) error {
		l.Until = tx.now.Add(thread.LeaseTime)
		return tx.exec(ctx, "UPDATE threads SET lease_until = $2 WHERE id = $1", r.id, micros(l.Until))
	})
	return l, err
}

// nothingLater in later_at means that no wake-up was set before the retry.
const nothingLater = 1

// Release releases the lease and the account; a lost lease is no error. A thread woken during the lease is due now.
// Without a retry Release clears failures and the note. With a retry it wakes the thread at the retry's time, unless an
// earlier wake-up is set. take restores a later wake-up.
func (s *threads) Release(ctx context.Context, l thread.Lease, retry thread.Retry) error {
	err := s.leased(ctx, "release", l, func(tx *txn, r row) error {
		failures, laterAt, note := 0, int64(0), ", note = NULL"
		if retry != nil {
			failures, note = r.failures+1, ""
			if at := tx.now.Add(retry(failures)); r.wakeAt.IsZero() || at.Before(r.wakeAt) {
				laterAt, r.wakeAt = max(micros(r.wakeAt), nothingLater), at
			}
		}
		tx.due = !r.queuedAt.IsZero() || !r.wakeAt.IsZero() && !r.wakeAt.After(tx.now)
		return tx.exec(ctx, `UPDATE threads SET lease_owner = '', lease_until = 0, account = '',
			failures = $2, later_at = $3, wake_at = $4`+note+" WHERE id = $1", r.id, failures, laterAt, micros(r.wakeAt))
	})
	if errors.Is(err, thread.ErrLeaseLost) {
		return nil
	}
	return err
}

// AppendLeased writes a batch under the lease, or returns thread.ErrLeaseLost. A zero wake-up time keeps the earlier
// one.
func (s *threads) AppendLeased(ctx context.Context, l thread.Lease, b thread.Batch) error {
	encoded, err := encode(b.Events)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.Thread, err)
	}
	return s.leased(ctx, "append to", l, func(tx *txn, r row) error {
		if _, err := s.insertEvents(ctx, tx, &r, encoded); err != nil {
			return err
		}
		if !b.WakeAt.IsZero() && micros(b.WakeAt) != micros(r.wakeAt) {
			err := tx.exec(ctx, "UPDATE threads SET wake_at = $2, updated_at = $3, active = 1 WHERE id = $1",
				r.id, micros(b.WakeAt), micros(tx.now))
			if err != nil {
				return err
			}
		}
		if err := s.putPlace(ctx, tx, r, b.Place); err != nil {
			return err
		}
		if err := s.updateBreaker(ctx, tx, b); err != nil {
			return err
		}
		if b.Spent != nil {
			if err := s.spend(ctx, tx, r, *b.Spent); err != nil {
				return err
			}
		}
		if err := s.setCooldown(ctx, tx, l.Thread, b.Cooldown); err != nil {
			return err
		}
		return s.setAlias(ctx, tx, r, b.Alias)
	})
}

// putPlace stores a batch's place. If an event arrived during the lease, any node may take the next step.
func (s *threads) putPlace(ctx context.Context, tx *txn, r row, place string) error {
	if place == "" {
		return nil
	}
	if place == thread.AnyNode || !r.queuedAt.IsZero() {
		place = ""
	}
	return tx.exec(ctx, "UPDATE threads SET place = $2 WHERE id = $1", r.id, place)
}

// leased runs fn in a transaction that locks the thread's row, if the lease is still ours. Errors name the operation.
func (s *database) leased(ctx context.Context, what string, l thread.Lease, fn func(*txn, row) error) (err error) {
	defer s.wrap(&err, "%s %s", what, l.Thread)
	return s.write(ctx, func(tx *txn) error {
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		return fn(tx, r)
	})
}

// checkLease locks and returns the thread's row if the lease is ours. An expired lease is ours until another step
// takes it.
func (s *database) checkLease(ctx context.Context, tx *txn, l thread.Lease) (row, error) {
	r, err := s.findThread(ctx, tx, l.Thread)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, thread.ErrLeaseLost
	}
	if err != nil {
		return row{}, err
	}
	if r.leaseOwner != l.Owner || r.epoch != l.Epoch {
		return row{}, thread.ErrLeaseLost
	}
	return r, nil
}

func (s *threads) setAlias(ctx context.Context, tx *txn, r row, number int) error {
	if number == 0 || number == r.thread.Number {
		return nil
	}
	if err := tx.exec(ctx, `INSERT INTO aliases (owner, name, number, thread_id) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, name, number) DO UPDATE SET thread_id = excluded.thread_id`,
		r.thread.Owner, r.thread.Name, number, r.id); err != nil {
		return fmt.Errorf("alias #%d: %w", number, err)
	}
	return nil
}

// mostNoted limits a note in bytes: each change rewrites the row.
const mostNoted = 16 << 10

// Note stores the current attempt's usage for the global ledgers and for a node that takes over. A Release without a
// retry clears the note. Errors include thread.ErrLeaseLost.
func (s *threads) Note(ctx context.Context, l thread.Lease, spent policy.Spent) error {
	note, err := json.Marshal(spent)
	if err == nil && len(note) > mostNoted {
		err = fmt.Errorf("the note has %d bytes; the limit is %d", len(note), mostNoted)
	}
	if err != nil {
		return fmt.Errorf("note on %s: %w", l.Thread, err)
	}
	return s.leased(ctx, "note on", l, func(tx *txn, r row) error {
		if err := s.spend(ctx, tx, r, spent); err != nil {
			return err
		}
		return tx.exec(ctx, "UPDATE threads SET note = $2 WHERE id = $1", r.id, note)
	})
}

// Noted returns the thread's last note, or nil.
func (s *threads) Noted(ctx context.Context, t thread.ID) (note []byte, err error) {
	defer s.wrap(&err, "read the note on %s", t)
	const query = "SELECT note FROM threads WHERE owner = $1 AND name = $2 AND number = $3"
	err = s.r.QueryRowContext(ctx, query, t.Owner, t.Name, t.Number).Scan(&note)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return note, err
}

// sweepRows limits a sweep statement, so that it holds the write lock for milliseconds.
const sweepRows = 500

// Sweep makes threads with expired leases due and returns their number. Run it every few seconds on every node.
func (s *Store) Sweep(ctx context.Context) (freed int, err error) {
	defer s.wrap(&err, "sweep")
	if err := s.stillThere(); err != nil {
		return 0, err
	}
	err = s.write(ctx, func(tx *txn) error {
		query := freeLeases + ` WHERE id IN (SELECT id FROM threads
			WHERE lease_until > 0 AND lease_until <= $1
			LIMIT $2` + s.locking(" FOR UPDATE SKIP LOCKED") + ")"
		freed, err = tx.change(ctx, query, micros(tx.now), sweepRows)
		tx.due = freed > 0
		return err
	})
	return freed, err
}

// freeLeases releases leases and makes their threads due at $1. It keeps the holder's name; a live holder continues
// with Renew.
const freeLeases = `UPDATE threads SET
	lease_until = 0,
	place = '',
	queued_at = CASE WHEN queued_at > 0 THEN queued_at ELSE $1 END`
