package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/store/postgres"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Queue receives the work that a committed transaction left for this process. It must not block; refused work stays due
// in its row.
type Queue interface {
	// Committed reports whether threads became due, and this process's deliveries.
	Committed(threads bool, deliveries []thread.Delivery)
}

// Options configures Open; the zero value serves and uses the system clock.
type Options struct {
	Access Access
	Now    func() time.Time
	// Self is the node that opens the store; it claims only threads whose attempts it serves. Nil means all threads.
	Self *policy.Node
	// Prefer is how long this node leaves a due attempt to the node with warm caches.
	Prefer time.Duration
	// Node is the node's name, which PostgreSQL shows with its connections. Empty for a command that takes no leases.
	Node string
	// Committed is called after each writing transaction, unless nil.
	Committed func()
}

// Store is an open database, safe for concurrent use.
type Store struct {
	*database
	*threads
	*shared
	*deliveries
	nodes *postgres.Nodes // nil with SQLite
}

var _ thread.Store = (*Store)(nil)

type Access int

const (
	// Serving creates and migrates the database. A SQLite file stays locked until Close.
	Serving Access = iota
	// Writing is for an operator's command while a server runs. It does not lock the file, migrates nothing and stores
	// no deliveries.
	Writing
	// Reading writes and migrates nothing. It does not lock the file.
	Reading
)

// Open opens "sqlite:PATH" or "postgres://…". Errors say what to do.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Committed == nil {
		o.Committed = func() {}
	}
	s := newStore(o)
	var err error
	path, isFile := strings.CutPrefix(dsn, "sqlite:")
	switch {
	case isFile && o.Access == Serving:
		err = s.openSQLite(ctx, path)
	case isFile:
		err = s.joinSQLite(ctx, path, o.Access)
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"):
		err = s.openPostgres(ctx, dsn, o)
	default:
		err = errDSN
	}
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		s.closeDB()
		return nil, err
	}
	s.serving = o.Access == Serving
	return s, nil
}

var errDSN = errors.New(`database: want "sqlite:PATH" or "postgres://user@host/name"; correct "database" in the config`)

func newStore(o Options) *Store {
	db := &database{
		engine:    &sqliteFile{now: o.Now, turn: make(chan struct{}, 1)},
		dialect:   inSQLite,
		fatal:     make(chan error, 1),
		committed: o.Committed,
		self:      o.Self,
		prefer:    o.Prefer,
	}
	all := &shared{db}
	return &Store{
		database:   db,
		shared:     all,
		threads:    &threads{database: db, shared: all},
		deliveries: &deliveries{database: db},
	}
}

// UseQueue sets the queue, once, before any write.
func (s *Store) UseQueue(q Queue) { s.queue = q }

// Close closes the database. Stop the queue first. Closing again does nothing.
func (s *Store) Close() error { return s.closeDB() }

//go:embed migrations
var migrations embed.FS

// firstVersion is the schema of v0.1.0. Older schemas cannot be migrated.
const firstVersion = 12

// goose returns this program's migrations, and the newest version.
func (s *database) goose(db *sql.DB) (p *goose.Provider, newest int64, err error) {
	defer s.wrap(&err, "read the migrations")
	files, err := fs.Sub(migrations, s.dialect.migrations)
	if err != nil {
		return nil, 0, err
	}
	if p, err = goose.NewProvider(s.dialect.goose, db, files, goose.WithDisableGlobalRegistry(true)); err != nil {
		return nil, 0, err
	}
	sources := p.ListSources()
	return p, sources[len(sources)-1].Version, nil
}

// migrate creates or updates the tables. It refuses newer and pre-release versions.
func (s *database) migrate(ctx context.Context, db *sql.DB) error {
	if err := s.checkOurs(ctx); err != nil {
		return err
	}
	p, known, err := s.goose(db)
	if err != nil {
		return err
	}
	version, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if err := checkVersion(version, known); err != nil {
		return err
	}
	crash.Point("migrating")
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	crash.Point("migrated")
	s.schema = known
	return nil
}

// checkOurs refuses a database with another program's tables.
func (s *database) checkOurs(ctx context.Context) error {
	var tables, goose int
	if err := s.r.QueryRowContext(ctx, s.dialect.tables).Scan(&tables, &goose); err != nil {
		return err
	}
	if tables > 0 && goose == 0 {
		return fmt.Errorf("the database holds tables of another program; give Pawl a database of its own")
	}
	return nil
}

// checkCurrent requires this program's schema, for processes that do not migrate.
func (s *database) checkCurrent(ctx context.Context) error {
	_, known, err := s.goose(s.w)
	if err != nil {
		return err
	}
	var version int64
	const query = "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"
	err = s.r.QueryRowContext(ctx, query).Scan(&version)
	if hint, _ := s.engine.Failed(err); hint != "" {
		return err // the tables may exist
	}
	if err != nil {
		return fmt.Errorf("the schema cannot be read: %w; start pawl serve once, it creates the tables", err)
	}
	if err := checkVersion(version, known); err != nil {
		return err
	}
	if version < known {
		return fmt.Errorf("the schema is at version %d, this pawl wants %d; "+
			"start pawl serve once, it migrates the database", version, known)
	}
	s.schema = known
	return nil
}

// checkVersion refuses a schema that this program can neither use nor migrate.
func checkVersion(found, known int64) error {
	switch {
	case found > known:
		return fmt.Errorf("the database was written by a newer pawl (schema %d, this one knows %d); "+
			"install the newer version, or restore a backup made before it", found, known)
	case found > 0 && found < firstVersion: // 0 is a database without tables
		return fmt.Errorf("the database was written by a pawl from before the first release (schema %d), "+
			"which cannot be migrated; start with a new database: name another one in the config, "+
			"or move this one away", found)
	}
	return nil
}
