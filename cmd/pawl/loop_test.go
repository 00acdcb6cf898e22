package main

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestWaitSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Config = "policy: {usage_limit: {auto_continue_on_limit_reset: true}}\n"
	reset := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Minute)
	r.Agent("echo two >> a.txt\n"+fmt.Sprintf(testrig.Limited, testrig.ResetText(reset)), "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the wait", func() bool { return r.Thread(testrig.ThreadName(n)).State == "waiting" })
	r.Settle()
	before := r.Thread(testrig.ThreadName(n))
	events := r.State(n).Seq
	r.Stop(syscall.SIGKILL)
	r.Start()
	r.Settle()
	after := r.Thread(testrig.ThreadName(n))
	if r.Calls() != 1 || after.State != "waiting" || !after.Until.Equal(*before.Until) {
		t.Errorf("after the restart: %d calls, %s until %v; want 1 call and the wait until %v", r.Calls(), after.State, after.Until, before.Until)
	}
	if got := r.State(n).Seq; got != events {
		t.Errorf("a restart added events to the log: %d, then %d", events, got)
	}
	r.Once(n)
	// /pawl resume ends the wait.
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl resume")
	r.Must(err)
	r.Await("the resumed attempt", func() bool { return r.Calls() == 2 })
	if got := r.State(n).Attempts[1].Decision.Reasons.Texts(); !slices.Contains(got, "ada asked to resume") {
		t.Errorf("reasons %q, want the user who asked", got)
	}
}
