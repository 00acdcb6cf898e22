package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// database is shared by all parts of the store.
type database struct {
	w, r    *sql.DB // SQLite: one writing connection, several reading ones; PostgreSQL: one pool
	engine  engine
	dialect dialect
	options *sql.TxOptions
	schema  int64 // newest version that this program knows
	queue   Queue
	self    *policy.Node // the node that opened the store, or nil
	prefer  time.Duration
	file    *os.File                  // SQLite: the locked file
	serving bool                      // open for serving, and migrated
	broken  atomic.Pointer[error]     // set when this process must stop writing
	fatal   chan error                // receives the error; buffered
	pinged  atomic.Pointer[time.Time] // Ping's last write; nil after a failure

	committed func() // called after each writing transaction
}

func (s *database) DB() *sql.DB { return s.w }

// Now returns the database's time.
func (s *database) Now() time.Time { return s.engine.Now() }

// Skew returns how far the database's clock is ahead of this process's; 0 with SQLite.
func (s *database) Skew() time.Duration { return s.engine.Skew() }

func (s *database) closeDB() error {
	var errs []error
	if s.r != nil && s.r != s.w {
		errs = append(errs, s.r.Close())
	}
	if s.w != nil {
		errs = append(errs, s.w.Close())
	}
	if s.file != nil { // SQLite has closed its descriptors by now
		if err := s.file.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// each calls f for each row of a query. It returns the query's or f's error.
func each(rows *sql.Rows, err error, f func(scan func(...any) error) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list collects a query's rows.
func list[T any](rows *sql.Rows, err error, read func(scan func(...any) error) (T, error)) (all []T, _ error) {
	err = each(rows, err, func(scan func(...any) error) error {
		one, err := read(scan)
		all = append(all, one)
		return err
	})
	return all, err
}

// wrap adds the operation to an error and stops all writes after damage. Methods that do not use write must call it.
func (s *database) wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), s.see(*err))
	}
}

// micros encodes a time for the database; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// txn is a transaction. It records whether threads became due, and this process's deliveries.
type txn struct {
	*sql.Tx
	now        time.Time // database time at the start
	due        bool
	deliveries []thread.Delivery
}

func (tx *txn) exec(ctx context.Context, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}

func (tx *txn) change(ctx context.Context, query string, args ...any) (rows int, err error) {
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// write runs fn in one transaction. With SQLite the transaction holds the write lock from the start.
func (s *database) write(ctx context.Context, fn func(*txn) error) error {
	end, err := s.engine.Turn(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer end()
	return s.in(ctx, fn)
}

// writeWhere runs fn like write if a query finds due rows; otherwise it takes no lock.
func (s *database) writeWhere(ctx context.Context, query string, args []any, fn func(*txn) error) error {
	var due bool
	if err := s.r.QueryRowContext(ctx, query, args...).Scan(&due); err != nil || !due {
		return err
	}
	return s.write(ctx, fn)
}

func (s *database) in(ctx context.Context, fn func(*txn) error) error {
	if last := s.broken.Load(); last != nil {
		return *last
	}
	sqlTx, err := s.w.BeginTx(ctx, s.options)
	if err != nil {
		return s.see(fmt.Errorf("begin: %w", err))
	}
	tx := &txn{Tx: sqlTx}
	if err := s.do(ctx, tx, fn); err != nil {
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) { // an ended context has already rolled back
			err = errors.Join(err, fmt.Errorf("roll back: %w", undo))
		}
		return s.see(err)
	}
	crash.Point("commit")
	if err := tx.Commit(); err != nil {
		return s.see(fmt.Errorf("commit: %w", err))
	}
	crash.Point("committed_rows")
	s.committed()
	if s.queue != nil && (tx.due || len(tx.deliveries) > 0) {
		s.queue.Committed(tx.due, tx.deliveries)
	}
	return nil
}

// do runs a transaction up to its commit.
func (s *database) do(ctx context.Context, tx *txn, fn func(*txn) error) (err error) {
	if tx.now, err = s.enter(ctx, tx); err != nil {
		return err
	}
	if err = fn(tx); err != nil || !tx.due {
		return err
	}
	return s.engine.Notify(ctx, tx.Tx)
}

// enter prepares a new transaction and returns the database's time. If another pawl changed the schema, this one stops
// writing.
func (s *database) enter(ctx context.Context, tx *txn) (time.Time, error) {
	now, found, err := s.engine.Enter(ctx, tx.Tx, s.schema)
	if err == nil && found != s.schema {
		err = s.end(fmt.Errorf("another pawl changed the database while this one used it (schema %d, this one works with %d); "+
			"start the version of pawl that changed it, or restore a backup", found, s.schema))
	}
	return now, err
}

// serialize runs transactions with the same name one after another.
func (s *database) serialize(ctx context.Context, tx *txn, name string) error {
	return s.engine.Serialize(ctx, tx.Tx, name)
}

// locking returns a clause that locks a SELECT's rows; SQLite needs none.
func (s *database) locking(clause string) string {
	if s.dialect.rowLocks {
		return clause
	}
	return ""
}

// Fatal returns a channel. After an error on it all writes fail, and the process should exit with a non-zero code. After
// a failed fsync the disk's content is unknown; damaged or renamed files must not be written. Earlier commits are safe.
func (s *database) Fatal() <-chan error { return s.fatal }

// see returns an error and stops all writes if the error is fatal.
func (s *database) see(err error) error {
	if hint, last := s.engine.Failed(err); last {
		return s.end(fmt.Errorf("the database can no longer be used: %w; %s", err, hint))
	}
	return err
}

// end stops all writes, and returns the first fatal error.
func (s *database) end(err error) error {
	if s.broken.CompareAndSwap(nil, &err) {
		s.fatal <- err
	}
	return *s.broken.Load()
}
