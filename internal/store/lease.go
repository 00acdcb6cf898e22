package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Claim takes the leases of threads that are due, at most so many: first of those that a person's order woke, then
// that something else woke, the longest waiting first, then of those whose time has come. Release makes a thread due
// again that was woken meanwhile. Rows that another node is just claiming are left to it.
func (s *threads) Claim(ctx context.Context, owner string, most int) (leases []thread.Lease, err error) {
	defer s.wrap(&err, "claim threads")
	now := micros(s.now())
	err = s.writeWhere(ctx, "SELECT EXISTS (SELECT 1 FROM threads WHERE "+woken+") OR EXISTS (SELECT 1 FROM threads WHERE "+waited+")", now, func(tx *txn) error {
		rows, err := s.dueRows(ctx, tx, most, woken+inTurn)
		if err == nil && len(rows) < most {
			var more []row
			more, err = s.dueRows(ctx, tx, most-len(rows), waited+" ORDER BY wake_at", now)
			rows = append(rows, more...)
		}
		if err != nil {
			return err
		}
		for _, r := range rows {
			lease, err := s.take(ctx, tx, r, owner, fromMicros(now))
			if err != nil {
				return err
			}
			leases = append(leases, lease)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

// What is due, each by an index of its own, no thread by both. Waits end by each node's clock, as in policy.
const (
	woken  = "queued_at > 0 AND lease_until = 0"
	inTurn = " ORDER BY urgent DESC, queued_at"
	waited = "wake_at > 0 AND wake_at <= $1 AND queued_at = 0 AND lease_until = 0"
)

// dueRows locks rows that are due, and no one that is locked already.
func (s *threads) dueRows(ctx context.Context, tx *txn, most int, which string, args ...any) (found []row, err error) {
	asked := s.clock.read()
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM threads WHERE %s LIMIT %d%s", s.rowColumns(), which, most, s.locking(" FOR UPDATE SKIP LOCKED")), args...)
	found, err = list(rows, err, scanRow)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	ahead := s.compareClocks(asked, found[len(found)-1].reference)
	for i := range found {
		found[i].ahead = ahead
	}
	return found, nil
}

// Acquire takes the lease of one thread, due or not, or returns a *thread.HeldError while another one lasts.
func (s *threads) Acquire(ctx context.Context, t thread.ID, owner string, now time.Time) (lease thread.Lease, err error) {
	defer s.wrap(&err, "acquire %s", t)
	if owner == "" {
		return thread.Lease{}, errors.New("the owner has no name")
	}
	err = s.write(ctx, func(tx *txn) error {
		r, err := s.lockThread(ctx, tx, t, now)
		if err != nil {
			return err
		}
		if r.leaseOwner != "" && r.leaseUntil.After(now.Add(r.ahead)) {
			return &thread.HeldError{Owner: r.leaseOwner, Until: r.leaseUntil}
		}
		lease, err = s.take(ctx, tx, r, owner, now)
		return err
	})
	return lease, err
}

// take gives the lease of a locked row to a step. It clears the wake-up, and a wake-up time that has come.
// Where the time was a retry's, the step is the retry, and the time before it is back.
func (s *threads) take(ctx context.Context, tx *txn, r row, owner string, now time.Time) (thread.Lease, error) {
	if !r.laterAt.IsZero() {
		r.wakeAt = r.laterAt
	}
	if !r.wakeAt.IsZero() && !r.wakeAt.After(now) {
		r.wakeAt = time.Time{}
	}
	lease := thread.Lease{Thread: r.thread, Owner: owner, Epoch: r.epoch + 1, Until: now.Add(r.ahead + thread.LeaseTime), From: r.leaseOwner}
	err := tx.exec(ctx, `UPDATE threads SET lease_owner = $2, lease_epoch = $3, lease_until = $4, wake_at = $5,
		later_at = 0, queued_at = 0, urgent = 0, account = '' WHERE id = $1`, r.id, owner, lease.Epoch, micros(lease.Until), micros(r.wakeAt))
	return lease, err
}

// Renew extends the lease, also one that ran out, or returns thread.ErrLeaseLost when somebody took it.
func (s *threads) Renew(ctx context.Context, l thread.Lease, now time.Time) (thread.Lease, error) {
	err := s.leased(ctx, "renew", l, func(tx *txn, r row) error {
		l.Until = now.Add(r.ahead + thread.LeaseTime)
		return tx.exec(ctx, "UPDATE threads SET lease_until = $2 WHERE id = $1", r.id, micros(l.Until))
	})
	return l, err
}

// nothingLater stands in later_at for a retry before which the thread waited for nothing; it has long come.
const nothingLater = 1

// Release gives the lease back, and with it the account. A thread that was woken meanwhile is due now. Without
// a retry earlier failures and the note are forgotten. With one the same transaction stores when the thread is
// tried again, so that no kill loses that; a wake-up time still to come comes back with the next step.
func (s *threads) Release(ctx context.Context, l thread.Lease, retry thread.Retry) error {
	err := s.leased(ctx, "release", l, func(tx *txn, r row) error {
		failures, laterAt, note := 0, int64(0), ", note = NULL"
		if retry != nil {
			failures, note = r.failures+1, ""
			if at := s.now().Add(retry(failures)); r.wakeAt.IsZero() || at.Before(r.wakeAt) {
				laterAt, r.wakeAt = max(micros(r.wakeAt), nothingLater), at
			}
		}
		tx.due = !r.queuedAt.IsZero() || !r.wakeAt.IsZero() && !r.wakeAt.After(s.now())
		return tx.exec(ctx, `UPDATE threads SET lease_owner = '', lease_until = 0, account = '',
			failures = $2, later_at = $3, wake_at = $4`+note+" WHERE id = $1", r.id, failures, laterAt, micros(r.wakeAt))
	})
	if errors.Is(err, thread.ErrLeaseLost) {
		return nil
	}
	return err
}

// AppendLeased writes a batch under the lease, or returns thread.ErrLeaseLost.
// A wake-up time of zero leaves an earlier one as it is.
func (s *threads) AppendLeased(ctx context.Context, l thread.Lease, b thread.Batch) error {
	encoded, err := encode(b.Events)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.Thread, err)
	}
	return s.leased(ctx, "append to", l, func(tx *txn, r row) error {
		now := s.now()
		if _, err := s.insertEvents(ctx, tx, &r, encoded, now); err != nil {
			return err
		}
		if !b.WakeAt.IsZero() && micros(b.WakeAt) != micros(r.wakeAt) {
			if err := tx.exec(ctx, "UPDATE threads SET wake_at = $2, updated_at = $3, active = 1 WHERE id = $1", r.id, micros(b.WakeAt), micros(now)); err != nil {
				return err
			}
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

// leased runs fn in one transaction, with the locked row of a thread whose lease is
// ours. An error says what was being done.
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

// checkLease locks the thread's row and returns it if the lease is still ours.
// A lease that ran out is, until somebody takes it.
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

// mostNoted bounds a note, in bytes: it is rewritten with every change of the row.
const mostNoted = 16 << 10

// Note keeps what the attempt of a lease's holder has used so far: counted above the thread at once, and for
// whoever takes the thread over. A Release without a retry ends it. The error is thread.ErrLeaseLost for a
// thread that was taken over.
func (s *threads) Note(ctx context.Context, l thread.Lease, spent policy.Spent) error {
	note, err := json.Marshal(spent)
	if err == nil && len(note) > mostNoted {
		err = fmt.Errorf("%d bytes, of at most %d", len(note), mostNoted)
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

// Noted is the thread's last note; nil where there is none.
func (s *threads) Noted(ctx context.Context, t thread.ID) (note []byte, err error) {
	defer s.wrap(&err, "read the note on %s", t)
	err = s.r.QueryRowContext(ctx, "SELECT note FROM threads WHERE owner = $1 AND name = $2 AND number = $3", t.Owner, t.Name, t.Number).Scan(&note)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return note, err
}

// sweepRows is how many rows one statement of a sweep changes, to hold the write lock for milliseconds.
const sweepRows = 500

// Sweep makes threads due whose lease ran out while it was held: their holder died, or is cut off. It returns
// how many, and brings back times that no clock of now could have given. It is meant to run every few seconds
// on every node, and costs nothing for threads that merely wait.
func (s *Store) Sweep(ctx context.Context, now time.Time) (freed int, err error) {
	defer s.wrap(&err, "sweep")
	if err := s.stillThere(); err != nil {
		return 0, err
	}
	err = s.write(ctx, func(tx *txn) error {
		ahead, err := s.askClock(ctx, tx.QueryRowContext)
		if err != nil {
			return err
		}
		leaseNow := now.Add(ahead)
		if s.postgres {
			now = leaseNow // several nodes have to agree on what is late
		}
		if err := s.boundTimes(ctx, tx, now, leaseNow); err != nil {
			return err
		}
		freed, err = tx.change(ctx, freeLeases+" WHERE id IN (SELECT id FROM threads WHERE lease_until > 0 AND lease_until <= $2 LIMIT $3"+
			s.locking(" FOR UPDATE SKIP LOCKED")+")", micros(now), micros(leaseNow), sweepRows)
		tx.due = freed > 0
		return err
	})
	return freed, err
}

// freeLeases gives leases back and makes their threads due now, $1. The holder's name stays, for whoever takes
// over; one that is alive after all goes on with Renew.
const freeLeases = "UPDATE threads SET lease_until = 0, queued_at = CASE WHEN queued_at > 0 THEN queued_at ELSE $1 END"

// longestWait is above everything that a thread may wait for, which is eight days.
const longestWait = 9 * 24 * time.Hour

// boundTimes brings times back that a clock that was ahead has given, and that would keep leases and waits for
// as long. A thread that waits for such a time decides again now.
func (s *Store) boundTimes(ctx context.Context, tx *txn, now, leaseNow time.Time) error {
	for _, late := range []struct {
		table, id, column string
		latest, instead   time.Time
	}{
		{"threads", "id", "lease_until", leaseNow.Add(thread.LeaseTime), leaseNow.Add(thread.LeaseTime)},
		{"threads", "id", "wake_at", now.Add(longestWait), now},
		{"deliveries", "guid", "retry_at", now.Add(lookAtMost), now.Add(lookAtMost)},
	} {
		query := fmt.Sprintf("UPDATE %[1]s SET %[3]s = $3 WHERE %[2]s IN (SELECT %[2]s FROM %[1]s WHERE %[3]s > 0 AND %[3]s > $1 LIMIT $2%[4]s)",
			late.table, late.id, late.column, s.locking(" FOR UPDATE SKIP LOCKED"))
		if err := tx.exec(ctx, query, micros(late.latest), sweepRows, micros(late.instead)); err != nil {
			return err
		}
	}
	return nil
}
