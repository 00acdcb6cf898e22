package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// UpdateShared changes a small blob that all nodes share, in a transaction. f
// gets nil for a key that is new, and with nil as its answer the blob stays as
// it is; f must not use the store. The update does not wait for the disk: after
// a power cut or a crash of PostgreSQL the last ones may be missing, but a crash
// of Pawl alone loses none. It is meant for what is asked before every call, such
// as GitHub's limits.
func (s *Store) UpdateShared(ctx context.Context, key string, f func(old []byte) (next []byte)) error {
	err := s.writeUnsynced(ctx, func(tx *txn) error {
		if err := s.serialize(ctx, tx, "shared "+key); err != nil {
			return err
		}
		var old []byte
		err := tx.QueryRowContext(ctx, s.q("SELECT data FROM shared WHERE key = ?1"), key).Scan(&old)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		next := f(old)
		if next == nil {
			return nil
		}
		_, err = tx.ExecContext(ctx, s.q(`INSERT INTO shared (key, data, updated_at) VALUES (?1, ?2, ?3)
			ON CONFLICT (key) DO UPDATE SET data = excluded.data, updated_at = excluded.updated_at`), key, next, micros(s.now()))
		return err
	})
	if err != nil {
		return fmt.Errorf("update the shared %s: %w", key, err)
	}
	return nil
}

// writeUnsynced is write without waiting for the disk. On SQLite the frames stay
// in the log file, in order, until the next commit of write syncs them.
func (s *Store) writeUnsynced(ctx context.Context, fn func(*txn) error) error {
	if s.postgres {
		return s.writeNow(ctx, func(tx *txn) error {
			if _, err := tx.ExecContext(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
				return err
			}
			return fn(tx)
		})
	}
	done, err := s.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	conn, err := s.w.Conn(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA synchronous=NORMAL"); err != nil {
		return errors.Join(fmt.Errorf("begin: %w", err), syncAgain(ctx, conn))
	}
	return errors.Join(s.in(ctx, conn, fn), syncAgain(ctx, conn))
}

// syncAgain makes the connection's commits wait for the disk again, or throws
// the connection away: a new one does.
func syncAgain(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "PRAGMA synchronous=FULL"); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it, and returns just that
		return fmt.Errorf("sync again: %w", err)
	}
	return nil
}
