package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/store"
)

// A server that hangs in its migration must not make every other server's start hang.
func TestStartNamesServerStuckInMigration(t *testing.T) {
	dsn := startPostgres(t).newDatabase(t)
	hangs := must(rawDB(t, dsn).Conn(t.Context()))(t)
	must(hangs.ExecContext(t.Context(), "SELECT pg_advisory_lock($1)", 0x7061776c))(t)
	var pid int
	check(t, hangs.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	_, err := store.Open(t.Context(), dsn+"&lock_timeout=100", store.Options{})
	if err == nil {
		t.Fatal("the store opened during another server's migration")
	}
	end := fmt.Sprintf("SELECT pg_terminate_backend(%d)", pid)
	if !strings.Contains(err.Error(), "another server that migrates") || !strings.Contains(err.Error(), end) {
		t.Fatalf("%v, want it to say %s", err, end)
	}
	must(rawDB(t, dsn).Exec(end))(t)
	s := must(store.Open(t.Context(), dsn+"&lock_timeout=10000", store.Options{}))(t)
	check(t, s.Close())
}
