package store_test

import (
	"path/filepath"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlbot/pawl/internal/store"
)

func TestPingFailsWhileTheDatabaseIsReadOnly(t *testing.T) {
	s, _, _ := open(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	must(s.DB().Exec("PRAGMA query_only=1"))(t)
	wantCode(t, s, s.Ping(t.Context()), sqlite3.SQLITE_READONLY)
	must(s.DB().Exec("PRAGMA query_only=0"))(t)
	check(t, s.Ping(t.Context()))
}

// Hosted PostgreSQL becomes read-only when its disk is full, and an address may lead to a standby after a failover.
func TestPingFailsWhilePostgreSQLIsReadOnly(t *testing.T) {
	s, _, _ := open(t, startPostgres(t).newDatabase(t))
	system := func(query string) {
		t.Helper()
		must(s.DB().Exec(query))(t)
		must(s.DB().Exec("SELECT pg_reload_conf()"))(t)
	}
	mode := func(want string) {
		t.Helper()
		for got := ""; got != want; {
			check(t, s.DB().QueryRow("SHOW default_transaction_read_only").Scan(&got))
		}
	}
	system("ALTER SYSTEM SET default_transaction_read_only = on")
	mode("on")
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a read-only database counts as writable")
	}
	system("ALTER SYSTEM RESET default_transaction_read_only")
	mode("off")
	check(t, s.Ping(t.Context()))
}

func TestPingLimitsItsWrites(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
	s, _, c := open(t, dsn)
	written := func() (at int64) {
		t.Helper()
		check(t, rawDB(t, dsn).QueryRow("SELECT updated_at FROM shared WHERE key LIKE 'ping%'").Scan(&at))
		return at
	}
	check(t, s.Ping(t.Context()))
	first := written()
	c.Advance(time.Hour)
	for range 20 {
		check(t, s.Ping(t.Context()))
	}
	if got := written(); got != first {
		t.Errorf("20 more calls wrote at %d, want none since %d", got, first)
	}
	// After a failure the next Ping writes again.
	must(s.DB().Exec("PRAGMA busy_timeout=1"))(t)
	other := must(rawDB(t, dsn).Conn(t.Context()))(t)
	must(other.ExecContext(t.Context(), "BEGIN IMMEDIATE"))(t)
	wantCode(t, s, s.Ping(t.Context()), sqlite3.SQLITE_BUSY)
	must(other.ExecContext(t.Context(), "ROLLBACK"))(t)
	check(t, s.Ping(t.Context()))
	if got := written(); got == first {
		t.Error("nothing was written after a failure")
	}
}

func TestReaderPingsWithoutWriting(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
	s, _, _ := open(t, dsn)
	check(t, s.Close())
	r := must(store.Open(t.Context(), dsn, store.Options{Access: store.Reading}))(t)
	defer r.Close()
	check(t, r.Ping(t.Context()))
}
