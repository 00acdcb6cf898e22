package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestImmediateUsageLimitStopsAfter3(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(5*time.Hour))), "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the first limit", func() bool { return r.Thread(testrig.ThreadName(n)).State == "stopped" })
	for range 6 {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
		r.Must(err)
		r.Settle()
	}
	s := r.Over(testrig.ThreadName(n))
	if r.Calls() != 3 || s.State != "stopped" || s.Rule != "usage_limit_breaker" {
		t.Errorf("%d calls, then %s (%s %v); want 3, then stopped (usage_limit_breaker)", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	// The whole account is limited once a second thread's agent reports the limit, too.
	for range 2 {
		other := r.Solve("Another line", "Please add a third line to a.txt.")
		r.Settle()
		if s := r.Over(testrig.ThreadName(other)); r.Calls() != 4 || s.Rule != "usage_limit_breaker" {
			t.Errorf("another thread: %d calls, then %s (%s %v); want one that confirms it", r.Calls(), s.State, s.Rule, s.Reasons)
		}
	}
	if b := r.Status().Breakers; len(b) != 1 || !b[0].Open || b[0].Consecutive != 4 {
		t.Errorf("breakers: %+v, want one open after 4", b)
	}
}

func TestDescriptionEditedDuringARunRestartsOnlyWithProgressOrChangedContent(t *testing.T) {
	t.Parallel()
	const body = "Please add a second line to a.txt."
	for _, c := range []struct {
		name      string
		agent     string // the agent's script after the edit
		edit      func(r *rig, n int)
		wantCalls int
		wantRule  string
	}{
		{"time stamp moved, failure without progress", "echo no idea >&2; exit 1\n", func(r *rig, n int) {
			r.Must(r.World.TouchIssue(testrig.Repo, n, testrig.Writer))
		}, 1, "no_progress"},
		{"saved again unchanged, failure without progress", "echo no idea >&2; exit 1\n", func(r *rig, n int) {
			r.Must(r.World.EditBody(testrig.Repo, n, testrig.Writer, body))
		}, 1, "no_progress"},
		{"white space changed, failure without progress", "echo no idea >&2; exit 1\n", func(r *rig, n int) {
			r.Must(r.World.EditBody(testrig.Repo, n, testrig.Writer, body+"  \r\n"))
		}, 1, "no_progress"},
		{"edited and edited back, failure without progress", "echo no idea >&2; exit 1\n", func(r *rig, n int) {
			r.Must(r.World.EditBody(testrig.Repo, n, testrig.Writer, body+" And a third."))
			r.Must(r.World.EditBody(testrig.Repo, n, testrig.Writer, body))
		}, 1, "no_progress"},
		{"content changed, failure without progress", "echo no idea >&2; exit 1\n", func(r *rig, n int) {
			r.Must(r.World.EditBody(testrig.Repo, n, testrig.Writer, body+" And a third."))
		}, 2, "no_progress"},
		{"saved again unchanged, failure with progress", "[ -f b.txt ] || { date > b.txt; exit 1; }\necho three >> a.txt\n", func(r *rig, n int) {
			r.Must(r.World.EditBody(testrig.Repo, n, testrig.Writer, body))
		}, 2, "done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.Agent("cat > \"$CTRL/prompt\"\nif [ ! -f \"$CTRL/edited\" ]; then touch \"$CTRL/ready\"; while [ ! -f \"$CTRL/edited\" ]; do sleep 0.05; done; fi\n"+c.agent, "")
			r.Start()
			n := r.Solve("A second line", body)
			r.Await("the agent at work", func() bool { return r.Has("ready") })
			c.edit(r, n)
			r.Handled()
			r.Touch("edited")
			s := r.Over(testrig.ThreadName(n))
			r.Settle()
			if r.Calls() != c.wantCalls || string(s.Rule) != c.wantRule {
				t.Errorf("%d calls, then %s (%s %v); want %d and %s", r.Calls(), s.State, s.Rule, s.Reasons, c.wantCalls, c.wantRule)
			}
		})
	}
}

// restless is an agent that changes the work and fails with a new message each time. Only the restart limit stops it.
const restless = `cat > /dev/null
words() { head -c 90 /dev/urandom | base64 | tr -dc a-zA-Z | fold -w 7 | tr '\n' ' '; echo; }
words >> a.txt
words >&2
exit 1
`

// The tests of package policy cover the default limit of 50 and each wait.
func TestRestartLimitIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = "policy: {restarts: {max: 8, backoff_after: 0}}\n"
	r.Agent(restless, "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	v := r.Idle(n)
	for ; v.State == checkrun.Waiting; v = r.Idle(n) {
		if v.Rule != "backoff" {
			t.Fatalf("waits for %s (%v)", v.Rule, v.Reasons)
		}
		r.Clock.Reach(v.Until)
		r.Sweep()
	}
	if r.Calls() != 9 || v.State != checkrun.Stopped || v.Rule != "restart_limit" || !strings.Contains(v.Reasons.String(), "restarted 8 times") {
		t.Errorf("%d calls, then %s (%s %v); want 9, then stopped by the limit of 8 restarts", r.Calls(), v.State, v.Rule, v.Reasons)
	}
	// A slow machine may outlast the first waits, which begin at 2 s.
	waits := r.Waits(n)
	if want := []time.Duration{64 * time.Second, 128 * time.Second, 256 * time.Second}; !slices.Equal(waits[max(0, len(waits)-3):], want) {
		t.Errorf("it waited %s, want %s at the end", waits, want)
	}
	pulls := r.World.Pulls(testrig.Repo)
	if len(pulls) != 1 {
		t.Fatalf("%d pull requests, want 1", len(pulls))
	}
	c := r.Check(pulls[0].Pull.HeadSHA, "pawl")
	if c.Conclusion != "action_required" || !strings.Contains(c.Title+c.Summary, "restarted 8 times") {
		t.Errorf("check run pawl: %s %q\n%s\nwant action_required and the reason", c.Conclusion, c.Title, c.Summary)
	}
}

func TestAutoContinueWaitsUntilTheResetAndResumes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = "policy: {usage_limit: {auto_continue_on_limit_reset: true}}\n"
	reset := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Minute)
	r.Agent(`if [ -f "$CTRL/reset" ]; then cat > "$CTRL/prompt"; echo two >> a.txt
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
exit 0; fi
`+fmt.Sprintf(testrig.Limited, testrig.ResetText(reset)), "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	v := r.Idle(n)
	if v.State != checkrun.Waiting || v.Rule != "usage_limit" || v.Until.Before(reset) || v.Until.After(reset.Add(2*time.Minute)) {
		t.Fatalf("%s (%s) until %s, want waiting until just after %s", v.State, v.Rule, v.Until, reset)
	}
	r.Touch("reset")
	r.Clock.Reach(v.Until.Add(-time.Minute))
	r.Sweep()
	if v := r.Idle(n); r.Calls() != 1 || v.State != checkrun.Waiting {
		t.Fatalf("a minute before the reset: %d calls, %s (%s %v); want 1 and waiting", r.Calls(), v.State, v.Rule, v.Reasons)
	}
	r.Clock.Reach(v.Until)
	r.Sweep()
	r.Await("the end", func() bool { return r.View(n).State == checkrun.Done })
	if v := r.Idle(n); r.Calls() != 2 || v.State != checkrun.Done || v.Attempts[1].Waited < 2*time.Hour {
		t.Errorf("after the reset: %d calls, %s (%s %v); want 2 and done", r.Calls(), v.State, v.Rule, v.Reasons)
	}
	b, err := r.Node.Store().Breakers(t.Context())
	r.Must(err)
	if len(b) != 0 {
		t.Errorf("breakers: %+v, want none after a success", b)
	}
}

func TestUsageLimitEndsTheRunAndOffersResume(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	reset := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Minute)
	r.Agent("echo two >> a.txt\n"+fmt.Sprintf(testrig.Limited, testrig.ResetText(reset)), "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Over(testrig.ThreadName(n)); r.Calls() != 1 || s.Rule != "usage_limit" {
		t.Fatalf("%d calls, then %s (%s %v); want 1, then usage_limit", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	sha := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA
	r.Await("the check run", func() bool { return r.Check(sha, "pawl").Conclusion == "action_required" })
	c := r.Check(sha, "pawl")
	offered := false
	for _, a := range c.Actions {
		offered = offered || a.Identifier == "resume"
	}
	// Messages give whole minutes, so the test expects the next minute.
	reset = reset.Add(time.Minute)
	if !offered || !strings.Contains(c.Summary, reset.Format("15:04")) {
		t.Errorf("check run pawl has the buttons %+v and the text\n%s\nwant Resume and the reset at %s", c.Actions, c.Summary, reset)
	}
	r.Must(r.World.ClickButton(testrig.Repo, c.ID, "resume", testrig.Writer))
	r.Await("the resumed attempt", func() bool { return r.Calls() == 2 })
}
