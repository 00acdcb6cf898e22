package main

import (
	"fmt"
	"testing"
)

const workedOff = "backlog: {label: later, repositories: [acme/widgets], every: 1h, per_day: 5}\n"

// backlogged opens issues with the label of the backlog.
func (r *rig) backlogged(n int) (numbers []int) {
	r.t.Helper()
	for i := range n {
		number, err := r.world.OpenIssue(rigRepo, writer, fmt.Sprintf("Line %d", i), "Please add a line.", "later")
		r.must(err)
		numbers = append(numbers, number)
	}
	return numbers
}

func TestTheOldestIssueOfABacklogIsSolvedWithoutAnOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.config += workedOff
	issues := r.backlogged(2)
	r.start()
	if s := r.ending(issues[0]); s.State != "done" || len(r.world.Pulls(rigRepo)) != 1 {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	state := r.state(issues[0])
	if f := state.Feedback; len(f) != 1 || f[0].Reason != `label "later" is worked off` || f[0].By.Login != writer {
		t.Errorf("asked by %+v", f)
	}
	// A server that is started again does not begin the next one before its time.
	r.stop(9)
	r.start()
	r.settle()
	if r.calls() != 1 {
		t.Errorf("%d calls of the agent, want 1", r.calls())
	}
}

func TestOfNodesThatShareADatabaseOneWorksTheBacklogOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.agent(plainAgent, "")
	c.config += workedOff
	issues := c.backlogged(3)
	c.join()
	c.join()
	c.join()
	if s := c.ending(issues[0]); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	if c.calls() != 1 {
		t.Errorf("%d calls of the agent by three nodes, want 1", c.calls())
	}
}
