package main

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// withAgent makes a real CLI the only backend of a rig and starts it with the
// CLIs' Node.js on its search path.
func (r *rig) withAgent(s *stand) {
	r.t.Helper()
	r.config += s.section()
	r.startBehindProxy([]string{s.path()})
}

// TestALimitThatTheAgentHidesIsShownAtGitHub has OpenCode meet a usage limit,
// which it tells nobody and sleeps through.
func TestALimitThatTheAgentHidesIsShownAtGitHub(t *testing.T) {
	t.Parallel()
	s := newStand(t, realCLIs()[3], "usage-limit")
	r := newRig(t, nil)
	r.withAgent(s)
	n := r.solve("A greeting", "Please add a greeting.")
	state := r.ending(n)
	a := r.state(n).Attempts
	if len(a) != 1 || a[0].Receipt.Ending != policy.UsageLimit || state.Rule != "usage_limit" {
		t.Fatalf("%s (%s %q) after %+v; want a usage limit", state.State, state.Rule, state.Reasons, a)
	}
	reset := a[0].Receipt.Limit.ResetsAt
	if off := reset.Sub(s.asked()[0].Time.Add(time.Hour)); off.Abs() > 30*time.Second {
		t.Errorf("reset at %s, which is off by %s", reset, off)
	}
	shown := ""
	for _, c := range r.world.Comments(rigRepo, n) {
		shown += c.Body + "\n"
	}
	for _, want := range []string{"usage limit", reset.UTC().Format("15:04")} {
		if !strings.Contains(shown, want) {
			t.Errorf("the comments lack %q:\n%s", want, shown)
		}
	}
	if b := r.status().Breakers; len(b) != 1 || b[0].Account != "opencode" || b[0].Kind != "usage_limit" || b[0].ResetsAt == nil || !b[0].ResetsAt.Equal(reset) {
		t.Errorf("breakers %+v, want that of the account until %s", b, reset)
	}
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
