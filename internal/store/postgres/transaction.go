package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// Turn never waits: nodes write concurrently.
func (*DB) Turn(context.Context) (end func(), err error) { return func() {}, nil }

// Enter prepares a new transaction. It returns the database's time and its schema. It overrides settings of roles,
// databases and poolers: commits are synced, and a stopped node locks its rows for at most a heartbeat.
func (db *DB) Enter(ctx context.Context, tx *sql.Tx, _ int64) (now time.Time, schema int64, err error) {
	before := db.clock.own()
	var micros int64
	err = tx.QueryRowContext(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
			(SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied),
			set_config('idle_in_transaction_session_timeout', $1, true),
			set_config('synchronous_commit', CASE current_setting('synchronous_commit')
				WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)`,
		strconv.FormatInt(thread.HeartbeatTime.Milliseconds(), 10)).Scan(&micros, &schema, new(string), new(string))
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("begin: %w", err)
	}
	return db.clock.read(before, micros), schema, nil
}

// Serialize runs transactions with the same name one after another.
func (*DB) Serialize(ctx context.Context, tx *sql.Tx, name string) error {
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)
	return err
}

// clock estimates the database's clock, which dates everything stored.
type clock struct {
	own func() time.Time // this process's clock

	mu    sync.Mutex
	ahead time.Duration // database's clock minus own, by the last reading
}

// Now returns the database's time, estimated from the last reading.
func (db *DB) Now() time.Time { return db.clock.own().Add(db.Skew()) }

// Skew returns how far the database's clock is ahead of this process's.
func (db *DB) Skew() time.Duration {
	db.clock.mu.Lock()
	defer db.clock.mu.Unlock()
	return db.clock.ahead
}

func (db *DB) readClock(ctx context.Context) error {
	before := db.clock.own()
	var micros int64
	err := db.QueryRowContext(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&micros)
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	db.clock.read(before, micros)
	return nil
}

// read corrects ahead by the least amount consistent with a reading requested at before.
func (c *clock) read(before time.Time, micros int64) time.Time {
	reading, after := time.UnixMicro(micros).UTC(), c.own()
	least, most := reading.Sub(after), reading.Sub(before)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = min(max(c.ahead, least), most)
	return reading
}
