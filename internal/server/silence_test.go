package server_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestAnOrderThatDoesNothingIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n := r.Solve("A line", "Please add a line.")
	r.Ending(n)
	for i, order := range []struct{ words, want string }{
		{"/pawl use gpt-9@x", "is no backend of this server; nothing was done.\n\nThere is `mine`."},
		{"/pawl stop", "Nothing ran here, so nothing had to be stopped."},
		{"/pawl use", "`/pawl use` needs the name of a backend"},
	} {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, order.words)
		r.Must(err)
		r.Await(fmt.Sprintf("an answer to %s", order.words), func() bool {
			return strings.Contains(strings.Join(r.Answers(n), "\n"), order.want)
		})
		if r.Calls() != 1 {
			t.Errorf("%d: %d calls of the agent", i, r.Calls())
		}
	}
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl escalate")
	r.Must(err)
	r.Await("an answer", func() bool {
		return strings.Contains(strings.Join(r.Answers(n), "\n"), "No backend that works here has an escalated effort")
	})
	r.Await("one attempt", func() bool { return r.Calls() == 2 })
	if strings.Contains(strings.Join(r.Answers(n), "\n"), "gpt-9@x is") {
		t.Errorf("a stranger's word stands bare: %q", r.Answers(n))
	}
	r.Ending(n)
	if s := r.State(n); s.Pinned != "" {
		t.Errorf("the thread is pinned to %q", s.Pinned)
	}
}

func TestALabelNamesABackend(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q]}\n", filepath.Join(r.Dir, "agent.sh"))
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add a line.")
	r.Must(err)
	r.Must(r.World.AddLabel(testrig.Repo, n, testrig.Reader, "pawl:other"))
	r.Must(r.World.AddLabel(testrig.Repo, n, testrig.Writer, "pawlish"))
	r.Settle()
	if r.Calls() != 0 {
		t.Fatalf("%d calls of the agent after the label of somebody who may not write", r.Calls())
	}
	second, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Another line", "Please add another line.")
	r.Must(err)
	r.Must(r.World.AddLabel(testrig.Repo, second, testrig.Writer, "pawl:nobody"))
	r.Await("an answer", func() bool {
		return strings.Contains(strings.Join(r.Answers(second), "\n"), "`nobody` is no backend of this server; nothing was done.\n\nThere are `mine`, `other`.")
	})
	r.Must(r.World.AddLabel(testrig.Repo, second, testrig.Writer, "pawl:other"))
	if s := r.Ending(second); s.State != "done" || r.State(second).Attempts[0].Backend != "other" || r.Calls() != 1 {
		t.Errorf("%s (%s %q) by %+v", s.State, s.Rule, s.Reasons, r.State(second).Attempts)
	}
}

func TestAThreadThatNeverRanIsNotCalledRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	for order, want := range map[string]string{"/pawl status": "**Nothing was asked of Pawl here**", "/pawl why": "Now: **Nothing was asked of Pawl here**", "/pawl stop": "Nothing ran here"} {
		n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add a line.")
		r.Must(err)
		_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, order)
		r.Must(err)
		r.Await("an answer to "+order, func() bool { return len(r.Answers(n)) > 0 })
		if all := strings.Join(r.Answers(n), "\n"); !strings.Contains(all, want) || strings.Contains(all, "Running") || r.Calls() != 0 {
			t.Errorf("%s is answered %q after %d calls of the agent", order, all, r.Calls())
		}
	}
}
