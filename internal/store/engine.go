package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pawlbot/pawl/internal/store/postgres"
)

// engine hides the databases' differences. A SQLite file has one process and its clock; PostgreSQL has several.
type engine interface {
	// Now returns the database's time, and Skew how far its clock is ahead of this process's.
	Now() time.Time
	Skew() time.Duration
	// Turn waits until this process may begin a writing transaction; call end after it.
	Turn(ctx context.Context) (end func(), err error)
	// Enter prepares a new transaction. It returns the database's time and its schema, which another program may have
	// changed.
	Enter(ctx context.Context, tx *sql.Tx, schema int64) (now time.Time, found int64, err error)
	// Serialize runs transactions with the same name one after another.
	Serialize(ctx context.Context, tx *sql.Tx, name string) error
	// Notify wakes the other nodes after the commit.
	Notify(ctx context.Context, tx *sql.Tx) error
	// Failed examines a statement's error. It returns the remedy, and whether writing must stop.
	Failed(err error) (hint string, last bool)
}

var _, _ engine = (*sqliteFile)(nil), (*postgres.DB)(nil)

// dialect holds the SQL that differs between the databases.
type dialect struct {
	goose      goose.Dialect
	migrations string // folder
	// tables counts all tables, and the migration tool's version table.
	tables string
	// elements selects the strings of a JSON array.
	elements string
	// rowLocks reports whether rows are locked. SQLite locks the whole file.
	rowLocks bool
	// prepares reports whether the store prepares its most frequent queries. SQLite takes longer to parse than to run
	// them; PostgreSQL's driver prepares by itself.
	prepares bool
}

var inSQLite = dialect{
	goose:      goose.DialectSQLite3,
	migrations: "migrations/sqlite",
	tables: `SELECT count(*), coalesce(sum(CASE WHEN name = 'goose_db_version' THEN 1 ELSE 0 END), 0)
		FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
	elements: "SELECT value FROM json_each($1)",
	prepares: true,
}

var inPostgreSQL = dialect{
	goose:      goose.DialectPostgres,
	migrations: "migrations/postgres",
	tables: `SELECT count(*), coalesce(sum(CASE WHEN table_name = 'goose_db_version' THEN 1 ELSE 0 END), 0)
		FROM information_schema.tables WHERE table_schema = current_schema()`,
	elements: "SELECT json_array_elements_text($1)",
	rowLocks: true,
}

// openPostgres connects and migrates the database, or only checks its version.
func (s *Store) openPostgres(ctx context.Context, dsn string, o Options) error {
	db, err := postgres.Open(ctx, dsn, postgres.Options{Node: o.Node, ReadOnly: o.Access == Reading, Now: o.Now})
	if err != nil {
		return err
	}
	s.engine, s.dialect, s.options = db, inPostgreSQL, db.TxOptions
	s.w, s.r = db.DB, db.DB
	s.nodes = db.Nodes(leases{s.database}, o.Self)
	if o.Access != Serving {
		return s.checkCurrent(ctx)
	}
	return db.Migrate(ctx, s.migrate)
}

// Unreachable reports whether Open failed because PostgreSQL accepts no connections now. Wrong passwords and missing
// databases do not count.
func Unreachable(err error) bool { return postgres.Unreachable(err) }

// Nodes returns the nodes that share the database; nil with SQLite, which has one.
func (s *Store) Nodes() *postgres.Nodes { return s.nodes }

// Listen calls wake whenever a node made threads due, until ctx ends. With SQLite it returns at once.
func (s *Store) Listen(ctx context.Context, node string, wake func()) {
	if s.nodes != nil {
		s.nodes.Listen(ctx, node, wake)
	}
}

// leases is the part of the store that postgres.Nodes needs.
type leases struct{ *database }

func (s leases) Write(ctx context.Context, fn func(*sql.Tx, time.Time) error) error {
	return s.write(ctx, func(tx *txn) error { return fn(tx.Tx, tx.now) })
}

func (s leases) Free(ctx context.Context, node string, fn func(*sql.Tx, time.Time) error) (freed int, err error) {
	err = s.write(ctx, func(tx *txn) error {
		query := freeLeases + ` WHERE id IN (SELECT id FROM threads
			WHERE lease_until > 0 AND lease_owner = $2 FOR UPDATE SKIP LOCKED)`
		if freed, err = tx.change(ctx, query, micros(tx.now), node); err != nil {
			return err
		}
		waiting, err := tx.change(ctx, "UPDATE threads SET place = '' WHERE place <> ''")
		if err != nil {
			return err
		}
		tx.due = freed+waiting > 0
		return fn(tx.Tx, tx.now)
	})
	return freed, err
}
