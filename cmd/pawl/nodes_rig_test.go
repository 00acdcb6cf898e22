package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// cluster is a rig whose servers share one PostgreSQL database.
type cluster struct {
	*rig
	ahead *clock // of GitHub, and of the nodes that have a clock file
	clock string // the file of a clock that all nodes obey; empty for the true time
	db    *sql.DB
	nodes []*member
}

func newCluster(t *testing.T, db *pgServer) *cluster {
	t.Helper()
	c := &cluster{ahead: &clock{}}
	c.rig = newRigAt(t, nil, c.ahead.now)
	c.dsn = db.newDatabase(t)
	c.ownTime()
	return c
}

// ownTime lets the database have a clock of the test's own: the schema test is found before PostgreSQL's functions.
func (c *cluster) ownTime() {
	c.t.Helper()
	var err error
	c.db, err = sql.Open("pgx", c.dsn)
	c.must(err)
	c.t.Cleanup(func() { c.db.Close() })
	_, err = c.db.ExecContext(c.t.Context(), `CREATE SCHEMA test; DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET search_path = public, test, pg_catalog', current_database()); END $$`)
	c.must(err)
}

// join starts one more node and returns when it answers webhooks.
func (c *cluster) join() *member {
	c.t.Helper()
	cmd := exec.Command(pawlBinary, "serve", "--config", c.file())
	if c.clock != "" {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), nodeVariable+"="+c.file(), clockVariable+"="+c.clock)
	}
	return c.launch(cmd)
}

// launch starts a node by a command and returns when it answers webhooks, which
// it gets from now on.
func (c *cluster) launch(cmd *exec.Cmd) *member {
	c.t.Helper()
	m := c.rig.launch(cmd, &logBuffer{})
	c.nodes = append(c.nodes, m)
	c.to(m)
	return m
}

// to sends webhooks to a node from now on.
func (c *cluster) to(m *member) {
	c.t.Helper()
	c.must(c.world.WaitDelivered(c.t.Context()))
	c.addr, c.pages = m.addr, m.pages
	c.world.SetWebhookURL(c.url("/api/github/hook"))
}

// leave ends a node by a signal and waits for its end.
func (c *cluster) leave(m *member, sig syscall.Signal) {
	c.t.Helper()
	c.must(m.cmd.Process.Signal(sig))
	c.ended(m)
	for i, n := range c.nodes {
		if n == m {
			c.nodes = append(c.nodes[:i:i], c.nodes[i+1:]...)
		}
	}
}

// started is how many attempts the node says that it started.
func (m *member) started() int { return strings.Count(m.log.String(), `"message":"attempt started"`) }

// issue opens an issue in a repository and asks for it.
func (c *cluster) issue(repo, title string) thread.ID {
	c.t.Helper()
	n, err := c.world.OpenIssue(repo, writer, title, "Please add a line to a.txt.")
	c.must(err)
	_, err = c.world.Comment(repo, n, writer, "/pawl solve")
	c.must(err)
	owner, name, _ := strings.Cut(repo, "/")
	return thread.ID{Owner: owner, Name: name, Number: n}
}

// began tells whether the node says that it started an attempt on the thread.
func (m *member) began(issue string) bool {
	for line := range strings.Lines(m.log.String()) {
		if strings.Contains(line, `"message":"attempt started"`) && strings.Contains(line, `"thread":"`+issue+`"`) {
			return true
		}
	}
	return false
}

// states are the folds of the threads' logs.
func (c *cluster) states(threads []thread.ID) (all []thread.State) {
	c.t.Helper()
	c.read(func(db *store.Store) {
		for _, t := range threads {
			events, err := db.Events(c.t.Context(), t, 0)
			c.must(err)
			s, err := thread.Fold(events)
			c.must(err)
			all = append(all, s)
		}
	})
	return all
}

// count is how many of the threads' states f holds for.
func (c *cluster) count(threads []thread.ID, f func(thread.State) bool) (n int) {
	c.t.Helper()
	for _, s := range c.states(threads) {
		if f(s) {
			n++
		}
	}
	return n
}

// waitsBy tells whether the thread's last word is a wait by that rule.
func waitsBy(rule policy.Rule) func(thread.State) bool {
	return func(s thread.State) bool {
		_, running := s.Running()
		return !running && s.Decision != nil && s.Decision.Action == "wait" && s.Decision.Rule == rule
	}
}

func overBy(rule policy.Rule) func(thread.State) bool {
	return func(s thread.State) bool { return !s.Open() && s.Decision != nil && s.Decision.Rule == rule }
}

// The variables that make this test program a node with a clock of the test.
const (
	nodeVariable  = "PAWL_TEST_NODE"
	clockVariable = "PAWL_TEST_CLOCK"
)

// serveAsNode is `pawl serve` with a clock that is ahead by what a file says.
func serveAsNode(configuration, clockFile string) error {
	ahead, err := os.Open(clockFile)
	if err != nil {
		return err
	}
	cfg, err := config.Load(configuration, os.LookupEnv)
	if err != nil {
		return err
	}
	log := logger(os.Stderr).Level(server.Level(cfg.Log.Level))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	now := func() time.Time {
		var d [8]byte
		if _, err := ahead.ReadAt(d[:], 0); err != nil {
			panic(err) // a node without its clock would go on at a wrong time
		}
		return time.Now().Add(time.Duration(binary.BigEndian.Uint64(d[:])))
	}
	return server.New(cfg, server.Deps{Now: now, Log: log, Build: buildInfo()}).Run(ctx)
}

// reach moves the clocks of GitHub, of the database and of all nodes to just after a time.
func (c *cluster) reach(t time.Time) {
	c.t.Helper()
	c.ahead.reach(t)
	if c.db != nil {
		_, err := c.db.ExecContext(c.t.Context(), fmt.Sprintf(`CREATE OR REPLACE FUNCTION test.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS $$ SELECT pg_catalog.clock_timestamp() + interval '%d microseconds' $$`, c.ahead.ahead.Microseconds()))
		c.must(err)
	}
	c.clock = filepath.Join(c.dir, "clock")
	f, err := os.OpenFile(c.clock, os.O_CREATE|os.O_WRONLY, 0o600)
	c.must(err)
	defer f.Close()
	_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(c.ahead.ahead)), 0)
	c.must(err)
}

// pgServer is a PostgreSQL of the test's own.
type pgServer struct{ *postgrestest.Server }

func startPostgres(t *testing.T) *pgServer {
	t.Helper()
	return &pgServer{postgrestest.Start(t)}
}

// newDatabase makes an empty database; the first node makes the tables.
func (p *pgServer) newDatabase(t *testing.T) string {
	t.Helper()
	return p.Address(p.NewDatabase(t, ""))
}
