package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawlbot/pawl/solver"
)

// postgresConns is how many connections one node uses: the workers, the
// heartbeats, the queue's polls and the pages share them.
const postgresConns = 16

// postgresDB opens a pool. A node that is stopped in the middle of a transaction
// would keep the rows that it locked for as long as it stands still, and the
// thread from everybody else; so the server ends a transaction that nobody goes
// on with for a heartbeat. No transaction of Pawl waits for anything but the
// database. The address may carry a password, so no error shows
// it.
func postgresDB(dsn string, params map[string]string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database: the postgres:// address cannot be read; want postgres://user:password@host:port/name")
	}
	config.RuntimeParams["application_name"] = "pawl"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(solver.HeartbeatTime.Milliseconds(), 10)
	for k, v := range params {
		config.RuntimeParams[k] = v
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	return db, nil
}

func (s *Store) openPostgres(ctx context.Context, dsn string, o Options) (err error) {
	s.postgres = true
	if s.w, err = postgresDB(dsn, nil); err != nil {
		return err
	}
	s.r = s.w
	if err := s.w.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w; is it running, and may this user connect to this database?", err)
	}
	return s.migratePostgres(ctx, o)
}

func (s *Store) readPostgres(ctx context.Context, dsn string) (err error) {
	s.postgres = true
	if s.w, err = postgresDB(dsn, map[string]string{"default_transaction_read_only": "on"}); err != nil {
		return err
	}
	s.r = s.w
	if err := s.w.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w; is it running, and may this user connect to this database?", err)
	}
	return s.checkCurrent(ctx)
}

// migrationLock is the advisory lock that lets one node migrate at a time; the
// number is "pawl" in ASCII.
const migrationLock = 0x7061776c

func (s *Store) migratePostgres(ctx context.Context, o Options) (err error) {
	conn, err := s.w.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return fmt.Errorf("wait for another node's migration: %w", err)
	}
	defer func() {
		_, uerr := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
		if err == nil && uerr != nil {
			err = fmt.Errorf("unlock the migration: %w", uerr)
		}
	}()
	return s.migrate(ctx, o.Logger)
}
