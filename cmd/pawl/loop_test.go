package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
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
	r.agent("cat > \"$CTRL/prompt\"; n=$(wc -l < \"$CTRL/calls\")\ncase $n in\n"+
		"1) seq 1 40 > b.txt; echo out of memory while linking >&2; exit 1;;\n"+
		"2) grep -q 40 b.txt || exit 7; sed -n p a.txt a.txt > c.txt; echo the network went away during a download >&2; exit 2;;\n"+
		"*) echo two >> a.txt;; esac\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.ending(n); r.calls() != 3 || s.State != "done" {
		t.Errorf("%d calls, then %s (%s %q); want 3, then done", r.calls(), s.State, s.Rule, s.Reasons)
	}
	for _, f := range []string{"b.txt", "c.txt"} {
		if _, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), f); err != nil {
			t.Errorf("%s of an earlier attempt: %v", f, err)
		}
	}
}

func TestAFailedVerificationIsRetriedWithItsOutputTwiceThenTheEffortIsRaised(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"; echo \"$PAWL_EFFORT $PAWL_RUNG $PAWL_ATTEMPT\" > \"$CTRL/env.$n\"\n"+
		"head -c 120 /dev/urandom | base64 > file$n.txt; echo $n >> a.txt\n", "effort: low, escalated_effort: high")
	r.start()
	n := r.solve("A word", "Please add the right word to a.txt.")
	s := r.ending(n)
	if r.calls() != 4 || s.State != "stopped" || s.Rule != "verify_failed" {
		t.Fatalf("%d calls, then %s (%s %q); want 4, then stopped by verify_failed", r.calls(), s.State, s.Rule, s.Reasons)
	}
	for i, want := range []string{"low 0 1", "low 2 2", "low 2 3", "high 3 4"} {
		if got := strings.TrimSpace(r.left(fmt.Sprintf("env.%d", i+1))); got != want {
			t.Errorf("attempt %d ran with effort, rung and number %q, want %q", i+1, got, want)
		}
		prompt := r.left(fmt.Sprintf("prompt.%d", i+1))
		said := strings.Contains(prompt, fmt.Sprintf("the word is missing, line %d", i+1)) && strings.Contains(prompt, "exit code 3")
		if said != (i > 0) {
			t.Errorf("the prompt of attempt %d tells the output of the verification: %v, want %v\n%s", i+1, said, i > 0, prompt)
		}
		if !strings.Contains(prompt, "Please add the right word to a.txt.") {
			t.Errorf("the prompt of attempt %d lacks the description\n%s", i+1, prompt)
		}
	}
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	if c := r.check(sha, "pawl"); c.Conclusion != "action_required" || !strings.Contains(c.Summary+c.Text, "the word is missing") {
		t.Errorf("check run pawl: %s\n%s\nwant action_required with what the verification said", c.Conclusion, c.Summary)
	}
}

func TestVerifyCommandsComeFromTheDefaultBranchOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.agent("cat > /dev/null; echo more >> a.txt; printf 'verify: [\"true\"]\\n' > .github/pawl.yml\n", "")
	r.config += "policy: {ladder: {verify_retries: 0}}\n"
	r.start()
	n := r.solve("A word", "Please add the right word to a.txt.")
	s := r.ending(n)
	if s.Rule != "verify_failed" {
		t.Errorf("%s (%s %q), want verify_failed", s.State, s.Rule, s.Reasons)
	}
	got, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), ".github/pawl.yml")
	if err != nil || got != verifying()[".github/pawl.yml"] {
		t.Errorf(".github/pawl.yml on the branch: %q, %v; want it unchanged", got, err)
	}
}

func TestAWaitSurvivesKill9AndDoublesNothing(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.config = "policy: {usage_limit: {auto_continue_on_limit_reset: true}}\n"
	reset := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Minute)
	r.agent("echo two >> a.txt\n"+fmt.Sprintf(limited, resetText(reset)), "stream: codex")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.await("the wait", func() bool { return r.thread(threadName(n)).State == "waiting" })
	r.settle()
	before := r.thread(threadName(n))
	events := r.state(n).Seq
	r.stop(syscall.SIGKILL)
	r.start()
	r.settle()
	after := r.thread(threadName(n))
	if r.calls() != 1 || after.State != "waiting" || !after.Until.Equal(*before.Until) {
		t.Errorf("after the restart: %d calls, %s until %v; want 1 call and the wait until %v", r.calls(), after.State, after.Until, before.Until)
	}
	if got := r.state(n).Seq; got != events {
		t.Errorf("the log grew from %d to %d events by a restart", events, got)
	}
	r.once(n)
	// A comment that is no command does not end the wait, resume does.
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl resume")
	r.must(err)
	r.await("the resumed attempt", func() bool { return r.calls() == 2 })
	if got := r.state(n).Attempts[1].Decision.Reasons.Texts(); !slices.Contains(got, "ada asked to resume") {
		t.Errorf("reasons %q, want who asked", got)
	}
}

// once checks that the thread has one pull request, one status comment and one
// check run of each name on each commit.
func (r *rig) once(n int) {
	r.t.Helper()
	if p := r.world.Pulls(rigRepo); len(p) != 1 {
		r.t.Errorf("%d pull requests, want 1: %+v", len(p), p)
	}
	comments := 0
	for _, c := range r.world.Comments(rigRepo, n) {
		if c.ViaApp {
			comments++
		}
	}
	if comments != 1 {
		r.t.Errorf("%d comments by Pawl, want 1: %+v", comments, r.world.Comments(rigRepo, n))
	}
	seen := map[string]int{}
	for _, c := range r.world.CheckRuns(rigRepo) {
		seen[c.SHA[:7]+" "+c.Name]++
	}
	for name, count := range seen {
		if count != 1 {
			r.t.Errorf("check run %s is there %d times", name, count)
		}
	}
	if len(seen) == 0 {
		r.t.Error("no check run is there")
	}
}

func TestThreadsKeepTheirOwnOutcomes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("if grep -q fail; then echo cannot >&2; exit 1; fi; echo two >> a.txt\n", "")
	r.start()
	good, bad := r.solve("One", "Please add a line."), r.solve("Two", "Please fail.")
	if s := r.ending(good); s.State != "done" {
		t.Errorf("the first is %s (%s), want done", s.State, s.Rule)
	}
	if s := r.ending(bad); s.Rule != "no_progress" {
		t.Errorf("the second is %s (%s), want no_progress", s.State, s.Rule)
	}
	if a := r.state(bad).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Outcome(policy.Crashed) {
		t.Errorf("attempts of the second: %+v", a)
	}
}

func TestTheDailyCapHoldsWhoeverCausesTheEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.config = "policy: {restarts: {max_per_thread_per_day: 3}}\n"
	r.agent("cat > /dev/null; echo no idea >&2; exit 1\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.idle(n)
	for range 5 {
		_, err := r.world.Comment(rigRepo, n, writer, "/pawl retry")
		r.must(err)
		r.must(r.world.WaitDelivered(t.Context()))
		r.idle(n)
	}
	if v := r.thread(threadName(n)); r.calls() != 3 || v.State != "waiting" || v.Rule != "daily_cap" || v.Until == nil {
		t.Fatalf("%d calls, then %s (%s %v) until %v; want 3, then a wait by daily_cap", r.calls(), v.State, v.Rule, v.Reasons, v.Until)
	}
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl raise")
	r.must(err)
	r.await("an attempt that a person allowed", func() bool { return r.calls() == 4 })
}

func TestTheButtonRaiseAllowsADaysAttemptsOnceMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.config = "policy: {restarts: {max_per_thread_per_day: 1}}\n"
	r.agent(plainAgent, "")
	r.start()
	n, pull := r.solved()
	r.must(r.says(pull, writer, "Please add another word to a.txt.")())
	run := func() fakegithub.CheckRun { return r.check(r.head(pull), "pawl") }
	r.await("the button", func() bool {
		return slices.ContainsFunc(run().Actions, func(b fakegithub.CheckAction) bool { return b.Identifier == "raise" })
	})
	r.must(r.world.ClickButton(rigRepo, run().ID, "raise", reader))
	r.settle()
	if v := r.thread(threadName(n)); r.calls() != 1 || v.State != "waiting" || v.Rule != "daily_cap" {
		t.Fatalf("%d calls, then %s (%s %v) after a reader's click; want 1, then a wait by daily_cap", r.calls(), v.State, v.Rule, v.Reasons)
	}
	r.must(r.world.ClickButton(rigRepo, run().ID, "raise", writer))
	r.await("the attempt that a person allowed", func() bool { return r.calls() == 2 })
	if s := r.ending(n); s.State != "done" {
		t.Errorf("%s (%s %v), want done", s.State, s.Rule, s.Reasons)
	}
}
