package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func verifying() map[string]string {
	return map[string]string{
		"a.txt": "one\n",
		".github/pawl.yml": "verify:\n  - grep -q done a.txt || { echo the word is missing, line $(wc -l < a.txt); " +
			"head -c 90 /dev/urandom | base64 | tr -dc a-zA-Z | fold -w 7 | tr '\\n' ' '; echo; exit 3; }\n",
	}
}

func TestFailedVerificationIsRetriedThenEscalated(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"; echo \"$PAWL_EFFORT $PAWL_RUNG $PAWL_ATTEMPT\" >> \"$CTRL/env\"\n"+
		"head -c 120 /dev/urandom | base64 > file$n.txt; [ \"$PAWL_EFFORT\" = high ] && echo done >> a.txt; echo $n >> a.txt\n", "effort: low, escalated_effort: high")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); r.Calls() != 4 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 4, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	if got := r.Left("env"); got != "low 0 1\nlow 2 2\nlow 2 3\nhigh 3 4\n" {
		t.Errorf("efforts, rungs and numbers %q", got)
	}
	if p := r.Prompt("4"); !strings.Contains(p, "the word is missing, line 4") || !strings.Contains(p, "exit code 3") {
		t.Errorf("the last prompt lacks the verification's output\n%s", p)
	}
	summary := r.Check(r.Head(r.PullOf(n)), "pawl").Summary
	for _, want := range []string{"attempt 3, rung 2, retry with what failed", "attempt 4, rung 3, more effort", "one attempt at the escalated effort (high)`: helped"} {
		if !strings.Contains(summary, want) {
			t.Errorf("the check run does not say %q:\n%s", want, summary)
		}
	}
	l := r.Status().Learning
	if got := fmt.Sprint(l.FirstTries); got != "[{mine 1 0}]" {
		t.Errorf("first tries %s, want one run that did not pass at once", got)
	}
	for i, want := range []string{"0/0", "0/2", "1/1", "0/0"} {
		if got := fmt.Sprintf("%d/%d", l.Rungs[i].Recovered, l.Rungs[i].Times); got != want {
			t.Errorf("rung %d recovered %s times, want %s", i+1, got, want)
		}
	}
}

func TestRaiseButtonAllowsAnotherDaysAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = "policy: {restarts: {max_per_thread_per_day: 1}}\n"
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, pull := r.Solved()
	r.Must(r.Commenting(pull, testrig.Writer, "Please add another word to a.txt.")())
	run := func() fakegithub.CheckRun { return r.Check(r.Head(pull), "pawl") }
	r.Await("the button", func() bool {
		return slices.ContainsFunc(run().Actions, func(b fakegithub.CheckAction) bool { return b.Identifier == "raise" })
	})
	if s := r.Thread(testrig.ThreadName(n)); r.Calls() != 1 || s.State != "waiting" || s.Rule != "daily_cap" {
		t.Fatalf("%d calls, then %s (%s %v); want 1, then a wait by daily_cap", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	r.Must(r.World.ClickButton(testrig.Repo, run().ID, "raise", testrig.Writer))
	r.Await("the attempt that a user allowed", func() bool { return r.Calls() == 2 })
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %v), want done", s.State, s.Rule, s.Reasons)
	}
}
