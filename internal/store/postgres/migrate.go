package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"
)

// migrationLock is an advisory lock for migrations; the number is "pawl" in ASCII.
const migrationLock = 0x7061776c

// Migrate lets one node at a time migrate the database, over connections without a time limit. The migration lock belongs
// to a transaction, since a pooler could lose a session's lock.
func (db *DB) Migrate(ctx context.Context, migrate func(context.Context, *sql.DB) error) error {
	config := db.config.Copy()
	config.Tracer = nil
	if _, chosen := config.RuntimeParams["lock_timeout"]; !chosen && !db.pooled {
		config.RuntimeParams["lock_timeout"] = fmt.Sprint(lockTime.Milliseconds())
	}
	patient := stdlib.OpenDB(*config)
	defer patient.Close()
	if err := db.checkPool(ctx, patient); err != nil {
		return err
	}
	lock, err := patient.BeginTx(ctx, db.TxOptions)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer lock.Rollback() // nothing to undo
	var only bool
	// Settings end with the transaction: a session's settings would reach other clients of a pooler.
	const holds = `SELECT current_setting('transaction_read_only')::bool, set_config('idle_in_transaction_session_timeout', '0', true),
		set_config('lock_timeout', coalesce(nullif(current_setting('lock_timeout'), '0'), $1), true)`
	if err := lock.QueryRowContext(ctx, holds, fmt.Sprint(lockTime.Milliseconds())).Scan(&only, new(string), new(string)); err != nil {
		return fmt.Errorf("ask PostgreSQL for its mode: %w", err)
	}
	if only {
		return errReadOnly
	}
	if _, err := lock.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", migrationLock); err != nil {
		return fmt.Errorf("wait for another server that migrates the database: %w%s", err, db.whoMigrates(ctx))
	}
	return migrate(ctx, patient)
}

// checkPool reports a pooler that gives too few connections at once: the lock and a migration would wait for each other.
func (db *DB) checkPool(ctx context.Context, pool *sql.DB) error {
	if !db.pooled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	first, err := pool.BeginTx(ctx, nil)
	if err == nil {
		defer first.Rollback() // nothing to undo
		err = pool.QueryRowContext(ctx, "SELECT 1").Scan(new(int))
	}
	if err != nil {
		return fmt.Errorf("the pooler gives no second connection: %w; set its pool size (default_pool_size of pgbouncer) to %d or more",
			err, maxConns+1)
	}
	return nil
}

var errReadOnly = errors.New("PostgreSQL is read-only here: it is a standby, or default_transaction_read_only is set; " +
	"name the primary in the config, or make this one writable")

// whoMigrates names the server that holds the migration lock and how to end it.
func (db *DB) whoMigrates(ctx context.Context) (hint string) {
	var pid int
	var host string
	err := db.QueryRowContext(ctx, `SELECT l.pid, coalesce(host(a.client_addr), 'the machine of the database')
		FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = $1::bigint::oid
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`, migrationLock).Scan(&pid, &host)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; a server on %s holds the lock: wait until it serves, or, if it hangs, "+
		"end it with SELECT pg_terminate_backend(%d) and start again", host, pid)
}
