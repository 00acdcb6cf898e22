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

// cluster is a rig with several server processes on one PostgreSQL database.
type cluster struct {
	*rig
	nodes []*testrig.Member
}

func newCluster(t *testing.T, db *postgrestest.Server) *cluster {
	t.Helper()
	c := &cluster{rig: newRig(t, nil)}
	c.DSN = db.Address(db.NewDatabase(t, "")) // the first node creates the tables
	return c
}

func startPostgres(t *testing.T) *postgrestest.Server {
	t.Helper()
	return postgrestest.Start(t)
}

// join starts one more node and returns when it answers webhooks.
func (c *cluster) join() *testrig.Member {
	c.T.Helper()
	return c.launch(exec.Command(testrig.Program, "serve", "--config", c.File()))
}

// crashing starts a node of the build with crash points, with additional environment variables.
func (c *cluster) crashing(env ...string) *testrig.Member {
	c.T.Helper()
	cmd := exec.Command(crashBinary(c.T), "serve", "--config", c.File())
	cmd.Env = append(os.Environ(), env...)
	return c.launch(cmd)
}

// launch starts a node with a command and sends webhooks to it from now on.
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

// leave sends a signal to a node and waits until it exits.
func (c *cluster) leave(m *testrig.Member, sig syscall.Signal) {
	c.T.Helper()
	c.Must(m.Cmd.Process.Signal(sig))
	c.Ended(m)
	c.nodes = slices.DeleteFunc(c.nodes, func(n *testrig.Member) bool { return n == m })
}

func (c *cluster) issue(title string) int {
	c.T.Helper()
	return c.Solve(title, "Please add a line to a.txt.")
}

// doneAtOnce checks that a thread is done after one attempt, with one pull request and one status comment.
func (c *cluster) doneAtOnce(n int) {
	c.T.Helper()
	c.Ending(n)
	s := c.State(n)
	if len(s.Attempts) != 1 || s.Attempts[0].Receipt.Outcome != policy.WorkUnverified || s.Decision.Action != policy.DoDone {
		c.T.Errorf("#%d: attempts %+v, then %+v; want one that edited, and done", n, s.Attempts, s.Decision)
	}
	c.OneOfEach(n)
}

func TestEveryNodeHandlesWebhooksAndSteps(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	// The agents record their thread and attempt, and wait for the file go.
	c.Agent("cat > /dev/null; echo \"$PAWL_THREAD $PAWL_ATTEMPT\" >> \"$CTRL/starts\"\n"+testrig.Gated+
		"echo \"line of $PAWL_ATTEMPT\" >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
	c.Config += "workers: 2\n"
	first := []*testrig.Member{c.join(), c.join(), c.join()}

	// Three nodes have two slots each. If a node has no free slot, another node takes the thread.
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
	// Each node gets some of the webhooks, and any node may take the next step.
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
		t.Errorf("the nodes after the first work in %v, want two separate folders", locks)
	}

	// A node with another data directory can join and take over all work.
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

func TestNodesWithWrongClocksClaimNothing(t *testing.T) {
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
	// Leases are renewed every 10 s, and nodes sweep every 5 s. So all nodes have swept by the time the lease is renewed.
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
	for _, m := range c.nodes[1:] { // a webhook to these nodes also leads to one attempt
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

func TestSessionsWorkOnEveryNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Agent(testrig.PlainAgent, "")
	a, b := c.join(), c.join()
	c.Pages = a.Pages
	c.Get("/") // signs in at the first node
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
		answer, err := http.PostForm(at.String(), nil) // presses the page's button
		c.Must(err)
		answer.Body.Close()
		used = append(used, answer.StatusCode)
	}
	if diff := cmp.Diff([]int{http.StatusOK, http.StatusForbidden, http.StatusForbidden}, used); diff != "" {
		t.Errorf("one link at three nodes (-want +got)\n%s", diff)
	}
}

// halted is a cluster with a node that halted during its work, and another node that joined.
type halted struct {
	*cluster
	at     string // the crash point; empty to halt while the agent works
	killed bool   // whether the node was killed; otherwise it is paused and continues later
	nap    string // the duration of the sleep process that the agents leave
	node   *testrig.Member
	death  crashtest.Death
	issue  int
}

// The node halts at points that leave different states: a delivery, only a lease, an attempt before its agent starts,
// during the agent, after the agent, during the push, before its end is logged, a run without a pull request, and a
// finished run that is not shown yet. A node that continues after its lease expired must notice this, and must not change
// the thread or GitHub. Leases use the database's clock, so the test waits for a real lease; all cases wait together.
func TestHaltedNodeIsReplacedWithinAMinute(t *testing.T) {
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
			h.wake()
		}
	}
}

// halt starts a node, halts it at the crash point, and starts another node.
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

// takenOver checks that the other node continued in time and finished the thread. No process of a killed node may be
// left.
func (h *halted) takenOver() {
	h.T.Helper()
	h.Await("the end", func() bool {
		s := h.State(h.issue)
		return edits(s) == 1 && !s.Open() && len(crashtest.LeftOver(s)) == 0
	})
	h.Settle()
	continued(h.T, h.Events(h.issue), h.death, true)
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

// wake wakes the halted node. The node must not change the halted thread, and must handle new webhooks.
func (h *halted) wake() {
	h.T.Helper()
	events, writes := len(h.Events(h.issue)), h.writes()
	h.Must(h.node.Cmd.Process.Signal(syscall.SIGCONT))
	h.Await("the halted node to notice", func() bool { return strings.Contains(h.node.Log.String(), thread.ErrLeaseLost.Error()) })
	// The node still works and handles new webhooks.
	h.to(h.node)
	h.Writes(h.issue, testrig.Reader, "Thank you.")
	h.Settle()
	for _, e := range h.Events(h.issue)[events:] {
		// These events come from the comment, and from the webhook of a push that waited at the halted node.
		if e.Kind != thread.KindIgnored && e.Kind != thread.KindThread {
			h.T.Errorf("halted at %q: %s was appended afterwards", h.at, e.Kind)
		}
	}
	if now := h.writes(); len(now) != len(writes) {
		h.T.Errorf("halted at %q: the node then sent %q to GitHub", h.at, now[len(writes):])
	}
	h.Once(h.issue)
}

// writes returns the requests that changed GitHub, including git's requests.
func (r *rig) writes() (list []string) {
	for _, q := range r.World.Requests() {
		reads := q.Method == http.MethodGet || strings.HasSuffix(q.Path, "/access_tokens") || strings.HasSuffix(q.Path, "/git-upload-pack")
		if !reads {
			list = append(list, q.Method+" "+q.Path)
		}
	}
	return list
}
