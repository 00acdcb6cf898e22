package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnOrderThatDoesNothingIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n := r.solve("A line", "Please add a line.")
	r.ending(n)
	for i, order := range []struct{ words, want string }{
		{"/pawl use gpt-9@x", "is no backend of this server; nothing was done.\n\nThere is `mine`."},
		{"/pawl stop", "Nothing ran here, so nothing had to be stopped."},
		{"/pawl use", "`/pawl use` needs the name of a backend"},
	} {
		_, err := r.world.Comment(rigRepo, n, writer, order.words)
		r.must(err)
		r.await(fmt.Sprintf("an answer to %s", order.words), func() bool {
			return strings.Contains(strings.Join(r.answers(n), "\n"), order.want)
		})
		if r.calls() != 1 {
			t.Errorf("%d: %d calls of the agent", i, r.calls())
		}
	}
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl escalate")
	r.must(err)
	r.await("an answer", func() bool {
		return strings.Contains(strings.Join(r.answers(n), "\n"), "No backend that works here has an escalated effort")
	})
	r.await("one attempt", func() bool { return r.calls() == 2 })
	if strings.Contains(strings.Join(r.answers(n), "\n"), "gpt-9@x is") {
		t.Errorf("a stranger's word stands bare: %q", r.answers(n))
	}
	r.ending(n)
	if s := r.state(n); s.Pinned != "" {
		t.Errorf("the thread is pinned to %q", s.Pinned)
	}
}

func TestALabelNamesABackend(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q]}\n", filepath.Join(r.dir, "agent.sh"))
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "A line", "Please add a line.")
	r.must(err)
	r.must(r.world.AddLabel(rigRepo, n, reader, "pawl:other"))
	r.must(r.world.AddLabel(rigRepo, n, writer, "pawlish"))
	r.settle()
	if r.calls() != 0 {
		t.Fatalf("%d calls of the agent after the label of somebody who may not write", r.calls())
	}
	second, err := r.world.OpenIssue(rigRepo, writer, "Another line", "Please add another line.")
	r.must(err)
	r.must(r.world.AddLabel(rigRepo, second, writer, "pawl:nobody"))
	r.await("an answer", func() bool {
		return strings.Contains(strings.Join(r.answers(second), "\n"), "`nobody` is no backend of this server; nothing was done.\n\nThere are `mine`, `other`.")
	})
	r.must(r.world.AddLabel(rigRepo, second, writer, "pawl:other"))
	if s := r.ending(second); s.State != "done" || r.state(second).Attempts[0].Backend != "other" || r.calls() != 1 {
		t.Errorf("%s (%s %q) by %+v", s.State, s.Rule, s.Reasons, r.state(second).Attempts)
	}
}

func TestAThreadThatNeverRanIsNotCalledRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	for order, want := range map[string]string{"/pawl status": "**Nothing was asked of Pawl here**", "/pawl why": "Now: **Nothing was asked of Pawl here**", "/pawl stop": "Nothing ran here"} {
		n, err := r.world.OpenIssue(rigRepo, writer, "A line", "Please add a line.")
		r.must(err)
		_, err = r.world.Comment(rigRepo, n, writer, order)
		r.must(err)
		r.await("an answer to "+order, func() bool { return len(r.answers(n)) > 0 })
		if all := strings.Join(r.answers(n), "\n"); !strings.Contains(all, want) || strings.Contains(all, "Running") || r.calls() != 0 {
			t.Errorf("%s is answered %q after %d calls of the agent", order, all, r.calls())
		}
	}
}
