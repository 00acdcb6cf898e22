package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlbot/pawl/internal/crash"
)

//go:embed migrations
var migrations embed.FS

// goose has the migrations of this program, and the version of the newest of them.
func (s *database) goose() (p *goose.Provider, newest int64, err error) {
	defer s.wrap(&err, "read the migrations")
	dir, dialect := "migrations/sqlite", goose.DialectSQLite3
	if s.postgres {
		dir, dialect = "migrations/postgres", goose.DialectPostgres
	}
	files, err := fs.Sub(migrations, dir)
	if err != nil {
		return nil, 0, err
	}
	if p, err = goose.NewProvider(dialect, s.w, files, goose.WithDisableGlobalRegistry(true)); err != nil {
		return nil, 0, err
	}
	sources := p.ListSources()
	return p, sources[len(sources)-1].Version, nil
}

// migrate brings the tables to what this program knows, and refuses those of a newer one.
func (s *database) migrate(ctx context.Context) error {
	if err := s.checkOurs(ctx); err != nil {
		return err
	}
	p, known, err := s.goose()
	if err != nil {
		return err
	}
	version, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if version > known {
		return newerError(version, known)
	}
	crash.Point("migrating")
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	crash.Point("migrated")
	return nil
}

// checkOurs refuses a database with tables of something else in it.
func (s *database) checkOurs(ctx context.Context) error {
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
func (s *database) checkCurrent(ctx context.Context) error {
	_, known, err := s.goose()
	if err != nil {
		return err
	}
	var version int64
	err = s.r.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version)
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_BUSY {
		return err // tables may well be there
	}
	if err != nil {
		return fmt.Errorf("the schema cannot be read: %w; start pawl serve once, it creates the tables", err)
	}
	if version > known {
		return newerError(version, known)
	}
	if version < known {
		return fmt.Errorf("the schema is at version %d, this pawl wants %d; start pawl serve once, it migrates the database", version, known)
	}
	return nil
}

func newerError(found, known int64) error {
	return fmt.Errorf("the database was written by a newer pawl (schema %d, this one knows %d); install the newer version, or restore a backup made before it", found, known)
}
