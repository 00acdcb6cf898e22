package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// circling is an agent that does some work and then changes one file back and forth.
const circling = testrig.CodexAgent + `echo kept > work.txt
for i in $(seq 1 600); do echo "value: $((i%2))" > f.txt; change f.txt; sleep 0.01; done
` + testrig.CodexEnd

func (r *rig) pullToWorkOn() (n int, head string) {
	r.T.Helper()
	r.Push("feature", "Start", "f.txt", "start\n")
	n, err := r.World.OpenPull(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Feature", Body: "A feature.", Head: "feature"})
	r.Must(err)
	head = r.Head(n)
	r.Writes(n, testrig.Writer, "/pawl solve")
	return n, head
}

// The tests of policy and solver/attempt cover which edits count as a loop.
func TestLoopIsCutOffAndItsWorkIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(circling, "stream: codex")
	r.Start()
	n, head := r.pullToWorkOn()
	r.Await("the verdict", func() bool { return r.Check(head, "pawl/severity").Conclusion == "failure" })
	if got, err := strconv.Atoi(strings.TrimSpace(r.Left("edits"))); err != nil || got < 40 || got > 200 {
		t.Errorf("the agent made %d edits, %v; want it cut off soon after 40", got, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(r.Left("pid")))
	r.Must(err)
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the agent still runs")
	}
	c, kept := r.Check(head, "pawl/severity"), fmt.Sprintf("pawl/kept-%d-1", n)
	if !strings.Contains(c.Title+c.Summary, "severe") || !strings.Contains(c.Summary+c.Text, "in circles") {
		t.Errorf("check run %s\n%s\n%s\nwant a severe loop in circles", c.Title, c.Summary, c.Text)
	}
	if a := r.State(n).Attempts[0].Receipt; a.Outcome != "edit_loop" || a.Ending != "killed" || a.Pushed || !strings.Contains(strings.Join(a.Reasons, "; "), kept) {
		t.Errorf("outcome %s, ending %s, pushed %v, reasons %q; want a killed loop that names %s", a.Outcome, a.Ending, a.Pushed, a.Reasons, kept)
	}
	if text, err := r.World.File(t.Context(), testrig.Repo, kept, "work.txt"); err != nil || text != "kept\n" {
		t.Errorf("work.txt on %s: %q, %v", kept, text, err)
	}
	if got := r.World.Branches(testrig.Repo)["feature"]; got != head || len(r.World.Pulls(testrig.Repo)) != 1 {
		t.Errorf("the pull request's branch went from %s to %s, %d pull requests; want both untouched", head, got, len(r.World.Pulls(testrig.Repo)))
	}
	if cools := r.Status().Cooldowns; len(cools) != 1 || cools[0].Class != "severe" {
		t.Errorf("cooldowns %+v, want one for a severe loop", cools)
	}
}

func TestLoopVerdictIsShownOnKeptWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(circling, "stream: codex")
	r.Start()
	n := r.Solve("A value", "Please set the value.")
	kept := fmt.Sprintf("pawl/kept-%d-1", n)
	r.Await("the verdict", func() bool {
		return r.Check(r.World.Branches(testrig.Repo)[kept], "pawl/severity").Conclusion == "failure"
	})
	if len(r.World.Pulls(testrig.Repo)) != 0 {
		t.Errorf("%d pull requests, want none for the work of a loop", len(r.World.Pulls(testrig.Repo)))
	}
	r.Await("the status comment", func() bool { return strings.Contains(r.StatusComment(n), kept) })
}
