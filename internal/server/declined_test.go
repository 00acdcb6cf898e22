package server_test

import (
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

func TestDeclinedTaskAsksTheUser(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep two a.txt']\n"})
	r.Agent(testrig.Saying(t, "", "I look at the task.", "DECLINED: a.txt is to be empty, and to hold two\nBoth cannot be."), "stream: codex, escalated_effort: high")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "An odd task", "Please empty a.txt.")
	r.Must(err)
	r.Writes(n, testrig.Writer, "/pawl solve and fill it, too")
	if s := r.Ending(n); s.Rule != policy.RuleDeclined || r.Calls() != 1 {
		t.Fatalf("%d calls, then %s (%s %q); want one, then stopped by declined", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	if got := r.State(n).Attempts[0].Receipt; got.Outcome != policy.Declined || len(got.Verify) != 0 {
		t.Errorf("the outcome is %s, verified by %v; want declined and not verified", got.Outcome, got.Verify)
	}
	r.wantIn("the status comment", r.StatusComment(n), "Not done: the agent declined: a.txt is to be empty")
	r.pullsAre()
	r.Writes(n, testrig.Writer, "/pawl solve only the first half then")
	r.Await("the second attempt", func() bool { return r.Calls() == 2 })
	r.Ending(n)
	r.wantIn("the second prompt", r.Prompt("2"), "and fill it, too", "only the first half then", "The last attempt declined the task", "a.txt is to be empty")
}
