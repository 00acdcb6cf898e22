package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/pawlbot/pawl/internal/crash"
)

//go:embed migrations
var migrations embed.FS

func (s *Store) goose() (*goose.Provider, error) {
	dir, dialect := "migrations/sqlite", goose.DialectSQLite3
	if s.postgres {
		dir, dialect = "migrations/postgres", goose.DialectPostgres
	}
	files, err := fs.Sub(migrations, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, s.w, files, goose.WithDisableGlobalRegistry(true))
}

// migrate brings the schema, ours and then River's, to what this program knows.
// It refuses one that a newer program wrote.
func (s *Store) migrate(ctx context.Context, logger *slog.Logger) error {
	if err := s.checkOurs(ctx); err != nil {
		return err
	}
	p, err := s.goose()
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if err := s.checkNewer(ctx, p); err != nil {
		return err
	}
	crash.Point("migrating")
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	crash.Point("migrated")
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	var driver riverdriver.Driver[*sql.Tx] = riversqlite.New(s.w)
	if s.postgres {
		driver = riverdatabasesql.New(s.w)
	}
	if err := migrateRiver(ctx, driver, logger); err != nil {
		return err
	}
	return s.dropDeliveryJobs(ctx)
}

// dropDeliveryJobs removes the jobs that deliveries had in older versions; nobody
// would fetch them any more.
func (s *Store) dropDeliveryJobs(ctx context.Context) error {
	if _, err := s.w.ExecContext(ctx, "DELETE FROM river_job WHERE queue = 'deliveries'"); err != nil {
		return fmt.Errorf("remove the deliveries' old jobs: %w", err)
	}
	return nil
}

func migrateRiver(ctx context.Context, driver riverdriver.Driver[*sql.Tx], logger *slog.Logger) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	if _, err := m.ExistingVersions(ctx); err != nil { // also for a version that this River does not know
		return fmt.Errorf("read the queue's schema: %w; if a newer pawl wrote the database, install the newer version", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	crash.Point("queue_migrated")
	return nil
}

// checkOurs refuses a database with tables of something else in it.
func (s *Store) checkOurs(ctx context.Context) error {
	query := `SELECT count(*), coalesce(sum(CASE WHEN name = 'goose_db_version' THEN 1 ELSE 0 END), 0)
		FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
	if s.postgres {
		query = `SELECT count(*), coalesce(sum(CASE WHEN table_name = 'goose_db_version' THEN 1 ELSE 0 END), 0)
			FROM information_schema.tables WHERE table_schema = current_schema()`
	}
	var tables, goose int
	if err := s.r.QueryRowContext(ctx, query).Scan(&tables, &goose); err != nil {
		return err
	}
	if tables > 0 && goose == 0 {
		return fmt.Errorf("the database holds tables of another program; give Pawl a database of its own")
	}
	return nil
}

// checkCurrent is for readers: the schema must be the one this program knows.
func (s *Store) checkCurrent(ctx context.Context) error {
	p, err := s.goose()
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	version, err := s.schemaVersion(ctx)
	if err != nil && isBusy(err) {
		return err // tables may well be there
	}
	if err != nil {
		return fmt.Errorf("the schema cannot be read: %w; start pawl serve once, it creates the tables", err)
	}
	known := newest(p)
	if version > known {
		return newerError(version, known)
	}
	if version < known {
		return fmt.Errorf("the schema is at version %d, this pawl wants %d; start pawl serve once, it migrates the database", version, known)
	}
	return nil
}

func (s *Store) schemaVersion(ctx context.Context) (version int64, err error) {
	err = s.r.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version)
	return version, err
}

func (s *Store) checkNewer(ctx context.Context, p *goose.Provider) error {
	version, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if known := newest(p); version > known {
		return newerError(version, known)
	}
	return nil
}

func newest(p *goose.Provider) int64 {
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}

func newerError(found, known int64) error {
	return fmt.Errorf("the database was written by a newer pawl (schema %d, this one knows %d); install the newer version, or restore a backup made before it", found, known)
}
