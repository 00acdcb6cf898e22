package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// joinWith starts a node with additional lines of configuration.
func (c *cluster) joinWith(more string) *testrig.Member {
	c.T.Helper()
	before := c.Config
	defer func() { c.Config = before }()
	c.Config += more
	return c.join()
}

// waits waits until a rule makes a thread wait, for a reason that contains these words.
func (c *cluster) waits(n int, rule policy.Rule, words string) {
	c.T.Helper()
	c.Await("a wait by "+string(rule), func() bool {
		d := c.State(n).Decision
		return d != nil && d.Rule == rule && strings.Contains(d.Reasons.String(), words)
	})
}

// TestAttemptsBeginWhereTheCachesAre runs a repository's attempts on the first node, whichever node gets the event. The
// second node takes an attempt once the first has no free slot or has died.
func TestAttemptsBeginWhereTheCachesAre(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Agent("cat > /dev/null\n"+
		"if [ -e \"$CTRL/hold\" ]; then mv \"$CTRL/hold\" \"$CTRL/held\"; while [ -e \"$CTRL/held\" ]; do sleep 0.1; done; fi\n"+
		"echo line >> a.txt\n", "")
	warm := c.joinWith("workers: 1\n")
	c.doneAtOnce(c.issue("The first"))
	cold := c.joinWith("workers: 1\n")
	c.doneAtOnce(c.issue("The second"))
	began := func(when string, onWarm, onCold int) {
		t.Helper()
		if w, c := warm.Started(), cold.Started(); w != onWarm || c != onCold {
			t.Errorf("%s: the node with the caches has started %d attempts and the other %d, want %d and %d", when, w, c, onWarm, onCold)
		}
	}
	began("with a free slot", 2, 0)
	c.Must(os.WriteFile(filepath.Join(c.Ctrl(), "hold"), nil, 0o600))
	long := c.issue("A long one")
	c.Await("the long attempt", func() bool { _, err := os.Stat(filepath.Join(c.Ctrl(), "held")); return err == nil })
	short := c.issue("Another one")
	c.Await("the end of the short attempt", func() bool {
		d := c.State(short).Decision
		return d != nil && d.Action == policy.DoDone
	})
	c.Must(os.Remove(filepath.Join(c.Ctrl(), "held")))
	c.doneAtOnce(long)
	began("without a free slot", 3, 1)
	c.leave(cold, syscall.SIGKILL) // it ran the last attempt
	c.to(warm)
	c.doneAtOnce(c.issue("The last"))
	began("after a kill", 4, 1)
}

// The first node has the label but takes only webhooks. The second has no label. The third has the label.
func TestAttemptsRunOnNodesWithTheirLabels(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Agent("cat > /dev/null; echo line >> a.txt\n", "")
	webhooks := c.joinWith("workers: 0\nnode: {labels: [gpu]}\n")
	first := c.issue("Anywhere")
	c.waits(first, policy.RuleNoNode, "no running server takes attempts")
	plain := c.joinWith("workers: 2\n")
	c.to(webhooks)
	c.doneAtOnce(first)

	_, err := c.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{
		Branch: "main", Message: "Ask for a label", Files: map[string]string{".github/pawl.yml": "environment: {runs_on: [gpu]}\n"},
	})
	c.Must(err)
	second := c.issue("On a GPU")
	c.waits(second, policy.RuleNoNode, "need the labels gpu")
	// The third node has no webhook listener and no webhook secret.
	c.Edit = strings.NewReplacer(`address: "127.0.0.1:0"`, `address: ""`, fmt.Sprintf("webhook_secret: %q, ", testrig.Secret), "")
	gpu := c.joinWith("workers: 1\nnode: {labels: [arm64, gpu]}\n")
	c.Edit = nil
	if gpu.Addr != "" {
		t.Errorf("the third node listens on %s", gpu.Addr)
	}
	c.to(webhooks)
	c.doneAtOnce(second)
	c.doneAtOnce(c.issue("On a GPU again"))

	for m, want := range map[*testrig.Member]int{webhooks: 0, plain: 1, gpu: 2} {
		if got := m.Started(); got != want {
			t.Errorf("the node with pages at %s started %d attempts, want %d", m.Pages, got, want)
		}
	}
	c.leave(gpu, syscall.SIGKILL)
	c.waits(c.issue("On a GPU once more"), policy.RuleNoNode, "need the labels gpu")
}
