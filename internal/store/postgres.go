package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawlbot/pawl/solver"
)

// postgresConns is how many connections one node uses: the workers, the
// heartbeats, the queue's polls and the pages share them.
const postgresConns = 16

// lockTime is how long a statement waits for a lock before it fails; the address may
// name another lock_timeout. Pawl holds locks for milliseconds, save that of a
// migration: who waits for a long one fails, and is started again by its supervisor.
const lockTime = time.Minute

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
	// What locks rows and reads them goes by this; a database may have another default.
	config.RuntimeParams["default_transaction_isolation"] = "read committed"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(solver.HeartbeatTime.Milliseconds(), 10)
	if _, chosen := config.RuntimeParams["lock_timeout"]; !chosen {
		config.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockTime.Milliseconds(), 10)
	}
	for k, v := range params {
		config.RuntimeParams[k] = v
	}
	if params["default_transaction_read_only"] == "on" {
		config.ValidateConnect = nil // target_session_attrs may want a host for writing
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
		return fmt.Errorf("wait for another server that migrates the database: %w%s", err, s.whoMigrates(ctx))
	}
	defer func() {
		_, uerr := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
		if err == nil && uerr != nil {
			err = fmt.Errorf("unlock the migration: %w", uerr)
		}
	}()
	return s.migrate(ctx, o.Logger)
}

// whoMigrates says how to get rid of a server that was stopped while it held the
// lock, as far as that can be known.
func (s *Store) whoMigrates(ctx context.Context) (hint string) {
	var pid int
	var host string
	err := s.w.QueryRowContext(ctx, `SELECT l.pid, coalesce(host(a.client_addr), 'the machine of the database') FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = $1::bigint::oid
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`, migrationLock).Scan(&pid, &host)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; a server on %s holds the lock: wait until it serves, or, if it hangs, end it with SELECT pg_terminate_backend(%d) and start again", host, pid)
}
