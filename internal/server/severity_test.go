package server_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// edited is how many edits the agent had made when it ended.
func (r *rig) edited() int {
	n, err := strconv.Atoi(strings.TrimSpace(r.Left("edits")))
	r.Must(err)
	return n
}

// pullToWorkOn opens a pull request of a person and asks for work on it.
func (r *rig) pullToWorkOn() (n int, head string) {
	r.T.Helper()
	_, err := r.World.PushCommit(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "feature", Message: "Start", Files: map[string]string{"f.txt": "start\n"}})
	r.Must(err)
	n, err = r.World.OpenPull(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Feature", Body: "A feature.", Head: "feature"})
	r.Must(err)
	head = r.Head(n)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
	r.Must(err)
	return n, head
}

// Which edits are a loop is tested in policy and solver/attempt; this is that the
// stream and the files of an agent at work get there.
func TestALoopIsCutOffWhileItRunsAndItsWorkIsKept(t *testing.T) {
	t.Parallel()
	for name, round := range map[string]string{
		"A to B to A":       `if [ $((i%2)) = 0 ]; then echo 'value: A' > f.txt; else echo 'value: B' > f.txt; fi; change f.txt`,
		"sed -i":            `[ -s f.txt ] || echo 'value: 9' > f.txt; sed -i "s/.*/value: $((i%2))/" f.txt; command 'sed -i s/value/x/ f.txt'`,
		"through the shell": `echo "value: $((i%2))" > f.txt; command 'echo value > f.txt'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent(testrig.CodexAgent+"echo kept > work.txt\nfor i in $(seq 1 600); do "+round+"; sleep 0.01; done\n"+testrig.CodexEnd, "stream: codex")
			r.Start()
			n, head := r.pullToWorkOn()
			r.Await("the verdict", func() bool { return r.Check(head, "pawl/severity").Conclusion == "failure" })
			if got := r.edited(); got < 40 || got > 200 {
				t.Errorf("the agent made %d edits; want it cut off soon after 40", got)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(r.Left("pid")))
			r.Must(err)
			if err := syscall.Kill(pid, 0); err == nil {
				t.Error("the agent still runs")
			}
			c := r.Check(head, "pawl/severity")
			kept := fmt.Sprintf("pawl/kept-%d-1", n)
			if !strings.Contains(c.Title+c.Summary, "severe") || !strings.Contains(c.Summary+c.Text, "in circles") {
				t.Errorf("check run %s\n%s\n%s\nwant a severe loop in circles", c.Title, c.Summary, c.Text)
			}
			a := r.State(n).Attempts[0].Receipt
			if a.Outcome != "loop" || a.Ending != "killed" || a.Pushed || !strings.Contains(strings.Join(a.Reasons, "; "), kept) {
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
		})
	}
}

// A verified success is never cooled down, however much of it went in circles.
func TestALoopWhoseWorkIsVerifiedIsNone(t *testing.T) {
	t.Parallel()
	const passes, fails = "test -f work.txt", "test -f nothing.txt"
	for _, c := range []struct {
		verify           string
		rounds           int // of an edit of each of five files
		class, concluded string
	}{{passes, 9, "", "success"}, {fails, 9, "mild", "neutral"}, {passes, 13, "", "success"}, {fails, 13, "moderate", "failure"}} {
		t.Run(fmt.Sprint(c.verify, " ", c.rounds), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{".github/pawl.yml": "verify: [\"" + c.verify + "\"]\nchecks: {severity: always}\n"})
			r.Agent(testrig.CodexAgent+fmt.Sprintf(`for i in $(seq 1 %d); do for f in 1 2 3 4 5; do echo "value: $((i%%2))" > f$f.txt; change f$f.txt; sleep 0.02; done; done
echo done > work.txt
`, c.rounds)+testrig.CodexEnd, "stream: codex")
			r.Start()
			n, _ := r.pullToWorkOn()
			r.Await("the end of the first attempt", func() bool { a := r.State(n).Attempts; return len(a) > 0 && a[0].Receipt.Outcome != "" })
			a, cools := r.State(n).Attempts[0].Receipt, r.Status().Cooldowns
			if loop := c.class != ""; (a.Outcome == "loop") != loop || (len(cools) == 1) != loop || loop && string(cools[0].Class) != c.class {
				t.Errorf("outcome %s, cooldowns %+v after %+v; want the loop %q", a.Outcome, cools, a.Edits, c.class)
			}
			r.Await("the verdict", func() bool { return r.Check(r.Head(n), "pawl/severity").Conclusion == c.concluded })
		})
	}
}

// Nothing verifies the work here, so that it is the edits alone that are judged.
func TestADebugPrintPutInAndOutFiveTimesCostsNothing(t *testing.T) {
	t.Parallel()
	const prints = `for i in 1 2 3 4 5; do printf 'start\ndump(%d)\n' $i > f.txt; change f.txt; sleep 0.02; echo start > f.txt; change f.txt; sleep 0.02; done
`
	for name, work := range map[string]string{
		"and the mend":        "echo mended >> f.txt; change f.txt\n",
		"within 45 edits":     "for i in $(seq 1 35); do echo \"line $i\" >> f.txt; change f.txt; sleep 0.02; done\n",
		"and nothing besides": "echo done > work.txt\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{".github/pawl.yml": "checks: {severity: always}\n"})
			r.Agent(testrig.CodexAgent+prints+work+testrig.CodexEnd, "stream: codex")
			r.Start()
			n, head := r.pullToWorkOn()
			if s := r.Over(testrig.ThreadName(n)); s.State != "done" || r.Head(n) == head {
				t.Errorf("state %s (%s %q), want done with a push", s.State, s.Rule, s.Reasons)
			}
			a := r.State(n).Attempts[0].Receipt
			if a.Outcome != "edited" || a.Edits.Operations < 10 || len(r.Status().Cooldowns) != 0 {
				t.Errorf("outcome %s of %+v, cooldowns %+v; want work without a cooldown", a.Outcome, a.Edits, r.Status().Cooldowns)
			}
			r.Await("the verdict", func() bool { return r.Check(r.Head(n), "pawl/severity").Conclusion == "success" })
		})
	}
}

func TestSteadyWorkOnOneFileIsNoLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.CodexAgent+"for i in $(seq 1 60); do echo line $i >> f.txt; change f.txt; sleep 0.02; done\n"+testrig.CodexEnd, "stream: codex")
	r.Start()
	n, head := r.pullToWorkOn()
	if s := r.Over(testrig.ThreadName(n)); s.State != "done" || r.Head(n) == head {
		t.Errorf("state %s (%s %v), want done with a push", s.State, s.Rule, s.Reasons)
	}
	r.Await("the verdict", func() bool { return r.Check(r.Head(n), "pawl/severity").Conclusion == "success" })
}

// A formatter leaves a file as it was but for white space, which is no edit that leads back.
func TestAFormatterAfterEachEditIsNoLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.CodexAgent+`for i in $(seq 1 45); do
  printf '\tline %d\n' $i >> f.txt; change f.txt; sleep 0.02; sed 's/\t/  /' f.txt > neat; cat neat > f.txt; command 'tidy -w f.txt'; sleep 0.02
done; rm neat
`+testrig.CodexEnd, "stream: codex")
	r.Start()
	n, head := r.pullToWorkOn()
	if s := r.Over(testrig.ThreadName(n)); s.State != "done" || r.Head(n) == head {
		t.Errorf("state %s (%s %q), want done with a push", s.State, s.Rule, s.Reasons)
	}
	if a := r.State(n).Attempts[0].Receipt; a.Outcome != "edited" || a.Edits.Operations < 40 || len(r.Status().Cooldowns) != 0 {
		t.Errorf("outcome %s of %+v, want no loop", a.Outcome, a.Edits)
	}
}

func TestCountsDecideWhereNothingElseIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edits, repeats    int
		conclusion, class string
	}{
		"mild":            {41, 8, "neutral", "mild"},
		"severe by edits": {105, 10, "failure", "severe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent(testrig.CodexAgent+fmt.Sprintf("echo done >> f.txt\nfor i in $(seq 1 %d); do change hot.go; done\nfor i in $(seq 1 %d); do change other$i.go; done\n",
				c.repeats, c.edits-c.repeats)+testrig.CodexEnd, "stream: codex")
			r.Start()
			n, head := r.pullToWorkOn()
			r.Await("the push", func() bool { return r.Head(n) != head })
			r.Await("the verdict", func() bool { return r.Check(r.Head(n), "pawl/severity").Conclusion == c.conclusion })
			if got := r.Check(r.Head(n), "pawl/severity"); !strings.Contains(got.Title+got.Summary, c.class) {
				t.Errorf("check run %s\n%s\nwant %s", got.Title, got.Summary, c.class)
			}
		})
	}
}

func TestALookAtTheFilesFollowsNoLinkAndWaitsForNoPipe(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	secret := r.Dir + "/secret"
	r.Must(os.WriteFile(secret, []byte("secret\n"), 0o600))
	r.Agent(testrig.CodexAgent+"ln -s '"+secret+"' link.txt; mkfifo pipe\nfor i in $(seq 1 20); do change link.txt; change pipe; change ../../../secret; done; rm pipe link.txt; echo done > f.txt\n"+testrig.CodexEnd, "stream: codex")
	r.Start()
	n, _ := r.pullToWorkOn()
	s := r.Over(testrig.ThreadName(n))
	if e := r.State(n).Attempts[0].Receipt.Edits; s.State == "" || e.Seen != 0 || e.Operations != 60 {
		t.Errorf("state %s, edits %+v; want 60 edits of which nothing is known", s.State, e)
	}
}

func TestALoopOnAnIssueShowsItsVerdictOnTheKeptWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.CodexAgent+"echo kept > work.txt\nfor i in $(seq 1 600); do echo \"value: $((i%2))\" > f.txt; change f.txt; sleep 0.01; done\n"+testrig.CodexEnd, "stream: codex")
	r.Start()
	n := r.Solve("A value", "Please set the value.")
	kept := fmt.Sprintf("pawl/kept-%d-1", n)
	r.Await("the verdict", func() bool {
		return r.Check(r.World.Branches(testrig.Repo)[kept], "pawl/severity").Conclusion == "failure"
	})
	if len(r.World.Pulls(testrig.Repo)) != 0 {
		t.Errorf("%d pull requests, want none for the work of a loop", len(r.World.Pulls(testrig.Repo)))
	}
	r.Await("the status comment", func() bool {
		comments := r.World.Comments(testrig.Repo, n)
		return strings.Contains(comments[len(comments)-1].Body, kept)
	})
}
