package main

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// An attempt whose files git refuses keeps those that were handed over before. Killed,
// it counts all the same: it may be what takes the server down.
func TestAKilledAttemptCountsAlsoWhereAnEarlierPartWasHandedOver(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.atWorkUntil(2)
	r.stop(syscall.SIGTERM)
	r.touch("hang")
	r.start()
	r.working(2)
	r.stop(syscall.SIGKILL)
	r.start()
	s := r.ending(n)
	a := r.state(n).Attempts
	if s.State != "done" || len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted {
		t.Errorf("%s (%s %q), attempts %+v; want done after one that was interrupted", s.State, s.Rule, s.Reasons, a)
	}
	if got := r.left("found-3"); got != "one\npart 1\n" {
		t.Errorf("the third call found %q, want what was handed over", got)
	}
}

// An attempt that is handed over has its place in every bound above its thread already.
func TestAnAttemptThatWasHandedOverIsNotHeldBackByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.cutOff(1)
	r.config += "policy: {caps: {per_repository_per_day: 1}}\n"
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.working(1)
	r.stop(syscall.SIGTERM)
	r.start()
	r.await("an end, or a wait", func() bool { s := r.thread(threadName(n)).State; return s == "done" || s == "waiting" })
	r.wantOneAttempt(n, 2)
}

// The second death comes while the next server writes down what the first one left.
func TestAServerThatIsKilledWhileItKeepsWorkKeepsIt(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.atWorkUntil(1)
	r.stop(syscall.SIGKILL)
	cmd := exec.Command(crashBinary(t), "serve", "--config", r.file())
	cmd.Env = append(cmd.Environ(), "PAWL_CRASH_AT=interrupting")
	r.ended(r.launch(cmd, r.log))
	r.start()
	if s := r.ending(n); s.State != "done" || len(r.state(n).Attempts) != 2 {
		t.Errorf("%s (%s %q), attempts %+v; want done after one that was interrupted", s.State, s.Rule, s.Reasons, r.state(n).Attempts)
	}
	if got := r.left("found-2"); got != "one\npart 1\n" {
		t.Errorf("the second call found %q, want what the killed one wrote", got)
	}
	if text, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\npart 1\ntwo\n" {
		t.Errorf("a.txt on the branch is %q, %v", text, err)
	}
	r.wantNoRest(n)
}
