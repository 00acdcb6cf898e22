package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlbot/pawl/internal/wait"
)

const sqliteReaders = 4

// commandWait limits an operator command's wait for the write lock: a busy server frees it only for moments. lockWait
// limits other writes; lockWait and storeTime together stay below GitHub's 10 s.
const (
	lockWait    = 3 * time.Second
	commandWait = 30 * time.Second
)

// openSQL opens `conns` connections to a file. Commits are synced before the answer (FULL).
func openSQL(path string, wait time.Duration, conns int, params ...string) (*sql.DB, error) {
	v := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()),
		"synchronous(FULL)",
		"foreign_keys(1)",
	}}
	for i := 0; i < len(params); i += 2 {
		v.Add(params[i], params[i+1])
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: v.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// sqliteFile is the engine of SQLite: this process has the file and the clock for itself.
type sqliteFile struct {
	now func() time.Time
	// turn orders the writes to the one connection: database/sql would pick at random, and a delivery could wait long.
	turn chan struct{}
}

func (f *sqliteFile) Now() time.Time      { return f.now() }
func (f *sqliteFile) Skew() time.Duration { return 0 }

func (f *sqliteFile) Turn(ctx context.Context) (end func(), err error) {
	select {
	case f.turn <- struct{}{}:
		return func() { <-f.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *sqliteFile) Enter(_ context.Context, _ *sql.Tx, schema int64) (time.Time, int64, error) {
	return f.now(), schema, nil
}

func (*sqliteFile) Serialize(context.Context, *sql.Tx, string) error { return nil } // the file's lock orders them

func (*sqliteFile) Notify(context.Context, *sql.Tx) error { return nil }

func (*sqliteFile) Failed(err error) (hint string, last bool) { return diagnose(err) }

func (s *database) openSQLite(ctx context.Context, path string) (err error) {
	if path, err = sqlitePath(path); err != nil {
		return err
	}
	if s.file, err = createFile(ctx, path); err != nil {
		return err
	}
	if s.w, err = openSQL(path, lockWait, 1, "_txlock", "immediate"); err != nil {
		return err
	}
	if s.r, err = openSQL(path, lockWait, sqliteReaders, "_query_only", "1"); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.checkSQLite, s.migrateSQLite, s.resumeWork} {
		if err := step(ctx); err != nil {
			return explain(path, err)
		}
	}
	return nil
}

func (s *database) migrateSQLite(ctx context.Context) error { return s.migrate(ctx, s.w) }

// resumeWork makes interrupted work and failed deliveries due: no other process works on this file.
func (s *database) resumeWork(ctx context.Context) error {
	return s.write(ctx, func(tx *txn) error {
		if err := tx.exec(ctx, "UPDATE deliveries SET retry_at = 1 WHERE retry_at > 1"); err != nil {
			return err
		}
		return tx.exec(ctx, freeLeases+" WHERE lease_until > 0", micros(tx.now))
	})
}

func (s *database) joinSQLite(ctx context.Context, path string, a Access) (err error) {
	mode := "rw"
	if a == Reading {
		mode = "ro"
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("open %s: %w; start pawl serve once, it creates the database", path, err)
	}
	if s.r, err = openSQL(path, lockWait, sqliteReaders, "mode", mode); err != nil {
		return err
	}
	s.w = s.r
	if a == Writing {
		// Take the lock first: after a read, a transaction fails if the server wrote in between.
		if s.w, err = openSQL(path, commandWait, 1, "mode", mode, "_txlock", "immediate"); err != nil {
			return err
		}
	}
	return explain(path, s.checkCurrent(ctx))
}

// sqlitePath makes the path absolute and resolves links.
func sqlitePath(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return "", fmt.Errorf("database %q: Pawl needs a file; write sqlite:PATH in the config", "sqlite:"+path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("open %s: %w; create the directory first", path, err)
	}
	abs = filepath.Join(dir, filepath.Base(abs))
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	return abs, nil
}

// createFile opens the database file, creates it for its owner only, and locks it for one writing process. The kernel
// releases the lock when the process ends. SQLite's own locks (fcntl) would end with the first closed descriptor.
func createFile(ctx context.Context, path string) (*os.File, error) {
	f, err := wait.Lock(ctx, path, lockPatience)
	switch {
	case errors.Is(err, wait.ErrLocked):
		return nil, fmt.Errorf("the database is in use by another process (fuser %s names it); "+
			"stop it first, or give this one a database of its own", path)
	case err != nil:
		return nil, fmt.Errorf("open the database for writing: %w; put it on a local disk, "+
			"and give the user that runs pawl write access to the file and its directory", err)
	}
	return f, nil
}

// stillThere ends all writes once the file or its log was removed or replaced: a restart would not find later writes.
func (s *database) stillThere() error {
	if s.file == nil || !s.serving {
		return nil
	}
	own, err := s.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(s.file.Name())
	if err == nil {
		_, err = os.Stat(s.file.Name() + "-wal")
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && os.SameFile(own, named):
		return nil
	}
	return s.end(fmt.Errorf("the database %s or its log (-wal) was removed or replaced while pawl used it; "+
		"put it back where it was, or restore a backup, and start pawl again", s.file.Name()))
}

// checkSQLite checks the whole file for damage, turns on write-ahead logging, and tests a write.
func (s *database) checkSQLite(ctx context.Context) error {
	var mode, damage string
	if err := s.w.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&damage); err != nil {
		return err
	}
	if damage != "ok" {
		return fmt.Errorf("the file is damaged (%s); %s", strings.TrimSpace(damage), hintDamaged)
	}
	if err := s.w.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("write-ahead logging cannot be turned on (journal mode %s); put the file on a local disk", mode)
	}
	return (&shared{s}).Ping(ctx)
}

const hintDamaged = "restore a backup, or move it away and start again"

// diagnose returns the remedy for an SQLite error, and whether writing must stop.
func diagnose(err error) (hint string, last bool) {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return "", false
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC:
		return "the disk may be failing: look at the kernel's log, then start pawl again", true
	}
	switch e.Code() & 0xff { // primary code
	case sqlite3.SQLITE_CORRUPT:
		return hintDamaged, true
	case sqlite3.SQLITE_NOTADB:
		return "this is not a SQLite database, or it is damaged: name another file in the config, " +
			"or move this one away, or restore a backup", true
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return "give the user that runs pawl write access to the file and its directory", false
	case sqlite3.SQLITE_BUSY:
		return "another program holds the file, close it", false
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return "look at the disk: is it full or failing?", false
	}
	return "", false
}

func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	if hint, _ := diagnose(err); hint != "" {
		return fmt.Errorf("open %s: %w; %s", path, err, hint)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// lockPatience limits the wait for a lock: a killed server's child may hold it until the child calls exec.
const lockPatience = 2 * time.Second
