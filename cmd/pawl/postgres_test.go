package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
)

// PostgreSQL is killed and restarted while a server runs. All acknowledged deliveries are stored, and an attempt that
// ended during the outage is logged.
func TestPostgreSQLRestartLosesNothing(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.Agent(testrig.Waiting+"touch \"$CTRL/done\"\n", "startup_timeout: 20m, idle_timeout: 20m")
	c.join()
	n := c.issue("A second line")
	c.Await("the agent at work", func() bool { return c.Has("ready") })
	c.Get("/") // signs in while the database still answers
	acknowledged := []string{}
	send := func() int {
		guid, code := c.Send(100)
		if code == http.StatusOK {
			acknowledged = append(acknowledged, guid)
		}
		return code
	}
	if code := send(); code != http.StatusOK {
		t.Fatalf("status %d, want 200", code)
	}
	db.Kill()
	for range 3 {
		if code := send(); code != http.StatusServiceUnavailable {
			t.Errorf("status %d without a database, want 503", code)
		}
	}
	if code, health := c.Ready(); code != http.StatusServiceUnavailable || health.Part(t, "database").OK {
		t.Errorf("/readyz: %d %+v, want not ready because of the database", code, health)
	}
	c.Touch("go")
	c.Await("the agent's end", func() bool { return c.Has("done") })
	db.Restart(t)
	c.Await("a webhook to be stored again", func() bool { return send() == http.StatusOK })
	c.doneAtOnce(n)
	c.hasAll(acknowledged)
}

// hasAll checks that these acknowledged deliveries are stored.
func (r *rig) hasAll(guids []string) {
	r.T.Helper()
	r.Read(func(db *store.Store) {
		for _, guid := range guids {
			if _, err := db.Delivery(r.T.Context(), guid); err != nil {
				r.T.Errorf("an acknowledged delivery: %v", err)
			}
		}
	})
}

// postgresProgram runs a program of the newest installed PostgreSQL.
func postgresProgram(t *testing.T, name string, args ...string) {
	t.Helper()
	// Glob fails only if the pattern is malformed.
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		found = []string{needs.Program(t, name)}
	}
	if out, err := exec.Command(found[len(found)-1], args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// docs/operations.md gives these commands.
func TestPostgreSQLDumpWhileServingCanBeRestored(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.Agent(testrig.GatedAgent, "")
	node := c.join()
	done := func(n int) {
		t.Helper()
		if s := c.Over(testrig.ThreadName(n)); s.State != "done" {
			t.Fatalf("#%d is %s (%s %q), want done", n, s.State, s.Rule, s.Reasons)
		}
	}
	first := c.issue("A second line")
	done(first)
	c.Gate()
	second := c.issue("A third line")
	c.Await("the second agent", func() bool { return c.Calls() == 2 })
	archive := filepath.Join(t.TempDir(), "pawl.dump")
	postgresProgram(t, "pg_dump", "-Fc", "-f", archive, c.DSN)
	c.Open()
	done(second)
	c.leave(node, syscall.SIGTERM)

	c.DSN = db.Address(db.NewDatabase(t, ""))
	postgresProgram(t, "pg_restore", "--no-owner", "-d", c.DSN, archive)
	node = c.join()
	c.Await("the thread that was unfinished in the dump", func() bool {
		s := c.Thread(testrig.ThreadName(second))
		return s.State == "done" && s.Attempts == 2
	})
	third := c.issue("A fourth line")
	done(third)
	c.leave(node, syscall.SIGTERM)
	for _, n := range []int{first, second, third} {
		c.OneOfEach(n)
	}
	if strings.Contains(node.Log.String(), `"level":"error"`) {
		t.Errorf("the restored node logged errors:\n%s", node.Log)
	}
}

// docs/operations.md gives these steps. Two servers are restarted one after the other.
func TestPostgreSQLPasswordRotationLosesNoDelivery(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.Agent(testrig.PlainAgent, "")
	name, _, _ := strings.Cut(strings.TrimPrefix(c.DSN, "postgres://pawl@/"), "?")
	super := db.Open(t, name)
	run := func(query string) {
		t.Helper()
		_, err := super.ExecContext(t.Context(), query)
		// The query can deadlock with a server's statement, and PostgreSQL may abort either of them.
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
	// From here on all users except the superuser need a password.
	access := []byte("local all pawl trust\nlocal all all scram-sha-256\n")
	c.Must(os.WriteFile(filepath.Join(db.Dir, "data", "pg_hba.conf"), access, 0o600))
	run("SELECT pg_reload_conf()")
	c.DSN = login("pawl_a", "first")
	nodes := []*testrig.Member{c.join(), c.join()}
	before := len(c.World.Deliveries())
	issues := []int{c.issue("A second line")}

	run("CREATE ROLE pawl_owner NOLOGIN")
	run("GRANT pawl_owner TO pawl_a")
	run("REASSIGN OWNED BY pawl_a TO pawl_owner")
	run("CREATE ROLE pawl_b LOGIN IN ROLE pawl_owner PASSWORD 'second'")
	run("ALTER ROLE pawl_b SET role = 'pawl_owner'")
	c.DSN = login("pawl_b", "second")
	for i, old := range nodes {
		c.to(nodes[1-i])
		issues = append(issues, c.issue(fmt.Sprint("Line ", i+3)))
		c.Must(c.World.WaitDelivered(t.Context())) // no webhook may be in flight to the node that leaves
		c.leave(old, syscall.SIGTERM)
		nodes[i] = c.join()
	}
	run("ALTER ROLE pawl_a NOLOGIN")
	issues = append(issues, c.issue("A last line"))
	for _, n := range issues {
		c.doneAtOnce(n)
	}
	for _, d := range c.World.Deliveries()[before:] {
		if d.StatusCode != http.StatusOK {
			t.Errorf("the webhook %s got status %d, want 200", d.Event, d.StatusCode)
		}
	}
	// A role owns all tables, so every login can migrate them.
	var others int
	query := "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner <> 'pawl_owner'"
	c.Must(super.QueryRowContext(t.Context(), query).Scan(&others))
	if others != 0 {
		t.Errorf("%d tables belong to a login instead of the role", others)
	}
	for _, n := range nodes {
		if log := n.Log.String(); strings.Contains(log, ":first@") || strings.Contains(log, ":second@") {
			t.Error("the log contains a password")
		}
		c.leave(n, syscall.SIGTERM)
	}
	c.DSN = login("pawl_a", "first")
	code, _, stderr := pawl(t, c.Dir, nil, "serve", "--config", c.File())
	if code != exitFailed || !strings.Contains(stderr, "may this user connect") {
		t.Errorf("with the old login: exit code %d, want a refused connection\n%s", code, stderr)
	}
}

// newProxied returns a cluster that reaches its database through a proxy.
func newProxied(t *testing.T) (*cluster, *postgrestest.Proxy) {
	t.Helper()
	db := startPostgres(t)
	c := newCluster(t, db)
	proxy := db.Proxy(t)
	c.DSN = proxy.Address(db.NewDatabase(t, ""))
	return c, proxy
}

// Connections that neither answer nor reset do not block the server or GitHub for long.
func TestSilentPostgreSQLConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	c, proxy := newProxied(t)
	c.Agent(testrig.PlainAgent, "")
	c.join()
	c.doneAtOnce(c.issue("A second line"))
	var acknowledged []string
	proxy.Silence()
	c.Await("a webhook to be stored again", func() bool {
		guid, code := c.Send(100)
		if code == http.StatusOK {
			acknowledged = append(acknowledged, guid)
		} else if code != http.StatusServiceUnavailable {
			t.Errorf("status %d, want 503 until the webhook is stored", code)
		}
		return code == http.StatusOK
	})
	c.Await("a server that is ready", func() bool { code, _ := c.Ready(); return code == http.StatusOK })
	c.doneAtOnce(c.issue("A third line"))
	c.hasAll(acknowledged)
}

func TestWebhooksGet503WhilePostgreSQLHangs(t *testing.T) {
	t.Parallel()
	c, proxy := newProxied(t)
	c.Agent(testrig.Waiting+"touch \"$CTRL/done\"\n", "startup_timeout: 20m, idle_timeout: 20m")
	c.join()
	n := c.issue("A second line")
	c.Await("the agent at work", func() bool { return c.Has("ready") })
	c.Get("/") // signs in before the database hangs
	proxy.Hang()
	codes := make(chan int)
	for range 20 {
		go func() { _, code := c.Send(100); codes <- code }()
	}
	for range 20 {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("status %d while the database hangs, want 503", code)
		}
	}
	if code, health := c.Ready(); code != http.StatusServiceUnavailable || health.Part(t, "database").OK {
		t.Errorf("/readyz: %d %+v, want not ready because of the database", code, health)
	}
	proxy.Mend()
	c.Await("a webhook to be stored again", func() bool { _, code := c.Send(100); return code == http.StatusOK })
	c.Touch("go")
	c.doneAtOnce(n)
}

// Two servers use PostgreSQL through a pooler, in which every transaction may get another session.
func TestServersWorkThroughAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := startPostgres(t)
			c := newCluster(t, db)
			c.DSN = db.Pooler(t, mode)(db.NewDatabase(t, ""))
			c.Agent(testrig.PlainAgent, "")
			nodes := []*testrig.Member{c.join(), c.join()}
			issues := []int{c.issue("A second line")}
			c.to(nodes[0])
			issues = append(issues, c.issue("A third line"))
			for _, n := range issues {
				c.doneAtOnce(n)
			}
			for _, n := range nodes {
				c.leave(n, syscall.SIGTERM)
				if strings.Contains(n.Log.String(), `"level":"error"`) {
					t.Errorf("errors were logged:\n%s", n.Log)
				}
			}
		})
	}
}

func TestServerStopsAfterAnotherVersionMigrates(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	name := db.NewDatabase(t, "")
	c.DSN = db.Address(name)
	c.Agent(testrig.PlainAgent, "")
	node := c.join()
	_, err := db.Open(t, name).ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)")
	c.Must(err)
	if code := c.Ended(node); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(node.Log.String(), "another pawl changed the database") {
		t.Errorf("the log does not contain the cause:\n%s", node.Log)
	}
}

// The database's clock is an hour ahead of the shell's clock: the schema "ahead" replaces PostgreSQL's clock function.
func TestShellCommandsUseTheDatabasesClock(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	name := db.NewDatabase(t, "")
	c.DSN = db.Address(name)
	c.Agent(testrig.PlainAgent, "")
	c.leave(c.join(), syscall.SIGTERM)
	super := db.Open(t, name)
	for _, query := range []string{
		"CREATE SCHEMA ahead",
		"CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS " +
			"$$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$",
		"ALTER DATABASE " + name + " SET search_path = public, ahead, pg_catalog",
	} {
		_, err := super.ExecContext(t.Context(), query)
		c.Must(err)
	}
	if code, _, stderr := pawl(t, c.Dir, nil, "pause", "--config", c.File(), "acme/widgets"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var minutes float64
	query := "SELECT max(at)/6e7 - extract(epoch FROM now())/60 FROM events"
	c.Must(super.QueryRowContext(t.Context(), query).Scan(&minutes))
	if minutes < 30 {
		t.Errorf("the newest event is dated %.0f minutes ahead of the shell's clock, want an hour, like the database's clock", minutes)
	}
}
