package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// cluster is a rig whose servers, each a process of its own, share one PostgreSQL database.
type cluster struct {
	*rig
	nodes []*testrig.Member
}

func newCluster(t *testing.T, db *postgrestest.Server) *cluster {
	t.Helper()
	c := &cluster{rig: newRig(t, nil)}
	c.DSN = db.Address(db.NewDatabase(t, "")) // the first node makes the tables
	return c
}

// startPostgres starts a PostgreSQL of the test's own.
func startPostgres(t *testing.T) *postgrestest.Server {
	t.Helper()
	return postgrestest.Start(t)
}

// join starts one more node and returns when it answers webhooks.
func (c *cluster) join() *testrig.Member {
	c.T.Helper()
	return c.launch(exec.Command(testrig.Program, "serve", "--config", c.File()))
}

// crashing starts a node that has crash points, with an environment.
func (c *cluster) crashing(env ...string) *testrig.Member {
	c.T.Helper()
	cmd := exec.Command(crashBinary(c.T), "serve", "--config", c.File())
	cmd.Env = append(os.Environ(), env...)
	return c.launch(cmd)
}

// launch starts a node by a command. The node gets the webhooks from now on.
func (c *cluster) launch(cmd *exec.Cmd) *testrig.Member {
	c.T.Helper()
	m := c.Launch(cmd, &testrig.LogBuffer{})
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
	c.nodes = slices.DeleteFunc(c.nodes, func(n *testrig.Member) bool { return n == m })
}

// issue opens an issue and asks for it.
func (c *cluster) issue(title string) int {
	c.T.Helper()
	return c.Solve(title, "Please add a line to a.txt.")
}

// doneAtOnce checks that a thread ended after one attempt, with one of each at GitHub.
func (c *cluster) doneAtOnce(n int) {
	c.T.Helper()
	c.Ending(n)
	s := c.State(n)
	if len(s.Attempts) != 1 || s.Attempts[0].Receipt.Outcome != policy.WorkUnverified || s.Decision.Action != policy.DoDone {
		c.T.Errorf("#%d: attempts %+v, then %+v; want one that edited, and done", n, s.Attempts, s.Decision)
	}
	c.OneOfEach(n)
}

func TestAnyNodeTakesWebhooksAndSteps(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	// The agents say who called them, and wait until all are there.
	c.Agent("cat > /dev/null; echo \"$PAWL_THREAD $PAWL_ATTEMPT\" >> \"$CTRL/starts\"\n"+testrig.Gated+
		"echo \"line of $PAWL_ATTEMPT\" >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
	c.Config += "workers: 2\n"
	first := []*testrig.Member{c.join(), c.join(), c.join()}

	// Three nodes with two slots each: what one has no slot for, another takes.
	var threads []int
	for i := range 6 {
		c.to(first[i%3])
		threads = append(threads, c.issue(fmt.Sprint("Issue ", i)))
	}
	c.Await("six agents at once", func() bool { return c.Calls() == 6 })
	for _, m := range first {
		if got := m.Started(); got != 2 {
			t.Errorf("the node at %s started %d of the attempts, want 2", m.Addr, got)
		}
	}
	c.Touch("go")
	for _, n := range threads {
		c.doneAtOnce(n)
	}
	// Each node hears of a part; any of them takes the next step.
	for i, n := range threads {
		c.to(first[i%3])
		c.Writes(n, testrig.Writer, "/pawl solve once more")
	}
	c.Await("the second attempts", func() bool { return c.Calls() == 12 })
	for _, n := range threads {
		if s := c.Ending(n); s.State != "done" {
			t.Errorf("#%d is %s (%s %q), want done", n, s.State, s.Rule, s.Reasons)
		}
		c.OneOfEach(n)
	}
	starts := strings.Fields(strings.ReplaceAll(c.Left("starts"), " ", "/"))
	slices.Sort(starts)
	if once := slices.Compact(slices.Clone(starts)); len(once) != len(starts) {
		t.Errorf("an attempt ran twice: %q", starts)
	}
	locks, err := filepath.Glob(filepath.Join(c.Dir, "data", "node-*", "pawl.lock"))
	c.Must(err)
	if len(locks) != 2 {
		t.Errorf("beside the first, nodes work in %v, want each in a folder of its own", locks)
	}

	// A node with a data directory of its own may join and take over everything.
	c.Data = "data-of-the-fourth"
	fourth := c.join()
	for _, m := range first {
		c.leave(m, syscall.SIGTERM)
	}
	c.doneAtOnce(c.issue("The last one"))
	if got := fourth.Started(); got != 1 {
		t.Errorf("the fourth node started %d attempts, want 1", got)
	}
}

func TestNodesWhoseClocksAreWrongTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Agent(testrig.Waiting, "startup_timeout: 20m, idle_timeout: 20m")
	right := c.join()
	n := c.issue("A line")
	c.Await("the agent at work", func() bool { return c.Has("ready") })
	const claimsNothing = "the clock is wrong; nothing is claimed"
	for _, by := range []string{"1h", "-1h", "8766h", "-8766h"} {
		m := c.crashing("PAWL_CRASH_CLOCK=" + by)
		c.Await("the node to claim nothing", func() bool { return strings.Contains(m.Log.String(), claimsNothing) })
	}
	// Two renewals, every 10 s: the sweeps of all nodes, every 5 s, have looked at the lease.
	db, err := sql.Open("pgx", c.DSN)
	c.Must(err)
	t.Cleanup(func() { db.Close() })
	lease := func() (until int64) {
		c.Must(db.QueryRowContext(t.Context(), "SELECT max(lease_until) FROM threads").Scan(&until))
		return until
	}
	for range 3 {
		before := lease()
		c.Await("a renewal", func() bool { return lease() != before })
	}
	c.Touch("go")
	c.doneAtOnce(n)
	for _, m := range c.nodes[1:] { // what they take in is worked on once as well
		c.to(m)
		c.doneAtOnce(c.issue("Another line"))
	}
	var started []int
	for _, m := range c.nodes {
		started = append(started, m.Started())
	}
	if diff := cmp.Diff([]int{5, 0, 0, 0, 0}, started); diff != "" || strings.Contains(right.Log.String(), claimsNothing) {
		t.Errorf("attempts of the node whose clock is right, and of the others: (-want +got)\n%s", diff)
	}
	if all := c.Status().Clocks; len(all) != 4 {
		t.Errorf("pawl status names %+v, want the 4 servers whose clocks are wrong", all)
	}
}

func TestSessionsHoldOnEveryNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Agent(testrig.PlainAgent, "")
	a, b := c.join(), c.join()
	c.Pages = a.Pages
	c.Get("/") // signs in there
	_, link, _ := pawl(t, c.Dir, nil, "login", "--config", c.File())
	at, err := url.Parse(strings.TrimSpace(link))
	c.Must(err)
	var used []int
	for _, m := range []*testrig.Member{a, b, a} {
		c.Pages = m.Pages
		if status, body := c.Get("/"); status != http.StatusOK {
			t.Errorf("the node at %s does not know the session: %d\n%s", m.Pages, status, body)
		}
		at.Host = m.Pages
		answer, err := http.PostForm(at.String(), nil) // the button of the page
		c.Must(err)
		answer.Body.Close()
		used = append(used, answer.StatusCode)
	}
	if diff := cmp.Diff([]int{http.StatusOK, http.StatusForbidden, http.StatusForbidden}, used); diff != "" {
		t.Errorf("one link at three nodes (-want +got)\n%s", diff)
	}
}

// halted is a cluster with a node that halted in the middle of its work, while another one joined.
type halted struct {
	*cluster
	at     string // the crash point; empty for the agent at work
	killed bool   // or stopped, to go on later
	nap    string // the length of the sleep that its agents leave behind
	node   *testrig.Member
	death  crashtest.Death
	issue  int
}

// The points are those where what a node leaves behind differs: a delivery, a
// lease alone, an attempt without an agent, with one at work, with one that has
// ended, with a push and without its end, a run without its pull request, and one
// that has ended and is not shown. A node that goes on after more than its lease
// finds that it has lost it, and does nothing more to the thread or to GitHub.
// Leases go by the database's clock, so this takes a lease's true time, for all
// cases at once.
func TestWhereverANodeHaltsAnotherGoesOnWithinAMinute(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	var all []*halted
	for killed, points := range map[bool][]string{
		true:  {"event_appended", "claimed", "cloned", "", "", "agent_done", "push_begun", "attempt_ending", "pull_begun", "decided"},
		false: {"cloned", "push_begun", "attempt_ending", "pull_begun", "act_begun:2", "event_appended:6", ""},
	} {
		for i, at := range points {
			h := &halted{cluster: newCluster(t, db), at: at, killed: killed, nap: testrig.Nap(500 + len(all))}
			h.diligent(killed && i%2 == 0, h.nap, map[bool]string{true: "3", false: "0.1"}[at == ""])
			h.halt()
			all = append(all, h)
		}
	}
	for _, h := range all {
		h.takenOver()
	}
	for _, h := range all {
		if !h.killed {
			h.goOn()
		}
	}
}

// halt lets a node begin, halts it, and lets another one join.
func (h *halted) halt() {
	h.T.Helper()
	h.node = h.crashing("PAWL_PAUSE_AT=" + h.at)
	h.issue = h.cluster.issue("A line")
	if h.at == "" {
		h.Await("the agent at work", func() bool { return h.Below("sleep\x00"+h.nap) > 0 })
		h.Must(h.node.Cmd.Process.Signal(syscall.SIGSTOP))
	}
	h.Await("the halt at "+h.at, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.node.Cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	h.death = crashtest.Death{At: time.Now(), Point: h.at}
	if h.killed {
		h.leave(h.node, syscall.SIGKILL)
	}
	m := h.Launch(exec.Command(crashBinary(h.T), "serve", "--config", h.File()), &testrig.LogBuffer{})
	h.Addr, h.Pages = m.Addr, m.Pages
	h.World.SetWebhookURL(h.URL("/api/github/hook"))
}

// takenOver checks when the other node went on and how it ended, and that nothing
// is left of one that was killed.
func (h *halted) takenOver() {
	h.T.Helper()
	h.Await("the end", func() bool {
		s := h.State(h.issue)
		return edits(s) == 1 && !s.Open() && len(crashtest.LeftOver(s)) == 0
	})
	h.Settle()
	wentOn(h.T, h.Events(h.issue), h.death, true)
	s := h.State(h.issue)
	for _, wrong := range append(crashtest.AttemptsWrong(s, []crashtest.Death{h.death}), crashtest.LeftOver(s)...) {
		h.T.Errorf("halted at %q: %s", h.at, wrong)
	}
	if s.Decision.Action != policy.DoDone {
		h.T.Errorf("halted at %q: attempts %+v, then %+v; want done", h.at, s.Attempts, s.Decision)
	}
	h.Once(h.issue)
	for _, c := range h.World.CheckRuns(testrig.Repo) {
		if c.Status != "completed" {
			h.T.Errorf("halted at %q: check run %s is %s", h.at, c.Name, c.Status)
		}
	}
	if left := crashtest.Processes(h.T, h.Dir); h.killed && (len(left) > 0 || h.Below("sleep\x00"+h.nap) > 0) {
		h.T.Errorf("halted at %q: processes of agents are left: %q", h.at, left)
	}
}

// goOn wakes the halted node and looks what it does.
func (h *halted) goOn() {
	h.T.Helper()
	events, writes := len(h.Events(h.issue)), h.writes()
	h.Must(h.node.Cmd.Process.Signal(syscall.SIGCONT))
	h.Await("the halted node to notice", func() bool { return strings.Contains(h.node.Log.String(), thread.ErrLeaseLost.Error()) })
	// It is well, and works on what comes next.
	h.to(h.node)
	h.Writes(h.issue, testrig.Reader, "Thank you.")
	h.Settle()
	for _, e := range h.Events(h.issue)[events:] {
		// The thanks, and the webhook of a push that waited at the halted node.
		if e.Kind != thread.KindIgnored && e.Kind != thread.KindThread {
			h.T.Errorf("halted at %q: %s was appended afterwards", h.at, e.Kind)
		}
	}
	if now := h.writes(); len(now) != len(writes) {
		h.T.Errorf("halted at %q: afterwards GitHub heard %q", h.at, now[len(writes):])
	}
	h.Once(h.issue)
}

// writes are the requests that changed something at GitHub, git's included.
func (r *rig) writes() (list []string) {
	for _, q := range r.World.Requests() {
		reads := q.Method == http.MethodGet || strings.HasSuffix(q.Path, "/access_tokens") || strings.HasSuffix(q.Path, "/git-upload-pack")
		if !reads {
			list = append(list, q.Method+" "+q.Path)
		}
	}
	return list
}
