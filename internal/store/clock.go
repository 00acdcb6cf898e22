package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

// clock is the database's. It dates leases, retries, waits and everything else that is stored. PostgreSQL has a clock,
// which each transaction reads, so the clocks of several nodes do not matter. SQLite has none: its file and this
// process share a machine and its clock.
type clock struct {
	own func() time.Time // of this process

	mu    sync.Mutex
	ahead time.Duration // how far the database's clock is ahead of own, by the last reading
}

// Now is the database's time by this process's clock and the last reading.
func (s *database) Now() time.Time { return s.clock.own().Add(s.Skew()) }

// Skew is how far the database's clock is ahead of this process's; 0 on SQLite.
func (s *database) Skew() time.Duration {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return s.clock.ahead
}

// readClock asks the database for its time.
func (s *database) readClock(ctx context.Context, query func(context.Context, string, ...any) *sql.Row) (time.Time, error) {
	before := s.clock.own()
	if !s.postgres {
		return before, nil
	}
	var now int64
	if err := query(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	s.clock.compare(before, fromMicros(now), s.clock.own())
	return fromMicros(now), nil
}

// compare changes ahead as little as a reading between two times of this process allows.
func (c *clock) compare(before, reading, after time.Time) {
	least, most := reading.Sub(after), reading.Sub(before)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = min(max(c.ahead, least), most)
}
