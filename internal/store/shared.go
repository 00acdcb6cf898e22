package store

import (
	"bytes"
	"context"
	"os"
	"time"
)

// UpdateShared changes a small blob that all nodes share, in a transaction. f gets nil for a new key; a nil result changes
// nothing. f must not use the store. now is the database's time.
func (s *shared) UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) (err error) {
	defer s.wrap(&err, "update the shared %s", key)
	return s.write(ctx, func(tx *txn) error {
		if err := s.serialize(ctx, tx, "shared "+key); err != nil {
			return err
		}
		var old []byte
		if err := tx.QueryRowContext(ctx, "SELECT (SELECT data FROM shared WHERE key = $1)", key).Scan(&old); err != nil {
			return err
		}
		next := f(tx.now, old)
		if next == nil {
			return nil
		}
		return s.putShared(ctx, tx, key, next)
	})
}

// ReadShared returns a blob, or nil.
func (s *shared) ReadShared(ctx context.Context, key string) (data []byte, err error) {
	defer s.wrap(&err, "read the shared %s", key)
	err = s.r.QueryRowContext(ctx, "SELECT (SELECT data FROM shared WHERE key = $1)", key).Scan(&data)
	return data, err
}

func (s *shared) putShared(ctx context.Context, tx *txn, key string, data []byte) error {
	return tx.exec(ctx, `INSERT INTO shared (key, data, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET data = excluded.data, updated_at = excluded.updated_at`, key, data, micros(tx.now))
}

// Size and interval of Ping's writes. The row is as large as an ordinary webhook: a full disk may still accept a byte.
const (
	pingInterval = 5 * time.Second
	pingBytes    = 8 << 10
)

// Ping reports whether the database accepts writes. A full or read-only disk shows only in a write. Ping writes at
// most every 5 s, and each time after a failure. While Open checks the database, Ping writes nothing: the table may not
// exist.
func (s *shared) Ping(ctx context.Context) error {
	if err := s.stillThere(); err != nil {
		return err
	}
	last := s.pinged.Load()
	due := s.serving && (last == nil || time.Since(*last) >= pingInterval)
	err := s.write(ctx, func(tx *txn) error {
		if !due {
			return tx.exec(ctx, "SELECT 1")
		}
		host, _ := os.Hostname() // one row per host, so that a stopped process blocks only its host
		return s.putShared(ctx, tx, "ping "+host, bytes.Repeat([]byte{' '}, pingBytes))
	})
	switch {
	case err != nil:
		s.pinged.Store(nil)
	case due:
		now := time.Now()
		s.pinged.Store(&now)
	}
	return err
}
