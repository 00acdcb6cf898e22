package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// TestSeveralNodesOnOneDatabase lets several servers work on one PostgreSQL, each
// a process of its own.
func TestSeveralNodesOnOneDatabase(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *pgServer)
	}{
		{"AnyNodeTakesWebhooksAndSteps", anyNodeTakesWebhooksAndSteps},
		{"ALimitOnOneHoldsBackTheOther", aLimitOnOneHoldsBackTheOther},
		{"ALoopOnOneHoldsBackTheOther", aLoopOnOneHoldsBackTheOther},
		{"GradesOfOneDecideAtTheOther", gradesOfOneDecideAtTheOther},
		{"WhatAnAgentPostsIsKnownToAnyNode", whatAnAgentPostsIsKnownToAnyNode},
		{"OneProbeGoesFirst", oneProbeGoesFirst},
		{"AProbeThatDiesMakesRoomForAnother", aProbeThatDiesMakesRoomForAnother},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, db)
		})
	}
}

// together is an agent that says who called it, and waits for $CTRL/go.
const together = `cat > /dev/null
echo "$PAWL_THREAD $PAWL_ATTEMPT" >> "$CTRL/starts"
while [ ! -f "$CTRL/go" ]; do sleep 0.05; done
echo "line of $PAWL_ATTEMPT" >> a.txt
`

func anyNodeTakesWebhooksAndSteps(t *testing.T, db *pgServer) {
	c := newCluster(t, db)
	c.Agent(together, "startup_timeout: 20m, idle_timeout: 20m") // it prints nothing until all are there
	c.Config += "workers: 2\n"
	first, second, third := c.join(), c.join(), c.join()

	// Three nodes with two places each: what one has no place for, another takes.
	var threads []thread.ID
	for i := range 6 {
		c.to(c.nodes[i%3])
		threads = append(threads, c.issue(testrig.Repo, fmt.Sprintf("Issue %d", i)))
	}
	c.Await("six agents at once", func() bool { return c.Calls() == 6 })
	for _, m := range c.nodes {
		if got := m.Started(); got != 2 {
			t.Errorf("the node at %s started %d of the attempts, want 2", m.Addr, got)
		}
	}
	c.Touch("go")
	done := func() bool { return c.count(threads, overBy("done")) == len(threads) }
	c.Await("every thread's end", done)

	// Each hears of a part; any of them takes the next step.
	for i, th := range threads {
		c.to(c.nodes[i%3])
		_, err := c.World.Comment(testrig.Repo, th.Number, testrig.Writer, "/pawl solve once more")
		c.Must(err)
	}
	c.Await("every thread's second attempt", func() bool { return c.Calls() == 12 && done() })
	c.sameForAll(threads)
	if folders := c.folders(); !slices.Equal(folders, []string{".", "node-1", "node-2"}) {
		t.Errorf("the nodes work in %v of the data directory, want each in one of its own", folders)
	}

	// A node with a data directory of its own may join and take over everything.
	c.Data = "data-of-the-fourth"
	c.join()
	for _, m := range []*testrig.Member{first, second, third} {
		c.leave(m, syscall.SIGTERM)
	}
	last := c.issue(testrig.Repo, "The last one")
	c.Await("the last thread's end", func() bool { return c.count([]thread.ID{last}, overBy("done")) == 1 })
	if _, err := os.Stat(filepath.Join(c.Dir, c.Data, "attempts", "acme", "widgets", fmt.Sprint(last.Number))); err != nil {
		t.Error(err)
	}
}

// whatAnAgentPostsIsKnownToAnyNode lets an agent post under a person's name, to its own
// thread and to another one, while a node hears of it that shares no disk with the
// agent's.
func whatAnAgentPostsIsKnownToAnyNode(t *testing.T, db *pgServer) {
	needs.Program(t, "curl") // the agent posts with it
	c := newCluster(t, db)
	token, err := c.World.UserToken(testrig.Writer)
	c.Must(err)
	other, err := c.World.OpenIssue(testrig.Repo, testrig.Writer, "Another issue", "Nobody has asked for this one.")
	c.Must(err)
	c.Agent(fmt.Sprintf("API=%s TOKEN=%s ISSUES='%d %d'\n", strings.TrimSuffix(c.World.APIURL(), "/"), token, other+1, other)+`cat > /dev/null
echo "$PAWL_THREAD $PAWL_ATTEMPT" >> "$CTRL/starts"
body='{"body": "/pawl solve and mind the documentation"}'
echo "curl -d '$body' $API/repos/acme/widgets/issues/N/comments"
while [ ! -f "$CTRL/post" ]; do sleep 0.05; done
for n in $ISSUES; do
  curl -sSf -o /dev/null -H "Authorization: Bearer $TOKEN" -d "$body" "$API/repos/acme/widgets/issues/$n/comments"
done
while [ ! -f "$CTRL/end" ]; do sleep 0.05; done
echo "a line" >> a.txt
`, "startup_timeout: 20m, idle_timeout: 20m")
	c.Data = "data-of-the-first"
	c.join()
	issue := c.issue(testrig.Repo, "The agent's own issue")
	c.Await("the log to hold what the agent wrote", func() bool {
		return slices.ContainsFunc(c.events(issue), func(e thread.Event) bool { return e.Kind == thread.KindAuthored })
	})
	c.Data = "data-of-the-second"
	second := c.join() // and hears of everything from now on
	c.Touch("post")
	threads := []thread.ID{issue, {Owner: issue.Owner, Name: issue.Name, Number: other}}
	c.Await("the agent's posts to be known as its own", func() bool {
		return c.count(threads, func(s thread.State) bool {
			return slices.ContainsFunc(s.Ignored, func(f thread.Feedback) bool { return strings.HasPrefix(f.Reason, "the agent wrote it itself") })
		}) == len(threads)
	})
	c.Touch("end")
	c.Await("the end", func() bool { return c.count(threads[:1], overBy("done")) == 1 })
	c.settle()
	if c.Calls() != 1 || second.Started() != 0 {
		t.Errorf("%d calls of the agent, %d by the node that heard of its posts, want 1 and none", c.Calls(), second.Started())
	}
}

// sameForAll checks that no attempt ran twice and that GitHub shows one of each
// for each thread.
func (c *cluster) sameForAll(threads []thread.ID) {
	c.T.Helper()
	lines := strings.Split(strings.TrimSpace(c.Left("starts")), "\n")
	slices.Sort(lines)
	if len(slices.Compact(slices.Clone(lines))) != len(lines) {
		c.T.Errorf("an attempt ran twice: %q", lines)
	}
	pulls := map[string]int{}
	for _, p := range c.World.Pulls(testrig.Repo) {
		pulls[p.Pull.Head]++
	}
	for _, th := range threads {
		if n := pulls[fmt.Sprintf("pawl/issue-%d", th.Number)]; n != 1 {
			c.T.Errorf("%s: %d pull requests, want 1", th, n)
		}
		comments := 0
		for _, m := range c.World.Comments(testrig.Repo, th.Number) {
			if m.ViaApp {
				comments++
			}
		}
		if comments != 1 {
			c.T.Errorf("%s: %d comments by Pawl, want 1", th, comments)
		}
	}
	checks := map[string]int{}
	for _, r := range c.World.CheckRuns(testrig.Repo) {
		checks[r.SHA+" "+r.Name]++
	}
	for name, n := range checks {
		if n != 1 {
			c.T.Errorf("check run %s is there %d times", name, n)
		}
	}
	if len(checks) == 0 {
		c.T.Error("no check run is there")
	}
}

// folders are the parts of the data directory that nodes took.
func (c *cluster) folders() (all []string) {
	c.T.Helper()
	locks, err := filepath.Glob(filepath.Join(c.Dir, "data", "*", "pawl.lock"))
	c.Must(err)
	for _, lock := range append([]string{filepath.Join(c.Dir, "data", "pawl.lock")}, locks...) {
		name, err := filepath.Rel(filepath.Join(c.Dir, "data"), filepath.Dir(lock))
		c.Must(err)
		all = append(all, name)
	}
	return all
}

// handOver starts a second node, ends the first, and asks for one more issue,
// which the second alone can decide about.
func (c *cluster) handOver() thread.ID {
	c.T.Helper()
	first := c.nodes[0]
	c.join()
	c.leave(first, syscall.SIGTERM)
	return c.issue(testrig.Repo, "Another line")
}

func aLimitOnOneHoldsBackTheOther(t *testing.T, db *pgServer) {
	c := newCluster(t, db)
	c.Agent(fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(5*time.Hour))), "stream: codex")
	c.join()
	th := c.issue(testrig.Repo, "A second line")
	for n := 1; n <= 3; n++ {
		c.Await("the limit", func() bool {
			return c.count([]thread.ID{th}, func(s thread.State) bool { return len(s.Attempts) == n && !s.Open() }) == 1
		})
		if n < 3 {
			_, err := c.World.Comment(testrig.Repo, th.Number, testrig.Writer, "/pawl retry")
			c.Must(err)
		}
	}
	other := c.handOver()
	c.Await("the other node's decision", func() bool { return c.count([]thread.ID{other}, overBy("usage_limit_breaker")) == 1 })
	if c.Calls() != 4 {
		t.Errorf("the agent was called %d times, want 3 on one node and one on the other, which confirms the limit", c.Calls())
	}
}

func aLoopOnOneHoldsBackTheOther(t *testing.T, db *pgServer) {
	c := newCluster(t, db)
	c.Agent(testrig.CodexAgent+"echo kept > work.txt\nfor i in $(seq 1 600); do echo \"value: $((i%2))\" > f.txt; change f.txt; sleep 0.01; done\n"+testrig.CodexEnd, "stream: codex")
	c.join()
	th := c.issue(testrig.Repo, "A value")
	c.Await("the loop's cooldown", func() bool { return c.count([]thread.ID{th}, waitsBy("cooldown")) == 1 })
	calls := c.Calls()
	other := c.handOver()
	c.Await("the other node's decision", func() bool { return c.count([]thread.ID{other}, waitsBy("cooldown")) == 1 })
	if c.Calls() != calls || calls != 1 {
		t.Errorf("the agent was called %d times on one node and %d times in all, want 1", calls, c.Calls())
	}
}

// gradesOfOneDecideAtTheOther: what one node learned of two backends is what the
// other draws from, where it chooses for a thread of its own.
func gradesOfOneDecideAtTheOther(t *testing.T, db *pgServer) {
	const threads = 4
	c := newCluster(t, db)
	_, err := c.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "main", Message: "Verify",
		Files: map[string]string{".github/pawl.yml": "verify: [\"grep -q right a.txt\"]\n"}})
	c.Must(err)
	c.Agent("cat > /dev/null; echo wrong $$ >> a.txt\n", "") // mine, the first in the configured order
	other := filepath.Join(c.Dir, "other.sh")
	c.Must(os.WriteFile(other, []byte("#!/bin/sh\ncat > /dev/null; echo right >> a.txt\n"), 0o700))
	c.Config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q]}\npolicy: {learning: {mode: learn}}\n", other)
	c.join()
	var taught []thread.ID
	for i := range 2 * threads {
		n, err := c.World.OpenIssue(testrig.Repo, testrig.Writer, fmt.Sprintf("Lesson %d", i), "Please add a line to a.txt.")
		c.Must(err)
		for _, say := range []string{"/pawl use " + []string{"mine", "other"}[i%2], "/pawl solve"} {
			_, err = c.World.Comment(testrig.Repo, n, testrig.Writer, say)
			c.Must(err)
			c.Must(c.World.WaitDelivered(t.Context()))
		}
		taught = append(taught, thread.ID{Owner: "acme", Name: "widgets", Number: n})
	}
	over := func(s thread.State) bool { return len(s.Attempts) > 0 && !s.Open() }
	c.Await("the lessons to end", func() bool { return c.count(taught, over) == len(taught) })

	asked := []thread.ID{c.handOver()}
	for i := range threads - 1 {
		asked = append(asked, c.issue(testrig.Repo, fmt.Sprintf("Question %d", i)))
	}
	c.Await("the other node's threads to end", func() bool { return c.count(asked, over) == len(asked) })
	right := 0
	for i, s := range c.states(asked) {
		choice := s.Attempts[0].Decision.Choice
		if choice == nil || choice.Mode != policy.ModeLearn || len(choice.Samples) != 2 {
			t.Fatalf("%s: the backend was chosen by %+v, want by what was learned", asked[i], choice)
		}
		for _, drawn := range choice.Samples {
			if drawn.Backend == "mine" && drawn.Mean > 0.45 || drawn.Backend == "other" && drawn.Mean < 0.65 {
				t.Errorf("%s: %s was drawn from a mean of %.2f", asked[i], drawn.Backend, drawn.Mean)
			}
		}
		if choice.Chosen == "other" {
			right++
		}
	}
	if right < threads-1 {
		t.Errorf("the other node chose the better backend for %d of %d threads", right, threads)
	}
}

func TestASecondServerOnTheSameSQLiteFileRefusesToStart(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.Start()
	out, err := exec.Command(testrig.Program, "serve", "--config", filepath.Join(r.Dir, "pawl.yml")).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "pawl.db") || !strings.Contains(string(out), "in use by") {
		t.Errorf("%v:\n%s\nwant exit code 1 and that the file is in use", err, out)
	}
	// The first goes on, and nothing of the second stays.
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.WantSolved(n)
}
