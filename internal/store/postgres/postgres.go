// Package postgres connects the store to PostgreSQL, which several nodes may share. It has what SQLite's single process
// does not need: time limits, poolers, the migration lock, the database's clock, notifications, and the list of nodes.
//
//	postgres.go      connections and their time limits
//	migrate.go       one node migrates at a time
//	transaction.go   settings and locks of a transaction, the clock
//	nodes.go         LISTEN and NOTIFY, the other nodes
package postgres

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
)

// maxConns limits a node's connections: workers, heartbeats, claims and pages.
const maxConns = 16

// PostgreSQL's time limits, our choice. Without them a silent connection (failover, lost NAT entry) would hold its
// caller for hours.
const (
	// connectTime limits connecting; the hosts of an address share it. It leaves a second of the 5 s for storing a
	// delivery. connect_timeout in the address replaces it, for each host.
	connectTime = 4 * time.Second
	// pingTime limits the check of a pooled connection.
	pingTime = time.Second
	// statementTime limits a statement without an earlier deadline. Pawl's statements take milliseconds.
	statementTime = 15 * time.Second
	// silentTime is how long the kernel waits for a silent peer.
	silentTime = 10 * time.Second
	// lockTime limits a migration's wait for a lock; after it the start fails. lock_timeout in the address replaces it.
	lockTime = time.Minute
)

// connectionName names a node's connections; PostgreSQL keeps 63 bytes. The end of a node's name identifies it.
func connectionName(node string) string {
	return strings.TrimSpace("pawl " + node[max(0, len(node)-connectionNameKeeps):])
}

const connectionNameKeeps = 58

// parse parses an address. Errors do not show it, since it may hold a password.
func parse(dsn, node string) (*pgx.ConnConfig, error) {
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

// Options configures Open.
type Options struct {
	Node     string // PostgreSQL shows it with the connections
	ReadOnly bool
	Now      func() time.Time // this process's clock
}

// DB is a pool of connections. It implements the store's engine for PostgreSQL.
type DB struct {
	*sql.DB
	// TxOptions are for every transaction.
	TxOptions *sql.TxOptions

	config *pgx.ConnConfig
	pooled bool // a pooler may change the session between transactions
	clock  clock
}

// Open connects to a database.
func Open(ctx context.Context, dsn string, o Options) (_ *DB, err error) {
	db := &DB{
		TxOptions: &sql.TxOptions{Isolation: sql.LevelReadCommitted, ReadOnly: o.ReadOnly},
		clock:     clock{own: o.Now},
	}
	if db.config, err = parse(dsn, o.Node); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		db.config.ValidateConnect = nil // target_session_attrs may require a writable host
	}
	if err := db.findPooler(ctx); err != nil {
		return nil, err
	}
	db.DB = stdlib.OpenDB(*db.config, stdlib.OptionShouldPing(silent))
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	if err := db.readClock(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// findPooler detects a pooler such as pgbouncer by comparing process ids. A pooler may lose prepared statements,
// session settings and LISTEN between transactions, so Pawl works without them.
func (db *DB) findPooler(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, db.config.Copy())
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w; %s", err, connectHint(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var pid uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w; %s", err, connectHint(err))
	}
	if db.pooled = pid != conn.PgConn().PID(); db.pooled {
		db.config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
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
	"3D000": "create the database, or correct its name in the config",                                // invalid_catalog_name
	"42501": "may this user connect to this database?",                                               // insufficient_privilege
	"42704": "correct or remove this parameter of the address in the config",                         // undefined_object
	"22023": "correct or remove this parameter of the address in the config",                         // invalid_parameter_value
	"53300": fmt.Sprintf("raise max_connections: each server uses up to %d connections", maxConns+1), // too_many_connections
}

// isReadOnly reports whether PostgreSQL refused a write because it is read-only.
func isReadOnly(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && answer.Code == "25006" // read_only_sql_transaction
}

// Failed examines a statement's error. If PostgreSQL is read-only, Failed closes idle connections, which may lead to a
// standby after a failover. No PostgreSQL error stops all writes.
func (db *DB) Failed(err error) (hint string, last bool) {
	if isReadOnly(err) {
		db.SetMaxIdleConns(-1)
		db.SetMaxIdleConns(maxConns)
	}
	return "", false
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
