package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// verifying is a repository whose verify command wants the word done in a.txt.
func verifying() map[string]string {
	return map[string]string{
		"a.txt":            "one\n",
		".github/pawl.yml": "verify:\n  - grep -q done a.txt || { echo the word is missing, line $(wc -l < a.txt); head -c 90 /dev/urandom | base64 | tr -dc a-zA-Z | fold -w 7 | tr '\\n' ' '; echo; exit 3; }\n",
	}
}

func TestAFailedAttemptWithProgressIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	// The same change and the same words every time would be stagnation.
	r.Agent("cat > \"$CTRL/prompt\"; n=$(wc -l < \"$CTRL/calls\")\ncase $n in\n"+
		"1) seq 1 40 > b.txt; echo out of memory while linking >&2; exit 1;;\n"+
		"2) grep -q 40 b.txt || exit 7; sed -n p a.txt a.txt > c.txt; echo the network went away during a download >&2; exit 2;;\n"+
		"*) echo two >> a.txt;; esac\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); r.Calls() != 3 || s.State != "done" {
		t.Errorf("%d calls, then %s (%s %q); want 3, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	for _, f := range []string{"b.txt", "c.txt"} {
		if _, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), f); err != nil {
			t.Errorf("%s of an earlier attempt: %v", f, err)
		}
	}
}

func TestAFailedVerificationIsRetriedWithItsOutputTwiceThenTheEffortIsRaised(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"; echo \"$PAWL_EFFORT $PAWL_RUNG $PAWL_ATTEMPT\" > \"$CTRL/env.$n\"\n"+
		"head -c 120 /dev/urandom | base64 > file$n.txt; echo $n >> a.txt\n", "effort: low, escalated_effort: high")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	s := r.Ending(n)
	if r.Calls() != 4 || s.State != "stopped" || s.Rule != "verify_failed" {
		t.Fatalf("%d calls, then %s (%s %q); want 4, then stopped by verify_failed", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	for i, want := range []string{"low 0 1", "low 2 2", "low 2 3", "high 3 4"} {
		if got := strings.TrimSpace(r.Left(fmt.Sprintf("env.%d", i+1))); got != want {
			t.Errorf("attempt %d ran with effort, rung and number %q, want %q", i+1, got, want)
		}
		prompt := r.Left(fmt.Sprintf("prompt.%d", i+1))
		said := strings.Contains(prompt, fmt.Sprintf("the word is missing, line %d", i+1)) && strings.Contains(prompt, "exit code 3")
		if said != (i > 0) {
			t.Errorf("the prompt of attempt %d tells the output of the verification: %v, want %v\n%s", i+1, said, i > 0, prompt)
		}
		if !strings.Contains(prompt, "Please add the right word to a.txt.") {
			t.Errorf("the prompt of attempt %d lacks the description\n%s", i+1, prompt)
		}
	}
	sha := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA
	if c := r.Check(sha, "pawl"); c.Conclusion != "action_required" || !strings.Contains(c.Summary+c.Text, "the word is missing") {
		t.Errorf("check run pawl: %s\n%s\nwant action_required with what the verification said", c.Conclusion, c.Summary)
	}
}

func TestVerifyCommandsComeFromTheDefaultBranchOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("cat > /dev/null; echo more >> a.txt; printf 'verify: [\"true\"]\\n' > .github/pawl.yml\n", "")
	r.Config += "policy: {ladder: {verify_retries: 0}}\n"
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	s := r.Ending(n)
	if s.Rule != "verify_failed" {
		t.Errorf("%s (%s %q), want verify_failed", s.State, s.Rule, s.Reasons)
	}
	got, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), ".github/pawl.yml")
	if err != nil || got != verifying()[".github/pawl.yml"] {
		t.Errorf(".github/pawl.yml on the branch: %q, %v; want it unchanged", got, err)
	}
}

func TestThreadsKeepTheirOwnOutcomes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("if grep -q fail; then echo cannot >&2; exit 1; fi; echo two >> a.txt\n", "")
	r.Start()
	good, bad := r.Solve("One", "Please add a line."), r.Solve("Two", "Please fail.")
	if s := r.Ending(good); s.State != "done" {
		t.Errorf("the first is %s (%s), want done", s.State, s.Rule)
	}
	if s := r.Ending(bad); s.Rule != "no_progress" {
		t.Errorf("the second is %s (%s), want no_progress", s.State, s.Rule)
	}
	if a := r.State(bad).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Outcome(policy.Crashed) {
		t.Errorf("attempts of the second: %+v", a)
	}
}

func TestTheDailyCapHoldsWhoeverCausesTheEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = "policy: {restarts: {max_per_thread_per_day: 3}}\n"
	r.Agent("cat > /dev/null; echo no idea >&2; exit 1\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Idle(n)
	for range 5 {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
		r.Must(err)
		r.Must(r.World.WaitDelivered(t.Context()))
		r.Idle(n)
	}
	if v := r.Thread(testrig.ThreadName(n)); r.Calls() != 3 || v.State != "waiting" || v.Rule != "daily_cap" || v.Until == nil {
		t.Fatalf("%d calls, then %s (%s %v) until %v; want 3, then a wait by daily_cap", r.Calls(), v.State, v.Rule, v.Reasons, v.Until)
	}
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl raise")
	r.Must(err)
	r.Await("an attempt that a person allowed", func() bool { return r.Calls() == 4 })
}

func TestTheButtonRaiseAllowsADaysAttemptsOnceMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = "policy: {restarts: {max_per_thread_per_day: 1}}\n"
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, pull := r.Solved()
	r.Must(r.Says(pull, testrig.Writer, "Please add another word to a.txt.")())
	run := func() fakegithub.CheckRun { return r.Check(r.Head(pull), "pawl") }
	r.Await("the button", func() bool {
		return slices.ContainsFunc(run().Actions, func(b fakegithub.CheckAction) bool { return b.Identifier == "raise" })
	})
	r.Must(r.World.ClickButton(testrig.Repo, run().ID, "raise", testrig.Reader))
	r.Settle()
	if v := r.Thread(testrig.ThreadName(n)); r.Calls() != 1 || v.State != "waiting" || v.Rule != "daily_cap" {
		t.Fatalf("%d calls, then %s (%s %v) after a reader's click; want 1, then a wait by daily_cap", r.Calls(), v.State, v.Rule, v.Reasons)
	}
	r.Must(r.World.ClickButton(testrig.Repo, run().ID, "raise", testrig.Writer))
	r.Await("the attempt that a person allowed", func() bool { return r.Calls() == 2 })
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %v), want done", s.State, s.Rule, s.Reasons)
	}
}
