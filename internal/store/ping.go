package store

import (
	"bytes"
	"context"
	"os"
	"time"
)

// What Ping writes, and how often: a row about as large as an ordinary webhook, as
// a disk that has room for a byte may have none for that. SQLite keeps it as it is;
// PostgreSQL packs it.
const (
	pingInterval = 5 * time.Second
	pingBytes    = 8 << 10
)

// pingKey is the row's own for each machine: one that is stopped in the middle of its
// Ping holds its row only.
func pingKey() string {
	host, err := os.Hostname()
	if err != nil {
		return "ping"
	}
	return "ping " + host
}

// Ping reports whether the database can be written to. It begins and ends a
// transaction, which finds a lock and a database that is away. A full or read-only
// disk shows only when something is written, so it writes a row of its own, but
// not within 5 s of the last time that this succeeded: it may be called every
// second, and each write is an fsync. While Open looks at the database, Ping writes
// nothing: the table may not be there yet.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.stillThere(); err != nil {
		return err
	}
	last := s.pinged.Load()
	due := s.receiver != nil && (last == nil || time.Since(*last) >= pingInterval)
	err := s.write(ctx, func(tx *txn) error {
		if !due {
			_, err := tx.ExecContext(ctx, "SELECT 1")
			return err
		}
		_, err := tx.ExecContext(ctx, s.q(`INSERT INTO shared (key, data, updated_at) VALUES (?1, ?2, ?3)
			ON CONFLICT (key) DO UPDATE SET data = excluded.data, updated_at = excluded.updated_at`),
			pingKey(), bytes.Repeat([]byte{' '}, pingBytes), micros(s.now()))
		return err
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
