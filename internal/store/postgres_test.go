package store_test

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/store"
)

// postgres is a server of the test's own.
type postgres struct {
	*postgrestest.Server

	template string // a database with Pawl's tables; none yet when empty
}

func startPostgres(t *testing.T) *postgres {
	t.Helper()
	return &postgres{Server: postgrestest.Start(t)}
}

// newDatabase makes a database with Pawl's tables, a copy of one that was
// migrated once: migrating takes much of a second.
func (p *postgres) newDatabase(t testing.TB) string {
	t.Helper()
	if p.template == "" {
		name := p.NewDatabase(t, "")
		check(t, must(store.Open(t.Context(), p.Address(name), store.Options{}))(t).Close())
		p.template = name
	}
	return p.Address(p.NewDatabase(t, p.template))
}

// emptyDatabase makes a database without tables.
func (p *postgres) emptyDatabase(t testing.TB) string {
	t.Helper()
	return p.Address(p.NewDatabase(t, ""))
}

// What a database says of its transactions, and an address that wants a server for
// writing, are usual where PostgreSQL is looked after by others.
func TestSettingsOfTheDatabaseDoNotChangeWhatTheStoreReliesOn(t *testing.T) {
	p := startPostgres(t)
	dsn := p.newDatabase(t)
	s := must(store.Open(t.Context(), dsn, store.Options{}))(t)
	var name string
	check(t, s.DB().QueryRow("SELECT current_database()").Scan(&name))
	must(s.DB().Exec("ALTER DATABASE " + name + " SET default_transaction_isolation = 'serializable'"))(t)
	check(t, s.Close())

	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	dsn += separator + "target_session_attrs=read-write"
	s = must(store.Open(t.Context(), dsn, store.Options{}))(t)
	defer s.Close()
	var isolation string
	check(t, s.DB().QueryRow("SHOW transaction_isolation").Scan(&isolation))
	if isolation != "read committed" {
		t.Errorf("transactions are %s, want read committed", isolation)
	}
	must(s.Append(t.Context(), issue(1), true, event("", 1)))(t)

	r := must(store.Open(t.Context(), dsn, store.Options{Access: store.Reading}))(t)
	defer r.Close()
	if events := must(r.Events(t.Context(), issue(1), 0))(t); len(events) != 1 {
		t.Errorf("%d events are read, want 1", len(events))
	}
	if _, err := r.Append(t.Context(), issue(1), true, event("", 2)); err == nil {
		t.Error("a store for reading wrote")
	}
}
