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

// postgresConns limits a node's connections: workers, heartbeats, claims and pages.
const postgresConns = 16

// PostgreSQL's time limits, our choice. Without them a silent connection (failover, lost NAT entry) would hold its
// caller for hours.
const (
	// connectTime limits connecting; the hosts of an address share it. It leaves a second of storeTime for the
	// statement. connect_timeout in the address replaces it, for each host.
	connectTime = storeTime - time.Second
	// pingTime limits the check of a pooled connection.
	pingTime = time.Second
	// statementTime limits a statement without an earlier deadline. Pawl's statements take milliseconds.
	statementTime = 15 * time.Second
	// silentTime is how long the kernel waits for a silent peer.
	silentTime = 10 * time.Second
	// lockTime limits a migration's wait for a lock; after it the start fails. lock_timeout in the address replaces it.
	lockTime = time.Minute
)

// connectionName names a node's connections; PostgreSQL keeps 63 bytes. A node's name ends with what tells it from others.
func connectionName(node string) string {
	return strings.TrimSpace("pawl " + node[max(0, len(node)-connectionNameKeeps):])
}

const connectionNameKeeps = 58

// postgresConfig parses an address. Errors do not show it, since it may hold a password.
func postgresConfig(dsn, node string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database: the postgres:// address cannot be read; want postgres://user:password@host:port/name")
	}
	config.RuntimeParams["application_name"] = connectionName(node)
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTime / time.Duration(hosts(config))
	}
	config.DialFunc = dialer().DialContext
	config.Tracer = statements{}
	return config, nil
}

// hosts counts the hosts of an address. The driver lists a host twice if it may connect with and without TLS.
func hosts(config *pgx.ConnConfig) int {
	all := map[string]bool{fmt.Sprint(config.Host, " ", config.Port): true}
	for _, f := range config.Fallbacks {
		all[fmt.Sprint(f.Host, " ", f.Port)] = true
	}
	return len(all)
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

// statements ends each statement after statementTime. pgx then drops the connection.
type statements struct{}

type endStatement struct{}

func (statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	return context.WithValue(ctx, endStatement{}, cancel)
}

func (statements) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	ctx.Value(endStatement{}).(context.CancelFunc)()
}

// silent reports whether a connection that was idle for a second does not answer. The driver then takes another.
func silent(ctx context.Context, p stdlib.ShouldPingParams) bool {
	return p.IdleDuration >= time.Second && ping(ctx, p.Conn) != nil
}

// ping checks a connection. pgx closes the connection if no answer arrives in time.
func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	return conn.Ping(ctx)
}

// openPostgres connects and migrates the database, or only checks its version.
func (s *database) openPostgres(ctx context.Context, dsn string, a Access) (err error) {
	s.postgres = true
	if s.config, err = postgresConfig(dsn, s.node); err != nil {
		return err
	}
	if a == Reading {
		s.config.ValidateConnect = nil // target_session_attrs may require a writable host
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

// findPooler detects a pooler such as pgbouncer by comparing process ids. A pooler may lose prepared statements,
// session settings and LISTEN between transactions, so Pawl works without them.
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

// connectHint explains a failed connection to an operator.
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

// connectHints maps PostgreSQL's error codes (its documentation, appendix A).
var connectHints = map[string]string{
	"3D000": "create the database, or correct its name in the config",                                     // invalid_catalog_name
	"42501": "may this user connect to this database?",                                                    // insufficient_privilege
	"42704": "correct or remove this parameter of the address in the config",                              // undefined_object
	"22023": "correct or remove this parameter of the address in the config",                              // invalid_parameter_value
	"53300": fmt.Sprintf("raise max_connections: each server uses up to %d connections", postgresConns+1), // too_many_connections
}

// isReadOnly reports whether PostgreSQL refused a write because it is read-only.
func isReadOnly(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && answer.Code == "25006" // read_only_sql_transaction
}

// reconnect closes idle connections, which may lead to a standby after a failover.
func (s *database) reconnect() {
	s.w.SetMaxIdleConns(-1)
	s.w.SetMaxIdleConns(postgresConns)
}

// Unreachable reports whether Open failed because PostgreSQL accepts no connections now. Wrong passwords and missing
// databases do not count.
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

// migrationLock is an advisory lock for migrations; the number is "pawl" in ASCII.
const migrationLock = 0x7061776c

// migratePostgres migrates over its own connections without a time limit. The migration lock belongs to a transaction,
// since a pooler could lose a session's lock.
func (s *database) migratePostgres(ctx context.Context) error {
	config := s.config.Copy()
	config.Tracer = nil
	if _, chosen := config.RuntimeParams["lock_timeout"]; !chosen && !s.pooled {
		config.RuntimeParams["lock_timeout"] = fmt.Sprint(lockTime.Milliseconds())
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if err := s.checkPool(ctx, db); err != nil {
		return err
	}
	lock, err := db.BeginTx(ctx, s.options)
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
		return fmt.Errorf("wait for another server that migrates the database: %w%s", err, s.whoMigrates(ctx))
	}
	return s.migrate(ctx, db)
}

// checkPool reports a pooler that gives too few connections at once: the lock and a migration would wait for each other.
func (s *database) checkPool(ctx context.Context, db *sql.DB) error {
	if !s.pooled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	first, err := db.BeginTx(ctx, nil)
	if err == nil {
		defer first.Rollback() // nothing to undo
		err = db.QueryRowContext(ctx, "SELECT 1").Scan(new(int))
	}
	if err != nil {
		return fmt.Errorf("the pooler gives no second connection: %w; set its pool size (default_pool_size of pgbouncer) to %d or more",
			err, postgresConns+1)
	}
	return nil
}

var errReadOnly = errors.New("PostgreSQL is read-only here: it is a standby, or default_transaction_read_only is set; " +
	"name the primary in the config, or make this one writable")

// whoMigrates names the server that holds the migration lock and how to end it.
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

// wakeChannel notifies nodes of due threads.
const wakeChannel = "pawl_due"

// listenAgain is how long Listen waits before it reconnects. Other nodes count an absent node as dead after two seconds.
const listenAgain = time.Second / 2

// notify wakes all nodes after the commit. SQLite has no other nodes.
func (s *database) notify(ctx context.Context, tx *txn) error {
	if !s.postgres {
		return nil
	}
	if err := tx.exec(ctx, "SELECT pg_notify($1, '')", wakeChannel); err != nil {
		return fmt.Errorf("notify the other nodes: %w", err)
	}
	return nil
}

// Listen calls wake whenever a node made threads due, until ctx ends. Its connection also shows others that this node
// runs; see Absent. With SQLite or a pooler it returns at once.
func (s *Store) Listen(ctx context.Context, node string, wake func()) {
	for s.watchesNodes() && ctx.Err() == nil {
		_ = s.listen(ctx, node, wake) // Listen retries, and polls continue
		_ = wait.For(ctx, listenAgain)
	}
}

func (s *Store) listen(ctx context.Context, node string, wake func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	defer s.holdsLock.Store(false)
	if _, err := conn.Exec(ctx, "LISTEN "+wakeChannel); err != nil {
		return err
	}
	if err := s.present(ctx, conn, node); err != nil {
		return err
	}
	for {
		wake() // covers earlier changes
		if err := s.awaitWake(ctx, conn); err != nil {
			return err
		}
	}
}

// awaitWake waits for a notification. It returns nil early if the connection was silent for statementTime but works.
func (s *Store) awaitWake(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	_, err := conn.WaitForNotification(waiting)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return ping(ctx, conn)
	}
	return err
}
