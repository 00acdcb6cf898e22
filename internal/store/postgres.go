package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver/thread"
)

// postgresConns is how many connections a node uses: workers, heartbeats, claims and pages.
const postgresConns = 16

// lockTime is how long a statement waits for a lock; the address may name another lock_timeout. Pawl holds
// locks for milliseconds, save that of a migration: who waits for a long one fails, and is started again.
const lockTime = time.Minute

// postgresConfig reads an address, which no error shows, since it may carry a password. A node that is stopped
// within a transaction would keep its rows from everybody; so the server ends one that nobody goes on with for
// a heartbeat.
func postgresConfig(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database: the postgres:// address cannot be read; want postgres://user:password@host:port/name")
	}
	config.RuntimeParams["application_name"] = "pawl"
	// What locks rows and reads them goes by this; a database may have another default.
	config.RuntimeParams["default_transaction_isolation"] = "read committed"
	idle := strconv.FormatInt(thread.HeartbeatTime.Milliseconds(), 10)
	config.RuntimeParams["idle_in_transaction_session_timeout"] = idle
	if _, chosen := config.RuntimeParams["lock_timeout"]; !chosen {
		config.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockTime.Milliseconds(), 10)
	}
	return config, nil
}

// openPostgres connects, and migrates the database or, where it does not serve, looks that it is migrated.
func (s *database) openPostgres(ctx context.Context, dsn string, a Access) (err error) {
	s.postgres = true
	if s.config, err = postgresConfig(dsn); err != nil {
		return err
	}
	if a == Reading {
		s.config.RuntimeParams["default_transaction_read_only"] = "on"
		s.config.ValidateConnect = nil // target_session_attrs may want a host for writing
	}
	s.w = stdlib.OpenDB(*s.config)
	s.w.SetMaxOpenConns(postgresConns)
	s.w.SetMaxIdleConns(postgresConns)
	s.r = s.w
	if err := s.w.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w; is it running, and may this user connect to this database?", err)
	}
	if _, err := s.readClock(ctx, s.r.QueryRowContext); err != nil {
		return err
	}
	if a != Serving {
		return s.checkCurrent(ctx)
	}
	return s.migratePostgres(ctx)
}

// Unreachable reports whether Open failed because no PostgreSQL takes connections, which may change by itself:
// nothing listens, or it is starting, stopping or full. A wrong password or a missing database is not among it.
func Unreachable(err error) bool {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch answer.Code {
		case "57P03", "57P01", "57P02", "53300": // cannot_connect_now, admin_shutdown, crash_shutdown, too_many_connections
			return true
		}
		return false
	}
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// migrationLock is the advisory lock of the one node that migrates; the number is "pawl" in ASCII.
const migrationLock = 0x7061776c

func (s *database) migratePostgres(ctx context.Context) (err error) {
	conn, err := s.w.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return fmt.Errorf("wait for another server that migrates the database: %w%s", err, s.whoMigrates(ctx))
	}
	defer func() {
		_, unlock := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
		if err == nil && unlock != nil {
			err = fmt.Errorf("unlock the migration: %w", unlock)
		}
	}()
	return s.migrate(ctx)
}

// whoMigrates says how to get rid of a server that was stopped while it held the lock.
func (s *database) whoMigrates(ctx context.Context) (hint string) {
	var pid int
	var host string
	err := s.w.QueryRowContext(ctx, `SELECT l.pid, coalesce(host(a.client_addr), 'the machine of the database')
		FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = $1::bigint::oid
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`, migrationLock).Scan(&pid, &host)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; a server on %s holds the lock: wait until it serves, or, if it hangs, "+
		"end it with SELECT pg_terminate_backend(%d) and start again", host, pid)
}

// wakeChannel is what nodes notify each other on that threads became due.
const wakeChannel = "pawl_due"

// listenAgain is how long Listen waits before it connects again; polls find what became due.
const listenAgain = 5 * time.Second

// notify tells all nodes, after the commit, that threads became due; SQLite's only process knows it.
func (s *database) notify(ctx context.Context, tx *txn) error {
	if !s.postgres {
		return nil
	}
	if err := tx.exec(ctx, "SELECT pg_notify($1, '')", wakeChannel); err != nil {
		return fmt.Errorf("notify the other nodes: %w", err)
	}
	return nil
}

// Listen calls wake whenever a node made threads due, until ctx ends, over a connection of its own. With SQLite
// it returns at once.
func (s *Store) Listen(ctx context.Context, wake func()) {
	for s.postgres && ctx.Err() == nil {
		_ = s.listen(ctx, wake) // whatever it was: it is tried again, and the poll goes on
		_ = wait.For(ctx, listenAgain)
	}
}

func (s *Store) listen(ctx context.Context, wake func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+wakeChannel); err != nil {
		return err
	}
	for {
		wake() // also for what came before it listened
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}
