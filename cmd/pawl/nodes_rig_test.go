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
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// cluster is a rig whose servers share one PostgreSQL database.
type cluster struct {
	*rig
	ahead *testrig.Clock // of GitHub, and of the nodes that have a clock file
	clock string         // the file of a clock that all nodes obey; empty for the true time
	db    *sql.DB
	nodes []*testrig.Member
}

func newCluster(t *testing.T, db *pgServer) *cluster {
	t.Helper()
	c := &cluster{ahead: &testrig.Clock{}}
	c.rig = newRigAt(t, nil, c.ahead.Now)
	c.DSN = db.newDatabase(t)
	c.ownTime()
	return c
}

// ownTime lets the database have a clock of the test's own: the schema test is found before PostgreSQL's functions.
func (c *cluster) ownTime() {
	c.T.Helper()
	var err error
	c.db, err = sql.Open("pgx", c.DSN)
	c.Must(err)
	c.T.Cleanup(func() { c.db.Close() })
	_, err = c.db.ExecContext(c.T.Context(), `CREATE SCHEMA test; DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET search_path = public, test, pg_catalog', current_database()); END $$`)
	c.Must(err)
}

// join starts one more node and returns when it answers webhooks.
func (c *cluster) join() *testrig.Member {
	c.T.Helper()
	cmd := exec.Command(testrig.Program, "serve", "--config", c.File())
	if c.clock != "" {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), nodeVariable+"="+c.File(), clockVariable+"="+c.clock)
	}
	return c.launch(cmd)
}

// launch starts a node by a command and returns when it answers webhooks, which
// it gets from now on.
func (c *cluster) launch(cmd *exec.Cmd) *testrig.Member {
	c.T.Helper()
	m := c.rig.Launch(cmd, &testrig.LogBuffer{})
	c.nodes = append(c.nodes, m)
	c.to(m)
	return m
}

// to sends webhooks to a node from now on.
func (c *cluster) to(m *testrig.Member) {
	c.T.Helper()
	c.Must(c.World.WaitDelivered(c.T.Context()))
	c.Addr, c.Pages = m.Addr, m.Pages
	c.World.SetWebhookURL(c.URL("/api/github/hook"))
}

// leave ends a node by a signal and waits for its end.
func (c *cluster) leave(m *testrig.Member, sig syscall.Signal) {
	c.T.Helper()
	c.Must(m.Cmd.Process.Signal(sig))
	c.Ended(m)
	for i, n := range c.nodes {
		if n == m {
			c.nodes = append(c.nodes[:i:i], c.nodes[i+1:]...)
		}
	}
}

// issue opens an issue in a repository and asks for it.
func (c *cluster) issue(repo, title string) thread.ID {
	c.T.Helper()
	n, err := c.World.OpenIssue(repo, testrig.Writer, title, "Please add a line to a.txt.")
	c.Must(err)
	_, err = c.World.Comment(repo, n, testrig.Writer, "/pawl solve")
	c.Must(err)
	owner, name, _ := strings.Cut(repo, "/")
	return thread.ID{Owner: owner, Name: name, Number: n}
}

// states are the folds of the threads' logs.
func (c *cluster) states(threads []thread.ID) (all []thread.State) {
	c.T.Helper()
	c.Read(func(db *store.Store) {
		for _, t := range threads {
			events, err := db.Events(c.T.Context(), t, 0)
			c.Must(err)
			s, err := thread.Fold(events)
			c.Must(err)
			all = append(all, s)
		}
	})
	return all
}

// count is how many of the threads' states f holds for.
func (c *cluster) count(threads []thread.ID, f func(thread.State) bool) (n int) {
	c.T.Helper()
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
	c.T.Helper()
	c.ahead.Reach(t)
	if c.db != nil {
		_, err := c.db.ExecContext(c.T.Context(), fmt.Sprintf(`CREATE OR REPLACE FUNCTION test.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS $$ SELECT pg_catalog.clock_timestamp() + interval '%d microseconds' $$`, c.ahead.Ahead.Microseconds()))
		c.Must(err)
	}
	c.clock = filepath.Join(c.Dir, "clock")
	f, err := os.OpenFile(c.clock, os.O_CREATE|os.O_WRONLY, 0o600)
	c.Must(err)
	defer f.Close()
	_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(c.ahead.Ahead)), 0)
	c.Must(err)
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
