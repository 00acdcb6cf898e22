package main

import (
	"fmt"
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
	r.await("an answer", func() bool { return strings.Contains(strings.Join(r.answers(n), "\n"), "No backend of this server has an escalated effort") })
	r.await("one attempt", func() bool { return r.calls() == 2 })
	if strings.Contains(strings.Join(r.answers(n), "\n"), "gpt-9@x is") {
		t.Errorf("a stranger's word stands bare: %q", r.answers(n))
	}
	r.ending(n)
	if s := r.state(n); s.Pinned != "" {
		t.Errorf("the thread is pinned to %q", s.Pinned)
	}
}
