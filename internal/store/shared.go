package store

import (
	"bytes"
	"context"
	"os"
	"time"
)

type records struct{ *database }

// UpdateShared changes a small blob that all nodes share, in a transaction. f gets nil for a new key, with nil
// as its answer the blob stays; it must not use the store. now is by the database's clock on PostgreSQL. It
// does not wait for the disk: a power cut or a crash of PostgreSQL may lose the last updates, a crash of Pawl
// none.
func (s *records) UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) (err error) {
	defer s.wrap(&err, "update the shared %s", key)
	return s.writeUnsynced(ctx, func(tx *txn) error {
		if err := s.serialize(ctx, tx, "shared "+key); err != nil {
			return err
		}
		var old []byte
		var reference int64
		if err := tx.QueryRowContext(ctx, "SELECT (SELECT data FROM shared WHERE key = $1), "+s.referenceColumn(), key).Scan(&old, &reference); err != nil {
			return err
		}
		now := s.now()
		if s.postgres {
			now = fromMicros(reference)
		}
		next := f(now, old)
		if next == nil {
			return nil
		}
		return s.putShared(ctx, tx, key, next)
	})
}

func (s *records) putShared(ctx context.Context, tx *txn, key string, data []byte) error {
	return tx.exec(ctx, `INSERT INTO shared (key, data, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET data = excluded.data, updated_at = excluded.updated_at`, key, data, micros(s.now()))
}

// What Ping writes, and how often: a row as large as an ordinary webhook, for which a disk with room for a byte
// may have none.
const (
	pingInterval = 5 * time.Second
	pingBytes    = 8 << 10
)

// Ping reports whether the database can be written to. A transaction finds a lock and a database that is away;
// a full or read-only disk shows only in a write, which it makes of its own, at most every 5 s: each is an
// fsync, and it may be called every second. While Open looks at the database it writes nothing: the table may
// not be there yet.
func (s *records) Ping(ctx context.Context) error {
	if err := s.stillThere(); err != nil {
		return err
	}
	last := s.pinged.Load()
	due := s.serving && (last == nil || time.Since(*last) >= pingInterval)
	err := s.write(ctx, func(tx *txn) error {
		if !due {
			return tx.exec(ctx, "SELECT 1")
		}
		host, _ := os.Hostname() // a row for each: one that is stopped in the middle of its Ping holds its own only
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
