package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/wait"
)

// postgresConns is how many connections a node uses: workers, heartbeats, claims and pages.
const postgresConns = 16

// How long PostgreSQL may take, all our choice. Without these bounds a connection that went silent (a failover behind a
// balancer, a lost NAT entry) would hold its caller for hours.
const (
	// connectTime bounds one connection to one host; the address may name another connect_timeout. Of two hosts the
	// second is reached within storeTime.
	connectTime = 3 * time.Second
	// pingTime bounds the question whether a connection of the pool still answers.
	pingTime = time.Second
	// statementTime bounds one statement whose caller sets no earlier deadline. Pawl's statements take milliseconds.
	statementTime = 15 * time.Second
	// silentTime is how long the kernel waits for a peer that acknowledges nothing.
	silentTime = 10 * time.Second
	// lockTime is how long a migration waits for a lock; the address may name another lock_timeout. Who waits
	// longer fails, and is started again.
	lockTime = time.Minute
)

// postgresConfig reads an address, which no error shows, since it may carry a password.
func postgresConfig(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database: the postgres:// address cannot be read; want postgres://user:password@host:port/name")
	}
	config.RuntimeParams["application_name"] = "pawl"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTime
	}
	config.DialFunc = dialer().DialContext
	config.Tracer = statements{}
	return config, nil
}

// dialer makes connections that the kernel ends when their peer is gone.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silentTime, Interval: silentTime / 4, Count: 4},
		Control: func(network, _ string, c syscall.RawConn) (err error) {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			failed := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silentTime.Milliseconds()))
			})
			return errors.Join(failed, err)
		},
	}
}

// statements ends every statement after statementTime. pgx drops the connection of one that it ends.
type statements struct{}

type endStatement struct{}

func (statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	return context.WithValue(ctx, endStatement{}, cancel)
}

func (statements) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	ctx.Value(endStatement{}).(context.CancelFunc)()
}

// silent reports whether a connection that nobody used for a second gives no answer. The driver then asks it once more,
// which fails at once, and takes another.
func silent(ctx context.Context, p stdlib.ShouldPingParams) bool {
	return p.IdleDuration >= time.Second && ping(ctx, p.Conn) != nil
}

// ping asks a connection for an answer. One that gives none is dropped.
func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	return conn.Ping(ctx)
}

// openPostgres connects, and migrates the database, or checks its version if it does not serve.
func (s *database) openPostgres(ctx context.Context, dsn string, a Access) (err error) {
	s.postgres = true
	if s.config, err = postgresConfig(dsn); err != nil {
		return err
	}
	if a == Reading {
		s.config.ValidateConnect = nil // target_session_attrs may want a host for writing
	}
	if err := s.findPooler(ctx); err != nil {
		return err
	}
	s.options = &sql.TxOptions{Isolation: sql.LevelReadCommitted, ReadOnly: a == Reading}
	s.w = stdlib.OpenDB(*s.config, stdlib.OptionShouldPing(silent))
	s.w.SetMaxOpenConns(postgresConns)
	s.w.SetMaxIdleConns(postgresConns)
	s.r = s.w
	if _, err := s.readClock(ctx, s.r.QueryRowContext); err != nil {
		return err
	}
	if a != Serving {
		return s.checkCurrent(ctx)
	}
	return s.migratePostgres(ctx)
}

// findPooler sees whether the address leads to a pooler such as pgbouncer, which answers with another process id than
// PostgreSQL's. Between two transactions a pooler may change the session, and with it lose prepared statements, session
// settings and LISTEN. Pawl then works without them.
func (s *database) findPooler(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w; %s", err, connectHint(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var pid uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w; %s", err, connectHint(err))
	}
	if s.pooled = pid != conn.PgConn().PID(); s.pooled {
		s.config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return nil
}

// connectHint says what an operator can do about a connection that failed.
func connectHint(err error) string {
	answer, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case !answered:
		return "is it running, and does the address lead to it?"
	case strings.Contains(answer.Message, "unsupported startup parameter"):
		return "a pooler such as pgbouncer refuses this parameter: remove it from the address in the config, " +
			"or name it in the pooler's ignore_startup_parameters"
	case strings.HasPrefix(answer.Code, "28"): // invalid_authorization_specification
		return "may this user connect to this database, and is the password right?"
	}
	if hint, ok := connectHints[answer.Code]; ok {
		return hint
	}
	return "PostgreSQL's log may say more"
}

// connectHints are for PostgreSQL's error codes (its documentation, appendix A).
var connectHints = map[string]string{
	"3D000": "create the database, or correct its name in the config",                                     // invalid_catalog_name
	"42501": "may this user connect to this database?",                                                    // insufficient_privilege
	"42704": "correct or remove this parameter of the address in the config",                              // undefined_object
	"22023": "correct or remove this parameter of the address in the config",                              // invalid_parameter_value
	"53300": fmt.Sprintf("raise max_connections: each server uses up to %d connections", postgresConns+1), // too_many_connections
}

// onlyReads reports whether PostgreSQL refused a write because it only reads.
func onlyReads(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && answer.Code == "25006" // read_only_sql_transaction
}

// reconnect closes the connections that nobody uses. After a failover they may lead to a standby for as long as they
// last, and new ones to the primary.
func (s *database) reconnect() {
	s.w.SetMaxIdleConns(-1)
	s.w.SetMaxIdleConns(postgresConns)
}

// Unreachable reports whether Open failed because PostgreSQL takes no connections, which may pass: nothing listens,
// or it is starting, stopping or full. A wrong password or a missing database does not count.
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

// migratePostgres migrates over connections of its own: a migration takes as long as it takes. The lock belongs to a
// transaction, which no pooler can lose.
func (s *database) migratePostgres(ctx context.Context) error {
	config := s.config.Copy()
	config.Tracer = nil
	if _, chosen := config.RuntimeParams["lock_timeout"]; !chosen {
		config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			return conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", lockTime.Milliseconds())).Close()
		}
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	lock, err := db.BeginTx(ctx, s.options)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer lock.Rollback() // it wrote nothing
	var only bool
	const holds = `SELECT current_setting('transaction_read_only')::bool, set_config('idle_in_transaction_session_timeout', '0', true)`
	if err := lock.QueryRowContext(ctx, holds).Scan(&only, new(string)); err != nil {
		return fmt.Errorf("ask PostgreSQL for its mode: %w", err)
	}
	if only {
		return errOnlyReads
	}
	if _, err := lock.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", migrationLock); err != nil {
		return fmt.Errorf("wait for another server that migrates the database: %w%s", err, s.whoMigrates(ctx))
	}
	return s.migrate(ctx, db)
}

// errOnlyReads is a database that nothing can be written to.
var errOnlyReads = errors.New("PostgreSQL only reads here: it is a standby, or default_transaction_read_only is set; " +
	"name the primary in the config, or make this one writable")

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

// wakeChannel is the nodes' channel for due threads.
const wakeChannel = "pawl_due"

// listenAgain is how long Listen waits before it reconnects; polls find due threads meanwhile.
const listenAgain = 5 * time.Second

// notify wakes all nodes after the commit; SQLite has only one process.
func (s *database) notify(ctx context.Context, tx *txn) error {
	if !s.postgres {
		return nil
	}
	if err := tx.exec(ctx, "SELECT pg_notify($1, '')", wakeChannel); err != nil {
		return fmt.Errorf("notify the other nodes: %w", err)
	}
	return nil
}

// Listen calls wake whenever a node made threads due, until ctx ends, over a connection of its own. With SQLite, and
// through a pooler, it returns at once.
func (s *Store) Listen(ctx context.Context, wake func()) {
	listens := s.postgres && !s.pooled
	for listens && ctx.Err() == nil {
		_ = s.listen(ctx, wake) // any error: Listen tries again, and polls continue
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
		if err := s.hear(ctx, conn); err != nil {
			return err
		}
	}
}

// hear waits for a notification. Where none came it asks whether the connection still answers.
func (s *Store) hear(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	_, err := conn.WaitForNotification(waiting)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return ping(ctx, conn)
	}
	return err
}
