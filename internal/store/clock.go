package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// clock reads the database's clock, which dates everything stored. SQLite uses this machine's clock.
type clock struct {
	own func() time.Time // this process's clock

	mu    sync.Mutex
	ahead time.Duration // database's clock minus own, by the last reading
}

// Now returns the database's time, estimated from the last reading.
func (s *database) Now() time.Time { return s.clock.own().Add(s.Skew()) }

// Skew returns how far the database's clock is ahead of this process's; 0 on SQLite.
func (s *database) Skew() time.Duration {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return s.clock.ahead
}

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

// enter prepares a new transaction and returns the database's time. On PostgreSQL it overrides settings of roles,
// databases and poolers: commits are synced, and a stopped node locks its rows for at most a heartbeat. If another pawl
// changed the schema, this one stops writing.
func (s *database) enter(ctx context.Context, tx *txn) (time.Time, error) {
	before := s.clock.own()
	if !s.postgres {
		return before, nil
	}
	var now, version int64
	err := tx.QueryRowContext(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
			(SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied),
			set_config('idle_in_transaction_session_timeout', $1, true),
			set_config('synchronous_commit', CASE current_setting('synchronous_commit')
				WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)`,
		strconv.FormatInt(thread.HeartbeatTime.Milliseconds(), 10)).Scan(&now, &version, new(string), new(string))
	if err != nil {
		return time.Time{}, fmt.Errorf("begin: %w", err)
	}
	if version != s.schema {
		return time.Time{}, s.end(fmt.Errorf("another pawl changed the database while this one used it (schema %d, this one works with %d); "+
			"start the version of pawl that changed it, or restore a backup", version, s.schema))
	}
	s.clock.compare(before, fromMicros(now), s.clock.own())
	return fromMicros(now), nil
}

// compare corrects ahead by the least amount consistent with the reading.
func (c *clock) compare(before, reading, after time.Time) {
	least, most := reading.Sub(after), reading.Sub(before)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = min(max(c.ahead, least), most)
}
