package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/store"
)

// postgres is a server for this test only.
type postgres struct {
	*postgrestest.Server

	template string // the name of a database with Pawl's tables; empty before the first use
}

func startPostgres(t *testing.T) *postgres {
	t.Helper()
	return &postgres{Server: postgrestest.Start(t)}
}

// newDatabase makes a database with Pawl's tables. It copies one that was migrated once: migrating takes almost a
// second.
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

// nameOf returns the database's name in an address.
func nameOf(dsn string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://pawl@/"), "?")
	return name
}

// On managed PostgreSQL, defaults for transactions and target_session_attrs in the address are common.
func TestDatabaseSettingsDoNotWeakenTheStore(t *testing.T) {
	p := startPostgres(t)
	dsn := p.newDatabase(t)
	db := rawDB(t, dsn)
	for _, setting := range []string{
		"default_transaction_isolation = 'serializable'",
		"synchronous_commit = off",
		"idle_in_transaction_session_timeout = 0",
	} {
		must(db.Exec("ALTER DATABASE " + nameOf(dsn) + " SET " + setting))(t)
	}
	dsn += "&target_session_attrs=read-write"
	s := must(store.Open(t.Context(), dsn, store.Options{}))(t)
	defer s.Close()
	must(s.Append(t.Context(), issue(1), true, event("", 1)))(t)
	for setting, want := range map[string]string{
		"transaction_isolation":               "read committed",
		"synchronous_commit":                  "on",
		"idle_in_transaction_session_timeout": "10s",
	} {
		if got := must(s.Setting(t.Context(), setting))(t); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}

	r := must(store.Open(t.Context(), dsn, store.Options{Access: store.Reading}))(t)
	defer r.Close()
	if events := must(r.Events(t.Context(), issue(1), 0))(t); len(events) != 1 {
		t.Errorf("%d events are read, want 1", len(events))
	}
	if _, err := r.Append(t.Context(), issue(1), true, event("", 2)); err == nil {
		t.Error("a store for reading wrote")
	}
}

// The store replaces only the value off. All other values of synchronous_commit wait at least for a sync.
func TestStrongerSynchronousCommitIsKept(t *testing.T) {
	p := startPostgres(t)
	dsn := p.newDatabase(t)
	must(rawDB(t, dsn).Exec("ALTER DATABASE " + nameOf(dsn) + " SET synchronous_commit = remote_apply"))(t)
	s := must(store.Open(t.Context(), dsn, store.Options{}))(t)
	defer s.Close()
	if got := must(s.Setting(t.Context(), "synchronous_commit"))(t); got != "remote_apply" {
		t.Errorf("synchronous_commit is %s, want remote_apply", got)
	}
}

func TestReadOnlyDatabaseIsRefusedWithAHint(t *testing.T) {
	p := startPostgres(t)
	for _, dsn := range []string{p.emptyDatabase(t), p.newDatabase(t)} {
		must(rawDB(t, dsn).Exec("ALTER DATABASE " + nameOf(dsn) + " SET default_transaction_read_only = on"))(t)
		wantRefusal(t, dsn, "is read-only", "name the primary")
	}
}

// After a failover, old connections may lead to a standby, which remains read-only.
func TestReadOnlyConnectionsAreReplaced(t *testing.T) {
	dsn := startPostgres(t).newDatabase(t)
	s := must(store.Open(t.Context(), dsn, store.Options{}))(t)
	defer s.Close()
	other := rawDB(t, dsn)
	must(other.Exec("ALTER DATABASE " + nameOf(dsn) + " SET default_transaction_read_only = on"))(t)
	must(other.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`))(t)
	for !strings.Contains(fmt.Sprint(receive(t.Context(), s, "standby", 10)), "read-only transaction") {
	}
	must(other.Exec("ALTER DATABASE " + nameOf(dsn) + " RESET default_transaction_read_only"))(t)
	check(t, receive(t.Context(), s, "primary", 10))
}

func TestServerStopsAfterForeignSchemaChange(t *testing.T) {
	dsn := startPostgres(t).newDatabase(t)
	s, _, _ := open(t, dsn)
	check(t, receive(t.Context(), s, "before", 10))
	must(rawDB(t, dsn).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)"))(t)
	if err := receive(t.Context(), s, "after", 10); err == nil {
		t.Error("a delivery was stored under a schema that this version does not know")
	}
	err := <-s.Fatal()
	for _, want := range []string{"another pawl changed the database", "schema 999", "start the version of pawl that changed it"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if _, err := s.Append(t.Context(), issue(1), true, event("", 1)); err == nil {
		t.Error("an event was appended after that")
	}
}

func TestRefusedConnectionGivesAHint(t *testing.T) {
	p := startPostgres(t)
	dsn := p.newDatabase(t)
	must(rawDB(t, dsn).Exec("CREATE ROLE stranger NOLOGIN"))(t)
	pooler := p.Pooler(t, "session")(nameOf(dsn))
	for address, words := range map[string]string{
		p.Address("nowhere"):                          "create the database",
		strings.Replace(dsn, "pawl@", "stranger@", 1): "may this user connect",
		"postgres://pawl@127.0.0.1:1/pawl":            "is it running",
		dsn + "&no_such_parameter=1":                  "correct or remove this parameter",
		dsn + "&work_mem=much":                        "correct or remove this parameter",
		pooler + "&search_path=public":                "remove it from the address",
	} {
		wantRefusal(t, address, words)
	}
}

// A pooler in transaction mode may run each transaction in another session, with other prepared statements, settings and
// channels.
func TestStoreWorksThroughAPooler(t *testing.T) {
	p := startPostgres(t)
	pooler := p.Pooler(t, "transaction")
	through := func(address func(testing.TB) string) func(testing.TB) string {
		return func(t testing.TB) string {
			direct := address(t)
			// ownClock sets the search path per database, which the pooler's open sessions would not see.
			must(rawDB(t, direct).Exec("ALTER DATABASE " + nameOf(direct) + " SET search_path = public, test, pg_catalog"))(t)
			return pooler(nameOf(direct))
		}
	}
	exam(t, through(p.newDatabase), through(p.emptyDatabase))
	for _, mode := range []string{"transaction", "session"} {
		t.Run(mode, func(t *testing.T) { nodesMayStartAtTheSameTime(t, p.Pooler(t, mode)(nameOf(p.emptyDatabase(t)))) })
	}
}

func TestSmallPoolIsRefusedWithAHint(t *testing.T) {
	p := startPostgres(t)
	for _, mode := range []string{"transaction", "session"} {
		address := p.Pooler(t, mode, "default_pool_size = 1")(nameOf(p.emptyDatabase(t)))
		_, err := store.Open(t.Context(), address, store.Options{})
		if err == nil || !strings.Contains(err.Error(), "default_pool_size") {
			t.Errorf("a %s pool of one connection: %v", mode, err)
		}
	}
}

func TestMigrationLeavesNoSettingInAPooledSession(t *testing.T) {
	p := startPostgres(t)
	address := p.Pooler(t, "transaction", "default_pool_size = 3")(nameOf(p.emptyDatabase(t)))
	s := must(store.Open(t.Context(), address, store.Options{}))(t)
	defer s.Close()
	db := rawDB(t, address+"&default_query_exec_mode=simple_protocol")
	for range 3 {
		held := must(db.BeginTx(t.Context(), nil))(t)
		defer held.Rollback()
		var timeout string
		check(t, held.QueryRowContext(t.Context(), "SHOW lock_timeout").Scan(&timeout))
		if timeout != "0" {
			t.Errorf("a session still has lock_timeout %s", timeout)
		}
	}
}
