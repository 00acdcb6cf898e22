package store_test

import (
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
