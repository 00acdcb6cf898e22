package main

import (
	"strings"
	"testing"
)

// withAgent makes a real CLI the only backend of a rig and starts it with the
// CLIs' Node.js on its search path.
func (r *rig) withAgent(s *stand) {
	r.t.Helper()
	r.config += s.section()
	r.startBehindProxy([]string{s.path()})
}

// TestTheReceiptOfARealAgentStandsInTheCheckRun has Claude be halted in its
// prose and run the tests by the tool.
func TestTheReceiptOfARealAgentStandsInTheCheckRun(t *testing.T) {
	t.Parallel()
	s := newStand(t, realCLIs()[1], "prose")
	s.fields = "prices: [{model: claude-opus-4-8, input: 100, cached_input: 50, output: 1000}]"
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: [\"test -f hello.txt\"]\n"})
	r.withAgent(s)
	n := r.solve("A greeting", "Please add hello.txt.")
	if state := r.ending(n); state.State != "done" {
		t.Fatalf("%s (%s %q), want done", state.State, state.Rule, state.Reasons)
	}
	c := r.check(r.world.Pulls(rigRepo)[0].Pull.HeadSHA, "pawl")
	for _, want := range []string{"tokens in", "cached", "$", "opposite thinking mode"} {
		if !strings.Contains(c.Summary+c.Text, want) {
			t.Errorf("the check run lacks %q:\n%s\n%s", want, c.Summary, c.Text)
		}
	}
}
