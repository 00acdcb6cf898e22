package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/solver"
)

// txn is a transaction that remembers what follows from it: whether steps were
// enqueued, and the deliveries that this process is to handle.
type txn struct {
	*sql.Tx
	steps      bool
	deliveries []solver.Delivery
}

// write runs fn in one transaction. With SQLite it holds the write lock from
// the start, so what fn reads cannot change before it writes.
func (s *Store) write(ctx context.Context, fn func(*txn) error) error {
	done, err := s.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.writeNow(ctx, fn)
}

// takeTurn waits for the turn among the writes, which only SQLite needs.
func (s *Store) takeTurn(ctx context.Context) (done func(), err error) {
	if s.postgres {
		return func() {}, nil
	}
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("begin: %w", ctx.Err())
	}
}

// writeNow is write without waiting for a turn among the other writes.
func (s *Store) writeNow(ctx context.Context, fn func(*txn) error) error {
	return s.in(ctx, s.w, fn)
}

// in runs fn in a transaction of a pool or of one of its connections.
func (s *Store) in(ctx context.Context, db interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}, fn func(*txn) error) error {
	if err := s.broken.get(); err != nil {
		return err
	}
	sqlTx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return s.broken.see(fmt.Errorf("begin: %w", err))
	}
	tx := &txn{Tx: sqlTx}
	if err := fn(tx); err != nil {
		return s.broken.see(errors.Join(err, rollback(sqlTx)))
	}
	crash.Point("commit")
	if err := tx.Commit(); err != nil {
		return s.broken.see(fmt.Errorf("commit: %w", err))
	}
	crash.Point("committed_rows")
	if s.queue != nil && (tx.steps || len(tx.deliveries) > 0) {
		s.queue.Committed(tx.steps, tx.deliveries)
	}
	return nil
}

// serialize lets transactions of the same name follow each other. SQLite needs
// nothing: its transaction holds the only write lock.
func (s *Store) serialize(ctx context.Context, tx *txn, name string) error {
	if !s.postgres {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)
	return err
}

// rollback hides that a cancelled context has already rolled back.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// locking is the clause that locks the rows of a SELECT. SQLite needs none: its
// transaction holds the only write lock.
func (s *Store) locking(clause string) string {
	if s.postgres {
		return clause
	}
	return ""
}
