package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// withPoints starts a node that has crash points, with an environment.
func (c *cluster) withPoints(env ...string) *testrig.Member {
	c.T.Helper()
	cmd := exec.Command(crashBinary(c.T), "serve", "--config", c.File())
	cmd.Env = append(os.Environ(), env...)
	return c.launch(cmd)
}

// events is a thread's log.
func (c *cluster) events(t thread.ID) (events []thread.Event) {
	c.T.Helper()
	c.Read(func(db *store.Store) {
		var err error
		events, err = db.Events(c.T.Context(), t, 0)
		c.Must(err)
	})
	return events
}

// writes counts the requests that changed something at GitHub, git's included.
func (c *cluster) writes() (list []string) {
	for _, q := range c.World.Requests() {
		if q.Method != http.MethodGet && !strings.HasSuffix(q.Path, "/access_tokens") && !strings.HasSuffix(q.Path, "/git-upload-pack") {
			list = append(list, q.Method+" "+q.Path)
		}
	}
	return list
}

// paused is a cluster with a node that stopped in the middle of its work.
type paused struct {
	*cluster
	at     string
	node   *testrig.Member
	thread thread.ID
}

// A node that was stopped for longer than its lease, wherever it was, finds that
// it has lost it and does nothing more to the thread or to GitHub. Leases go by
// the database's clock, so this takes a lease's true time, for all cases at once.
func TestANodeThatWasPausedLongerThanItsLeaseDoesNothingAfterwards(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	var all []*paused
	for _, at := range []string{"", "cloned", "push_begun", "attempt_ending", "pull_begun", "act_begun:2", "event_appended:6"} {
		p := &paused{cluster: newCluster(t, db), at: at}
		p.pause()
		all = append(all, p)
	}
	for _, p := range all {
		p.takeOver()
	}
	for _, p := range all {
		p.goOn()
	}
}

// pause lets a node begin and stops it, and lets another one join.
func (p *paused) pause() {
	script, env := "cat > /dev/null\n", []string{"PAWL_PAUSE_AT=" + p.at}
	if p.at == "" {
		script, env = script+testrig.Gated, nil
	}
	p.Agent(script+"wc -l < \"$CTRL/calls\" >> a.txt\n", "")
	p.node = p.withPoints(env...)
	p.thread = p.issue(testrig.Repo, "A line")
	if p.at == "" {
		p.Await("the agent at work", func() bool { return p.Has("ready") })
		p.Must(p.node.Cmd.Process.Signal(syscall.SIGSTOP))
		p.Touch("go") // the agent is not stopped, and what it did waits for its node
	}
	p.Await("the pause at "+p.at, func() bool { return stopped(p.node) })
	m := p.withPoints()
	p.Addr, p.Pages = m.Addr, m.Pages
	p.World.SetWebhookURL(p.URL("/api/github/hook"))
}

// takeOver waits until the other node has finished.
func (p *paused) takeOver() {
	p.Await("the other node to finish", func() bool {
		s := p.states([]thread.ID{p.thread})[0]
		return !s.Open() && s.Decision != nil && s.Decision.Action == policy.DoDone && len(p.World.Pulls(testrig.Repo)) == 1
	})
	p.settle()
}

// goOn wakes the stopped node and looks what it does.
func (p *paused) goOn() {
	t := p.T
	events, writes := p.events(p.thread), p.writes()
	p.Must(p.node.Cmd.Process.Signal(syscall.SIGCONT))
	p.Await("the paused node to notice", func() bool { return strings.Contains(p.node.Log.String(), thread.ErrLeaseLost.Error()) })
	// It is well, and works on what comes next.
	p.to(p.node)
	_, err := p.World.Comment(testrig.Repo, p.thread.Number, testrig.Reader, "Thank you.")
	p.Must(err)
	p.settle()
	for _, e := range p.events(p.thread)[len(events):] {
		// The thanks, and the webhook of a push that waited at the stopped node.
		if e.Kind != thread.KindIgnored && e.Kind != thread.KindThread {
			t.Errorf("paused at %q: %s was appended after the pause", p.at, e.Kind)
		}
	}
	if now := p.writes(); len(now) != len(writes) {
		t.Errorf("paused at %q: after it GitHub heard %q", p.at, now[len(writes):])
	}
	p.Once(p.thread.Number)
}

// settle waits until nothing is left to be done.
func (c *cluster) settle() {
	c.T.Helper()
	c.Must(c.World.WaitDelivered(c.T.Context()))
	c.Await("the nodes to rest", func() (rest bool) {
		c.Read(func(db *store.Store) {
			s, err := db.Stats(c.T.Context())
			c.Must(err)
			rest = s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0
		})
		return rest
	})
}

// stopped reports whether a node's process is stopped.
func stopped(m *testrig.Member) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.Cmd.Process.Pid))
	return err == nil && strings.Contains(string(text), ") T ")
}
