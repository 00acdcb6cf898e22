package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// The steps are those of docs/operations.md, on two servers that are restarted
// one after the other.
func TestPostgreSQLsPasswordIsRotatedWithoutLosingADelivery(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.Agent(testrig.PlainAgent, "")
	name, _, _ := strings.Cut(strings.TrimPrefix(c.DSN, "postgres://pawl@/"), "?")
	super := db.Open(t, name)
	run := func(query string) {
		t.Helper()
		_, err := super.ExecContext(t.Context(), query)
		// It meets servers at work, and PostgreSQL may end either side's statement.
		for err != nil && strings.Contains(err.Error(), "deadlock detected") {
			_, err = super.ExecContext(t.Context(), query)
		}
		c.Must(err)
	}
	login := func(role, password string) string {
		return fmt.Sprintf("postgres://%s:%s@/%s?host=%s", role, password, name, db.Dir)
	}
	run("CREATE ROLE pawl_a LOGIN PASSWORD 'first'")
	run(fmt.Sprintf("ALTER DATABASE %s OWNER TO pawl_a", name))
	// From here on everybody else than the superuser needs a password.
	c.Must(os.WriteFile(filepath.Join(db.Dir, "data", "pg_hba.conf"), []byte("local all pawl trust\nlocal all all scram-sha-256\n"), 0o600))
	run("SELECT pg_reload_conf()")
	c.DSN = login("pawl_a", "first")
	nodes := []*testrig.Member{c.join(), c.join()}
	before := len(c.World.Deliveries()) // while nobody served
	asked := []int{c.issue(testrig.Repo, "A second line").Number}

	run("CREATE ROLE pawl_owner NOLOGIN")
	run("GRANT pawl_owner TO pawl_a")
	run("REASSIGN OWNED BY pawl_a TO pawl_owner")
	run("CREATE ROLE pawl_b LOGIN IN ROLE pawl_owner PASSWORD 'second'")
	run("ALTER ROLE pawl_b SET role = 'pawl_owner'")
	c.DSN = login("pawl_b", "second")
	for i, old := range nodes {
		c.to(nodes[1-i])
		asked = append(asked, c.issue(testrig.Repo, fmt.Sprintf("Line %d", i+3)).Number)
		// A webhook may still be under way to the node that leaves.
		c.Must(c.World.WaitDelivered(t.Context()))
		c.leave(old, syscall.SIGTERM)
		nodes[i] = c.join()
	}
	run("ALTER ROLE pawl_a NOLOGIN")
	asked = append(asked, c.issue(testrig.Repo, "A last line").Number)

	for _, n := range asked {
		if s := c.Over(testrig.ThreadName(n)); s.State != "done" {
			t.Errorf("%s is %s (%s %q), want done", testrig.ThreadName(n), s.State, s.Rule, s.Reasons)
		}
	}
	c.Must(c.World.WaitDelivered(t.Context())) // what is under way has no answer yet
	for _, d := range c.World.Deliveries()[before:] {
		if d.StatusCode != http.StatusOK {
			t.Errorf("a %s was answered %d", d.Event, d.StatusCode)
		}
	}
	// A migration can change what it finds, and what it makes belongs to the next login, too.
	var others int
	c.Must(super.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner <> 'pawl_owner'").Scan(&others))
	if others != 0 {
		t.Errorf("%d tables belong to a login", others)
	}
	for _, n := range nodes {
		for _, secret := range []string{"first", "second"} {
			if strings.Contains(n.Log.String(), ":"+secret+"@") {
				t.Error("the log holds a password")
			}
		}
		c.leave(n, syscall.SIGTERM)
	}
	if code, _, stderr := pawl(t, c.Dir, nil, "serve", "--config", c.withDSN(login("pawl_a", "first"))); code != 1 || !strings.Contains(stderr, "may this user connect") {
		t.Errorf("with the old login: exit code %d\n%s", code, stderr)
	}
}

// withDSN is the configuration with another address of the database.
func (c *cluster) withDSN(dsn string) string {
	c.T.Helper()
	c.DSN = dsn
	return c.File()
}
