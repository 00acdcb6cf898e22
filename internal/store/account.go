package store

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// EnterAccount asks to run an attempt on a backend's account. It is refused
// (false) while at least most other threads run one there, on any node; with
// most of 0 or less it is never refused, nor is an account without a name, which
// nobody shares. What a thread entered ends with
// LeaveAccount, Release, its next EnterAccount, or when its lease runs out: who
// enters with a bound after that also takes the lease that ran out, so that its holder
// cannot come back to it. The error is solver.ErrLeaseLost for a thread that was
// itself taken over.
func (s *Store) EnterAccount(ctx context.Context, l solver.Lease, account string, most int, now time.Time) (bool, error) {
	if account == "" {
		return true, nil
	}
	entered := false
	err := s.write(ctx, func(tx *txn) error {
		// The account is locked before any thread, here and nowhere else, so that
		// two nodes cannot wait for each other.
		if err := s.serialize(ctx, tx, "account "+account); err != nil {
			return err
		}
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		now := now.Add(r.ahead)
		if most > 0 {
			others, err := s.othersIn(ctx, tx, account, r.id, now)
			if err != nil || others >= most {
				return err
			}
		}
		entered = true
		// A lease that ran out and that nobody took goes on, as with Renew.
		until := max(micros(r.leaseUntil), micros(now.Add(solver.LeaseTime)))
		_, err = tx.ExecContext(ctx, s.q("UPDATE threads SET account = ?2, lease_until = ?3 WHERE id = ?1"), r.id, account, until)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("enter account %s for %s: %w", account, l.Thread, err)
	}
	return entered, nil
}

// othersIn counts the other threads in an account, and takes the leases of those
// that ran out.
func (s *Store) othersIn(ctx context.Context, tx *txn, account string, id int64, now time.Time) (others int, err error) {
	if _, err := tx.ExecContext(ctx, s.q(`UPDATE threads SET account = '', lease_epoch = lease_epoch + 1
		WHERE account = ?1 AND account <> '' AND lease_until <= ?2 AND id <> ?3`), account, micros(now), id); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, s.q("SELECT count(*) FROM threads WHERE account = ?1 AND account <> '' AND id <> ?2"), account, id).Scan(&others)
	return others, err
}

// LeaveAccount ends what EnterAccount began; leaving an account that the thread
// is not in does nothing. The error is solver.ErrLeaseLost for a thread that was
// taken over.
func (s *Store) LeaveAccount(ctx context.Context, l solver.Lease, account string) error {
	err := s.write(ctx, func(tx *txn) error {
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.q("UPDATE threads SET account = '' WHERE id = ?1 AND account = ?2"), r.id, account)
		return err
	})
	if err != nil {
		return fmt.Errorf("leave account %s for %s: %w", account, l.Thread, err)
	}
	return nil
}
