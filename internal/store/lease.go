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

// Acquire takes the thread's lease for one step, or returns a *solver.HeldError
// for as long as anybody else's lasts, also one of the same owner. It clears the
// pending wake-up and a wake-up time that has come; one still to come stays. Where
// the time was that of a retry, the step is the retry, and the time before it is back.
func (s *Store) Acquire(ctx context.Context, t solver.Thread, owner string, now time.Time) (solver.Lease, error) {
	if owner == "" {
		return solver.Lease{}, fmt.Errorf("acquire %s: the owner has no name", t)
	}
	var lease solver.Lease
	err := s.write(ctx, func(tx *txn) error {
		r, err := s.lockThread(ctx, tx, t, now)
		if err != nil {
			return err
		}
		leaseNow := now.Add(r.ahead)
		if r.leaseOwner != "" && r.leaseUntil.After(leaseNow) {
			return &solver.HeldError{Owner: r.leaseOwner, Until: r.leaseUntil}
		}
		if !r.laterAt.IsZero() {
			r.wakeAt = r.laterAt
		}
		if !r.wakeAt.IsZero() && !r.wakeAt.After(now) {
			r.wakeAt = time.Time{}
		}
		lease = solver.Lease{Thread: t, Owner: owner, Epoch: r.epoch + 1, Until: leaseNow.Add(solver.LeaseTime), From: r.leaseOwner}
		_, err = tx.ExecContext(ctx, s.q(`UPDATE threads SET lease_owner = ?2, lease_epoch = ?3, lease_until = ?4, wake_at = ?5,
			later_at = 0, queued_at = 0, requeue_at = 0, account = '' WHERE id = ?1`), r.id, owner, lease.Epoch, micros(lease.Until), micros(r.wakeAt))
		return err
	})
	if err != nil {
		return solver.Lease{}, fmt.Errorf("acquire %s: %w", t, err)
	}
	return lease, nil
}

// Renew extends the lease from now on, also one that ran out, as long as nobody
// took it; otherwise it returns solver.ErrLeaseLost.
func (s *Store) Renew(ctx context.Context, l solver.Lease, now time.Time) (solver.Lease, error) {
	err := s.write(ctx, func(tx *txn) error {
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		l.Until = now.Add(r.ahead + solver.LeaseTime)
		_, err = tx.ExecContext(ctx, s.q("UPDATE threads SET lease_until = ?2 WHERE id = ?1"), r.id, micros(l.Until))
		return err
	})
	if err != nil {
		return solver.Lease{}, fmt.Errorf("renew %s: %w", l.Thread, err)
	}
	return l, nil
}

// Release gives the lease back, and with it the account that the thread entered,
// and forgets earlier failures and the note. What arrived while the step ran is
// enqueued now, so no step needs to wait for the lease.
func (s *Store) Release(ctx context.Context, l solver.Lease) error {
	err := s.write(ctx, func(tx *txn) error {
		r, err := s.checkLease(ctx, tx, l)
		if errors.Is(err, solver.ErrLeaseLost) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, s.q(`UPDATE threads SET lease_owner = '', lease_until = 0, account = '',
			failures = 0, note = NULL WHERE id = ?1`), r.id); err != nil {
			return err
		}
		now := s.now()
		due := !r.wakeAt.IsZero() && !r.wakeAt.After(now)
		if r.queuedAt.IsZero() && !due {
			return nil
		}
		now = s.dueNow()
		return s.enqueue(ctx, tx, r, now, now, requeueAfter)
	})
	if err != nil {
		return fmt.Errorf("release %s: %w", l.Thread, err)
	}
	return nil
}

// AppendLeased writes a batch under the lease, or returns solver.ErrLeaseLost.
// A wake-up time of zero leaves an earlier one as it is.
func (s *Store) AppendLeased(ctx context.Context, l solver.Lease, b solver.Batch) error {
	encoded, err := encode(b.Events)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.Thread, err)
	}
	err = s.write(ctx, func(tx *txn) error {
		now := s.now()
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		if _, err := s.insertEvents(ctx, tx, &r, encoded, now); err != nil {
			return err
		}
		if err := s.setWake(ctx, tx, r, b.WakeAt, now); err != nil {
			return err
		}
		if err := s.updateBreaker(ctx, tx, b); err != nil {
			return err
		}
		if err := s.setCooldown(ctx, tx, l.Thread, b.Cooldown); err != nil {
			return err
		}
		return s.setAlias(ctx, tx, r, b.Alias)
	})
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.Thread, err)
	}
	return nil
}

// checkLease locks the thread's row and returns it if the lease is still ours.
// A lease that ran out is, until somebody takes it.
func (s *Store) checkLease(ctx context.Context, tx *txn, l solver.Lease) (row, error) {
	r, err := s.findThread(ctx, tx, l.Thread)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, solver.ErrLeaseLost
	}
	if err != nil {
		return row{}, err
	}
	if r.leaseOwner != l.Owner || r.epoch != l.Epoch {
		return row{}, solver.ErrLeaseLost
	}
	return r, nil
}

// setWake stores when the thread goes on and enqueues a step for that time. The
// same time again needs no second job.
func (s *Store) setWake(ctx context.Context, tx *txn, r row, at, now time.Time) error {
	if at.IsZero() || micros(at) == micros(r.wakeAt) {
		return nil
	}
	if _, err := tx.ExecContext(ctx, s.q("UPDATE threads SET wake_at = ?2, updated_at = ?3, active = 1 WHERE id = ?1"),
		r.id, micros(at), micros(now)); err != nil {
		return err
	}
	if s.queue == nil || !at.After(now) {
		return nil // one that is due already is enqueued by Release
	}
	if err := s.queue.Step(ctx, tx.Tx, r.thread, at); err != nil {
		return fmt.Errorf("schedule a step of %s: %w", r.thread, err)
	}
	return nil
}

// updateBreaker reads, changes and writes an account's breaker. The row is
// there before it is locked, so that two nodes cannot both start from nothing.
func (s *Store) updateBreaker(ctx context.Context, tx *txn, b solver.Batch) error {
	if b.Breaker == nil {
		return nil
	}
	if _, err := tx.ExecContext(ctx, s.q("INSERT INTO breakers (account, state) VALUES (?1, '{}') ON CONFLICT (account) DO NOTHING"), b.Account); err != nil {
		return fmt.Errorf("breaker of %s: %w", b.Account, err)
	}
	var state []byte
	if err := tx.QueryRowContext(ctx, s.q("SELECT state FROM breakers WHERE account = ?1"+s.locking(" FOR UPDATE")), b.Account).Scan(&state); err != nil {
		return fmt.Errorf("breaker of %s: %w", b.Account, err)
	}
	var breaker solver.Breaker
	if err := json.Unmarshal(state, &breaker); err != nil {
		return fmt.Errorf("breaker of %s: %w", b.Account, err)
	}
	state, err := json.Marshal(b.Breaker(breaker))
	if err != nil {
		return fmt.Errorf("breaker of %s: %w", b.Account, err)
	}
	crash.Point("breaker_write")
	if _, err := tx.ExecContext(ctx, s.q("UPDATE breakers SET state = ?2 WHERE account = ?1"), b.Account, string(state)); err != nil {
		return fmt.Errorf("breaker of %s: %w", b.Account, err)
	}
	crash.Point("breaker_written")
	return nil
}

func (s *Store) setCooldown(ctx context.Context, tx *txn, t solver.Thread, c *solver.Cooldown) error {
	if c == nil {
		return nil
	}
	if _, err := tx.ExecContext(ctx, s.q(`INSERT INTO cooldowns (backend, repo, class, until, thread) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT (repo, backend) DO UPDATE SET class = excluded.class, until = excluded.until, thread = excluded.thread`),
		c.Backend, t.Repo(), c.Class, micros(c.Until), c.Thread); err != nil {
		return fmt.Errorf("cooldown of %s: %w", c.Backend, err)
	}
	return nil
}

func (s *Store) setAlias(ctx context.Context, tx *txn, r row, number int) error {
	if number == 0 || number == r.thread.Number {
		return nil
	}
	if _, err := tx.ExecContext(ctx, s.q(`INSERT INTO aliases (owner, name, number, thread_id) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (owner, name, number) DO UPDATE SET thread_id = excluded.thread_id`),
		r.thread.Owner, r.thread.Name, number, r.id); err != nil {
		return fmt.Errorf("alias #%d: %w", number, err)
	}
	return nil
}
