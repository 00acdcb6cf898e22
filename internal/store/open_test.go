package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// wantRefusal checks that opening the database fails with an error that contains all the words.
func wantRefusal(t *testing.T, dsn string, words ...string) {
	t.Helper()
	s, err := store.Open(t.Context(), dsn, store.Options{})
	if err == nil {
		s.Close()
		t.Errorf("%s was opened", dsn)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func readingStoreDoesNotWrite(t *testing.T, dsn string) {
	ctx := t.Context()
	if _, err := store.Open(ctx, dsn, store.Options{Access: store.Reading}); err == nil || !strings.Contains(err.Error(), "start pawl serve once") {
		t.Errorf("a missing database: %v", err)
	}
	s, _, _ := open(t, dsn)
	must(s.Append(ctx, issue(1), true, event("", 1)))(t)
	r := must(store.Open(ctx, dsn, store.Options{Access: store.Reading}))(t)
	defer r.Close()
	must(s.Append(ctx, issue(1), true, event("", 2)))(t)
	if got := must(r.Events(ctx, issue(1), 0))(t); len(got) != 2 {
		t.Errorf("%d events are visible next to a writer, want 2", len(got))
	}
	if _, err := r.Append(ctx, issue(1), false, event("", 3)); err == nil {
		t.Error("a reader appended")
	}
	if _, err := r.Acquire(ctx, issue(1), "reader"); err == nil {
		t.Error("a reader took a lease")
	}
	if _, err := r.Receive(ctx, thread.Delivery{GUID: "g"}); err == nil {
		t.Error("a reader stored a delivery")
	}
	check(t, s.Close())
	alone := must(store.Open(ctx, dsn, store.Options{Access: store.Reading}))(t)
	defer alone.Close()
	if got := must(alone.Events(ctx, issue(1), 0))(t); len(got) != 2 {
		t.Errorf("%d events are seen after the writer, want 2", len(got))
	}
}

func aNewerSchemaIsRefused(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	check(t, s.Close())
	db := rawDB(t, dsn)
	must(db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)"))(t)
	wantRefusal(t, dsn, "newer pawl", "install the newer version")
	must(db.Exec("DELETE FROM goose_db_version WHERE version_id = 999"))(t)
	s = must(store.Open(t.Context(), dsn, store.Options{}))(t)
	check(t, s.Close())
}

func aSchemaFromBeforeTheFirstReleaseIsRefused(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	check(t, s.Close())
	db := rawDB(t, dsn)
	must(db.Exec("DELETE FROM goose_db_version WHERE version_id > 12"))(t)
	must(db.Exec("UPDATE goose_db_version SET version_id = 11 WHERE version_id = 12"))(t)
	wantRefusal(t, dsn, "before the first release (schema 11)", "start with a new database")
	_, err := store.Open(t.Context(), dsn, store.Options{Access: store.Reading})
	if err == nil || !strings.Contains(err.Error(), "start with a new database") {
		t.Errorf("for reading: %v", err)
	}
}

// The migration keeps the data of schema version 12.
func aDatabaseOfTheFirstSchemaIsMigrated(t *testing.T, dsn string) {
	ctx := t.Context()
	s, _, _ := open(t, dsn)
	must(s.Append(ctx, issue(1), true, event("", 1)))(t)
	check(t, s.Close())
	db := rawDB(t, dsn)
	for _, undo := range []string{
		"DROP TABLE IF EXISTS nodes", "DROP INDEX threads_place", "ALTER TABLE threads DROP COLUMN place",
		"DROP TABLE IF EXISTS warm_folders", "DELETE FROM goose_db_version WHERE version_id > 12",
	} {
		must(db.Exec(undo))(t)
	}
	s = must(store.Open(ctx, dsn, store.Options{}))(t)
	defer s.Close()
	if took := must(s.Claim(ctx, "node", 1))(t); len(took) != 1 || took[0].Thread != issue(1) {
		t.Errorf("claimed %+v after the migration, want the thread", took)
	}
}

func databaseOfAnotherProgramIsRefused(t *testing.T, dsn string) {
	must(rawDB(t, dsn).Exec("CREATE TABLE customers (id INTEGER PRIMARY KEY)"))(t)
	wantRefusal(t, dsn, "another program", "database of its own")
}

func TestUnreadableFilesAreRefusedWithAHint(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	check(t, os.WriteFile(text, []byte("dear diary, this is not a database"), 0o600))
	wantRefusal(t, "sqlite:"+text, "not a SQLite database", "move this one away")
	left, err := os.ReadFile(text)
	if check(t, err); string(left) != "dear diary, this is not a database" {
		t.Errorf("the refused file contains %q now", left)
	}
	short := filepath.Join(dir, "short.db")
	check(t, os.WriteFile(short, []byte("SQLite format 3\x00 and then noise"), 0o600))
	wantRefusal(t, "sqlite:"+short, "restore a backup")
	wantRefusal(t, "sqlite:"+filepath.Join(dir, "no", "such.db"), "create the directory")
	wantRefusal(t, "sqlite:"+dir, dir)
	wantRefusal(t, "sqlite:", "needs a file")
	wantRefusal(t, "sqlite::memory:", "needs a file")
	wantRefusal(t, "mysql://localhost", "sqlite:PATH")
	wantRefusal(t, "postgres://u:secret@/%zz", "want postgres://")
}

func TestPasswordIsNotShown(t *testing.T) {
	for _, dsn := range []string{"postgres://u:secret@/%zz", "postgres://u:secret@127.0.0.1:1/db?connect_timeout=1"} {
		if _, err := store.Open(t.Context(), dsn, store.Options{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

func TestDamagedFileIsRefused(t *testing.T) {
	path := fullFile(t)
	damage(t, path)
	wantRefusal(t, "sqlite:"+path, "restore a backup")
}

func TestSecondWriterIsRefusedWithAHint(t *testing.T) {
	t.Parallel() // waits for the lock
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, _, _ := open(t, "sqlite:"+path)
	link, other := filepath.Join(t.TempDir(), "link.db"), filepath.Join(t.TempDir(), "other.db")
	check(t, errors.Join(os.Symlink(path, link), os.Link(path, other)))
	var all sync.WaitGroup
	for name, fuser := range map[string]string{path: path, link: path, other: other} {
		all.Go(func() { wantRefusal(t, "sqlite:"+name, "in use by another process (fuser "+fuser, "stop it first") })
	}
	all.Wait()
	check(t, os.Remove(other))
	must(s.Append(t.Context(), issue(1), false, event("", "the first one goes on")))(t)
	check(t, s.Close())
	s = must(store.Open(t.Context(), "sqlite:"+link, store.Options{}))(t)
	check(t, s.Close())
}

func TestEveryCommitReachesTheDisk(t *testing.T) {
	s, _, _ := open(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	check(t, s.UpdateShared(t.Context(), "limits", func(time.Time, []byte) []byte { return []byte("{}") }))
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "3000"} {
		var got string
		check(t, s.DB().QueryRow("PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestDatabaseFilesArePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, _, _ := open(t, "sqlite:"+path)
	must(s.Append(t.Context(), issue(1), false, event("", 1)))(t)
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		if info := must(os.Stat(p))(t); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", p, info.Mode())
		}
	}
}

func TestReadOnlyFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pawl.db")
	s, _, _ := open(t, "sqlite:"+path)
	check(t, s.Close())
	check(t, os.Chmod(path, 0o444))
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		check(t, os.Chmod(d, 0o777))
	}
	if os.Geteuid() != 0 {
		wantRefusal(t, "sqlite:"+path, "write access")
		return
	}
	// Root may write any file, so one locked OS thread drops that right and ends afterwards.
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); errno != 0 {
			t.Error(errno)
			return
		}
		wantRefusal(t, "sqlite:"+path, "write access")
	}()
	<-done
}

func TestWritesDoNotBlockAfterClose(t *testing.T) {
	s, _, _ := open(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	check(t, s.Close())
	if _, err := s.Receive(context.Background(), thread.Delivery{GUID: "late"}); err == nil {
		t.Error("a closed store accepted a delivery")
	}
	if _, err := s.Append(context.Background(), issue(1), false, event("", 1)); err == nil || errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a closed store appended: %v", err)
	}
	check(t, s.Close())
}

// Before SQLite 3.51.3, resetting a write-ahead log could corrupt the file.
func TestLinkedSQLiteIsNewEnough(t *testing.T) {
	s, _, _ := open(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	var version string
	check(t, s.DB().QueryRow("SELECT sqlite_version()").Scan(&version))
	var v [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || slices.Compare(v[:], []int{3, 51, 3}) < 0 {
		t.Errorf("SQLite %s (%v) is linked in; want 3.51.3 or newer: take a newer modernc.org/sqlite", version, err)
	}
}
