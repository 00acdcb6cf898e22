package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// away529 is what Codex prints where its provider answers 529 each time.
const away529 = `echo '{"type":"thread.started","thread_id":"019a72db-80ed-7911-8a8a-94994ffc009b"}'
echo '{"type":"turn.started"}'
echo '{"type":"error","message":"unexpected status 529 <unknown status code>: Overloaded"}'
echo '{"type":"turn.failed","error":{"message":"unexpected status 529 <unknown status code>: Overloaded"}}'
exit 1
`

// completed is what it prints at the end of its work.
const completed = `echo '{"type":"thread.started","thread_id":"019a72db-80ed-7911-8a8a-94994ffc009b"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"The work is done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}'
`

const call = "cat > \"$CTRL/prompt.$(wc -l < \"$CTRL/calls\" | tr -d ' ')\"; n=$(wc -l < \"$CTRL/calls\")\n"

// soon makes the waits of policy.transient as short as the configuration allows.
const soon = "policy: {transient: {backoff_start: 1s, backoff_cap: 1s}}\n"

func TestAnOverloadThatPassesIsWaitedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = soon
	r.Agent(call+"if [ $n -le 2 ]; then\n"+away529+"fi\necho two >> a.txt\n"+completed, "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" || s.Rule != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	all := r.State(n).Attempts
	if len(all) != 3 {
		t.Fatalf("%d attempts, want 3", len(all))
	}
	for i, a := range all[:2] {
		next := all[i+1]
		if a.Receipt.Ending != policy.Overloaded || next.Decision.Rule != policy.RuleTransient || next.At.Sub(a.EndedAt) < time.Second {
			t.Errorf("attempt %d ended %s, the next came by %s after %s; want a wait for the overload", a.N, a.Receipt.Ending, next.Decision.Rule, next.At.Sub(a.EndedAt))
		}
	}
}

func TestTheWaitForAnOverloadIsShownAndTheFifthInARowStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = soon
	r.Agent(call+away529, "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	waited := false
	r.Await("the end", func() bool {
		s := r.Thread(testrig.ThreadName(n))
		waited = waited || s.State == "waiting" && s.Rule == "transient"
		return s.State == "stopped"
	})
	s := r.Thread(testrig.ThreadName(n))
	if r.Calls() != 5 || s.Rule != "transient" || !strings.Contains(strings.Join(s.Reasons, " "), "5 attempts ended so") || !waited {
		t.Errorf("%d calls, %s (%s %q), shown as waiting: %t; want five calls with waits, then stopped", r.Calls(), s.State, s.Rule, s.Reasons, waited)
	}
}

func TestAnotherAccountTakesOverAtOnceFromAnOverload(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(call+"if [ $n -le 1 ]; then\n"+away529+"fi\necho two >> a.txt\n"+completed, "stream: codex, account: main")
	line := r.Config[strings.Index(r.Config, "  - {"):]
	r.Config += strings.NewReplacer("name: mine", "name: spare", "account: main", "account: spare").Replace(line)
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s, all := r.Ending(n), r.State(n).Attempts
	if s.State != "done" || len(all) != 2 || all[0].Account == all[1].Account || all[1].Decision.Rule != policy.RuleTransient {
		t.Errorf("%s (%s %q) after %+v; want two accounts, then done", s.State, s.Rule, s.Reasons, all)
	}
}

func TestWorkThatALimitCutIsDoneAndVerifiedOnceItsContinuationCompletes(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent(call+"if [ $n -le 1 ]; then echo done >> a.txt\n"+fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(3*time.Hour)))+"fi\n"+completed, "stream: codex")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.Rule != "usage_limit" {
		t.Fatalf("%s (%s %q), want stopped by the limit", s.State, s.Rule, s.Reasons)
	}
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl resume")
	r.Must(err)
	r.Await("the continuation", func() bool { return len(r.State(n).Attempts) == 2 })
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	a := r.State(n).Attempts
	if last := a[len(a)-1].Receipt; len(a) != 2 || last.Progress() || len(last.Verify) != 1 || !last.Verify[0].Passed {
		t.Errorf("%d attempts, the last %+v; want two, the last verified without a change", len(a), last)
	}
	sha := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA
	if c := r.Check(sha, "pawl"); c.Conclusion != "success" || !strings.Contains(c.Title, "verified") {
		t.Errorf("check run pawl: %s, %q; want success, verified", c.Conclusion, c.Title)
	}
}

func TestAnAttemptThatGivesUpAfterAFailedVerificationClimbs(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent(call+"if [ $n -eq 1 ]; then echo wrong >> a.txt; fi\nif [ $n -eq 3 ]; then echo done >> a.txt; fi\n", "effort: low, escalated_effort: high")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.State != "done" || r.Calls() != 3 {
		t.Fatalf("%s (%s %q) after %d calls; want done after three", s.State, s.Rule, s.Reasons, r.Calls())
	}
	if a := r.State(n).Attempts; a[1].Receipt.Progress() || a[2].Decision.Rung != policy.RungEffort {
		t.Errorf("attempts %+v; want one that gave up, then a rung", a)
	}
	if !strings.Contains(r.Left("prompt.3"), "the word is missing") {
		t.Errorf("the prompt after it does not tell what failed\n%s", r.Left("prompt.3"))
	}
}
