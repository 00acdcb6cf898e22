package attempt

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
)

func TestOnlyStepsUseIsSummed(t *testing.T) {
	cents := func(c float64) *float64 { c /= 100; return &c }
	var all modelAccess
	for _, e := range []agent.Event{
		{Kind: agent.StepEnded, Step: true, Tokens: &policy.Tokens{Input: 100, CachedInput: 40, Output: 7}, Cost: cents(25)},
		{Kind: agent.Message, Text: "Done."},
		{Kind: agent.StepEnded, Step: true, Tokens: &policy.Tokens{Input: 200, Output: 3}},
		{Kind: agent.StepEnded, Step: true, Cost: cents(50)},
		{Kind: agent.Finished, Tokens: &policy.Tokens{Input: 9000}, Cost: cents(900)}, // the session's use, which may include earlier attempts
	} {
		all.event(e)
	}
	want := policy.Spent{Tokens: policy.Tokens{Input: 300, CachedInput: 40, Output: 10}, CostUSD: cents(75)}
	if diff := cmp.Diff(want, all.used()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
