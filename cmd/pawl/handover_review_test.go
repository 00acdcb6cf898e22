package main

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// An attempt whose files git refuses keeps those that were handed over before. Killed,
// it counts all the same: it may be what takes the server down.
func TestAKilledAttemptCountsAlsoWhereAnEarlierPartWasHandedOver(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.AtWorkUntil(2)
	r.Stop(syscall.SIGTERM)
	r.Touch("hang")
	r.Start()
	r.Working(2)
	r.Stop(syscall.SIGKILL)
	r.Start()
	s := r.Ending(n)
	a := r.State(n).Attempts
	if s.State != "done" || len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted {
		t.Errorf("%s (%s %q), attempts %+v; want done after one that was interrupted", s.State, s.Rule, s.Reasons, a)
	}
	if got := r.Left("found-3"); got != "one\npart 1\n" {
		t.Errorf("the third call found %q, want what was handed over", got)
	}
}

// An attempt that is handed over has its place in every bound above its thread already.
func TestAnAttemptThatWasHandedOverIsNotHeldBackByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.CutOff(1)
	r.Config += "policy: {caps: {per_repository_per_day: 1}}\n"
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Working(1)
	r.Stop(syscall.SIGTERM)
	r.Start()
	r.Await("an end, or a wait", func() bool { s := r.Thread(testrig.ThreadName(n)).State; return s == "done" || s == "waiting" })
	r.WantOneAttempt(n, 2)
}

// The second death comes while the next server writes down what the first one left.
func TestAServerThatIsKilledWhileItKeepsWorkKeepsIt(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.AtWorkUntil(1)
	r.Stop(syscall.SIGKILL)
	cmd := exec.Command(crashBinary(t), "serve", "--config", r.File())
	cmd.Env = append(cmd.Environ(), "PAWL_CRASH_AT=interrupting")
	r.Ended(r.Launch(cmd, r.Log))
	r.Start()
	if s := r.Ending(n); s.State != "done" || len(r.State(n).Attempts) != 2 {
		t.Errorf("%s (%s %q), attempts %+v; want done after one that was interrupted", s.State, s.Rule, s.Reasons, r.State(n).Attempts)
	}
	if got := r.Left("found-2"); got != "one\npart 1\n" {
		t.Errorf("the second call found %q, want what the killed one wrote", got)
	}
	if text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\npart 1\ntwo\n" {
		t.Errorf("a.txt on the branch is %q, %v", text, err)
	}
	r.WantNoRest(n)
}
