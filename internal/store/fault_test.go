package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// receive stores a delivery of n incompressible bytes.
func receive(ctx context.Context, s *store.Store, guid string, n int) error {
	payload := make([]byte, n)
	if _, err := rand.Read(payload); err != nil {
		return err
	}
	_, err := s.Receive(ctx, thread.Delivery{GUID: guid, Event: "ping", Payload: payload, ReceivedAt: time.Now()})
	return err
}

// wantCode checks for a SQLite error with this primary code, and that the error is not fatal.
func wantCode(t *testing.T, s *store.Store, err error, code int) {
	t.Helper()
	if e, ok := errors.AsType[*sqlite.Error](err); !ok || e.Code()&0xff != code {
		t.Errorf("got %v, want SQLite's code %d", err, code)
	}
	select {
	case err := <-s.Fatal():
		t.Errorf("fatal: %v", err)
	default:
	}
}

// works checks that every acknowledged delivery is stored, and that the store accepts more.
func works(t *testing.T, s *store.Store, answered ...string) {
	t.Helper()
	check(t, receive(t.Context(), s, fmt.Sprint("after", time.Now().UnixNano()), 10))
	must(s.Append(t.Context(), issue(1), true, event("", "after")))(t)
	for _, guid := range answered {
		if _, err := s.Delivery(t.Context(), guid); err != nil {
			t.Error(err)
		}
	}
}

func TestFullDatabaseRefusesDeliveriesUntilThereIsRoom(t *testing.T) {
	s, _, _ := open(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	check(t, receive(t.Context(), s, "before", 10))
	var pages int
	check(t, s.DB().QueryRow("PRAGMA page_count").Scan(&pages))
	must(s.DB().Exec(fmt.Sprintf("PRAGMA max_page_count=%d", pages+2)))(t)
	wantCode(t, s, receive(t.Context(), s, "large", 1<<20), sqlite3.SQLITE_FULL)
	if _, err := s.Delivery(t.Context(), "large"); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("a refused delivery: %v, want ErrNotFound", err)
	}
	must(s.DB().Exec("PRAGMA max_page_count=1000000"))(t)
	check(t, receive(t.Context(), s, "large", 1<<20))
	works(t, s, "before", "large")
}

// tmpfs mounts a file system of 8 MB, which only root may do.
func tmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("pawl", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("a small file system cannot be mounted here (it takes root): %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func TestFullDiskRefusesDeliveriesUntilThereIsRoom(t *testing.T) {
	dir := tmpfs(t)
	s, _, _ := open(t, "sqlite:"+filepath.Join(dir, "pawl.db"))
	check(t, receive(t.Context(), s, "before", 10))
	filler := filepath.Join(dir, "filler")
	f := must(os.Create(filler))(t)
	for err := error(nil); err == nil; _, err = f.Write(make([]byte, 4096)) {
	}
	check(t, f.Close())
	var answered []string
	var full error
	for n := 0; full == nil && n < 100; n++ {
		guid := fmt.Sprint("full", n)
		if full = receive(t.Context(), s, guid, 100<<10); full == nil {
			answered = append(answered, guid)
		}
	}
	wantCode(t, s, full, sqlite3.SQLITE_FULL)
	// SQLite reuses the space of its log, so small deliveries are accepted for a while. Once even the smallest is refused,
	// Ping fails.
	for n, err := 0, error(nil); err == nil; n++ {
		guid := fmt.Sprint("small", n)
		if err = receive(t.Context(), s, guid, 10); err == nil {
			answered = append(answered, guid)
		}
	}
	for range 3 {
		wantCode(t, s, s.Ping(t.Context()), sqlite3.SQLITE_FULL)
	}
	if _, err := s.Append(t.Context(), issue(1), true, event("", strings.Repeat("x", 1<<20))); err == nil {
		t.Error("an event was appended to a full disk")
	}
	must(s.Deliveries(t.Context(), 10))(t) // reads still work
	check(t, os.Remove(filler))
	check(t, s.Ping(t.Context()))
	works(t, s, append(answered, "before")...)
	check(t, s.Close())
	again, _, _ := open(t, "sqlite:"+filepath.Join(dir, "pawl.db"))
	works(t, again, append(answered, "before")...)
}

func TestReadOnlyFileSystemIsRefused(t *testing.T) {
	dir := tmpfs(t)
	dsn := "sqlite:" + filepath.Join(dir, "pawl.db")
	s, _, _ := open(t, dsn)
	must(s.Append(t.Context(), issue(1), false, event("", 1)))(t)
	check(t, s.Close())
	check(t, syscall.Mount("pawl", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=8m"))
	wantRefusal(t, dsn, "read-only file system", "write access")
	check(t, syscall.Mount("pawl", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"))
	s, _, _ = open(t, dsn)
	works(t, s)
}

func TestLockedDatabaseRefusesDeliveriesUntilItIsFree(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
	s, _, _ := open(t, dsn)
	check(t, receive(t.Context(), s, "before", 10))
	must(s.DB().Exec("PRAGMA busy_timeout=20"))(t) // instead of 3 s
	other := must(rawDB(t, dsn).Conn(t.Context()))(t)
	must(other.ExecContext(t.Context(), "BEGIN IMMEDIATE"))(t)
	wantCode(t, s, receive(t.Context(), s, "locked", 10), sqlite3.SQLITE_BUSY)
	wantCode(t, s, s.Ping(t.Context()), sqlite3.SQLITE_BUSY)
	must(s.Deliveries(t.Context(), 10))(t) // reads still work
	must(other.ExecContext(t.Context(), "ROLLBACK"))(t)
	check(t, receive(t.Context(), s, "locked", 10))
	works(t, s, "before", "locked")
}

func TestDatabaseLockedByAnotherProgramIsRefused(t *testing.T) {
	t.Parallel() // waits for the lock
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, _, _ := open(t, "sqlite:"+path)
	check(t, s.Close())
	other := must(rawDB(t, "sqlite:"+path).Conn(t.Context()))(t)
	must(other.ExecContext(t.Context(), "PRAGMA locking_mode=EXCLUSIVE"))(t)
	must(other.ExecContext(t.Context(), "BEGIN EXCLUSIVE"))(t)
	var both sync.WaitGroup
	both.Go(func() { wantRefusal(t, "sqlite:"+path, "another program holds the file, close it") })
	_, err := store.Open(t.Context(), "sqlite:"+path, store.Options{Access: store.Reading})
	both.Wait()
	if err == nil || !strings.Contains(err.Error(), "another program holds the file, close it") || strings.Contains(err.Error(), "creates the tables") {
		t.Errorf("for reading: %v; want the error about another program, not about tables", err)
	}
}

func TestDamageFoundWhileInUseEndsAllWrites(t *testing.T) {
	path := fullFile(t)
	s, _, _ := open(t, "sqlite:"+path)
	damage(t, path)
	must(s.DB().Exec("PRAGMA shrink_memory"))(t) // drop cached pages
	var found error
	for n := 0; found == nil && n < 200; n++ {
		_, found = s.Append(t.Context(), issue(n), true, event("", 1))
	}
	wantFatal(t, s, found, "restore a backup")
}

// fullFile returns a closed database with much data.
func fullFile(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pawl.db")
	s, _, _ := open(t, "sqlite:"+path)
	for n := range 200 {
		must(s.Append(t.Context(), issue(n), false, event("", strings.Repeat("x", 1000))))(t)
	}
	check(t, s.Close()) // moves the log into the file
	return path
}

// damage writes noise over all but the first pages.
func damage(t *testing.T, path string) {
	t.Helper()
	const sound = 2 * 4096
	f := must(os.OpenFile(path, os.O_RDWR, 0))(t)
	size := must(f.Stat())(t).Size()
	must(f.WriteAt([]byte(strings.Repeat("noise ", int(size-sound)/6)), sound))(t)
	check(t, f.Close())
}

func TestRemovedFileEndsAllWrites(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"removed":     os.Remove,
		"log removed": func(path string) error { return os.Remove(path + "-wal") },
		"replaced": func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path))
		},
	} {
		for when, look := range map[string]func(*store.Store) error{
			"probe": func(s *store.Store) error { return s.Ping(t.Context()) },
			"sweep": func(s *store.Store) error { _, err := s.Sweep(t.Context()); return err },
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "pawl.db")
				s, _, _ := open(t, "sqlite:"+path)
				check(t, look(s))
				check(t, spoil(path))
				wantFatal(t, s, look(s), "put it back where it was")
			})
		}
	}
}

// wantFatal checks for a fatal error after which every write fails.
func wantFatal(t *testing.T, s *store.Store, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want it to contain %q", err, words)
	}
	reported := await(t, "the fatal error", s.Fatal())
	if !strings.Contains(reported.Error(), words) {
		t.Errorf("reported %v, want it to contain %q", reported, words)
	}
	if err := receive(t.Context(), s, "later", 10); !errors.Is(err, reported) {
		t.Errorf("a later delivery: %v, want %v", err, reported)
	}
	if _, err := s.Append(t.Context(), issue(1), true); !errors.Is(err, reported) {
		t.Errorf("a later event: %v, want %v", err, reported)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, reported) {
		t.Errorf("ping: %v, want %v", err, reported)
	}
}

func TestDamageFoundByReadEndsAllWrites(t *testing.T) {
	sound := must(os.ReadFile(fullFile(t)))(t)
	for name, read := range map[string]func(*store.Store) error{
		"claim threads":   func(s *store.Store) error { _, err := s.Claim(t.Context(), "here", 1); return err },
		"list deliveries": func(s *store.Store) error { _, err := s.Deliveries(t.Context(), 10); return err },
		"read a log":      func(s *store.Store) error { _, err := s.Events(t.Context(), issue(1), 0); return err },
		"read a note":     func(s *store.Store) error { _, err := s.Noted(t.Context(), issue(1)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			damaged := filepath.Join(t.TempDir(), "pawl.db")
			check(t, os.WriteFile(damaged, sound, 0o600))
			s, _, _ := open(t, "sqlite:"+damaged)
			damage(t, damaged)
			err := read(s)
			if err == nil {
				t.Fatal("no call found the damage")
			}
			wantFatal(t, s, err, "restore a backup")
		})
	}
}
