package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestTimeLimitsEndTheAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, more, silent, title string
		rule                              policy.Rule
		attempts                          int
	}{
		{"total", "while :; do echo working; sleep 0.1; done\n", "timeout: 3s", "", "the attempt failed without a change", "no_progress", 1},
		{"idle", "echo started; sleep 600\n", "timeout: 10m, idle_timeout: 1s", "1s", "the agent repeatedly went silent", "silent", 3},
		{"startup", "sleep 600\n", "timeout: 10m, startup_timeout: 1s", "1s", "the agent repeatedly went silent", "silent", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent("setsid sleep 601 & echo $! > \"$CTRL/child\"; cat > /dev/null; "+c.script, c.more)
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			s := r.Ending(n)
			a := r.State(n).Attempts
			if last := a[len(a)-1].Receipt; len(a) != c.attempts || last.Ending != policy.TimedOut || last.Silent != c.silent || s.Rule != c.rule {
				t.Errorf("%s (%s %q) after %d attempts, silent %q; want %s after %d that timed out, silent %q", s.State, s.Rule, s.Reasons, len(a), last.Silent, c.rule, c.attempts, c.silent)
			}
			shown := ""
			r.Await("the comment", func() bool {
				for _, m := range r.World.Comments(testrig.Repo, n) {
					shown = m.Body
				}
				return strings.Contains(shown, "Not done: "+c.title)
			})
			if c.silent != "" && strings.Count(shown, "silent for "+c.silent) < 3 || c.silent == "" && !strings.Contains(shown, "timed out") {
				t.Errorf("the comment does not distinguish silence from the time limit:\n%s", shown)
			}
			if b := r.Status().Breakers; len(b) > 0 {
				t.Errorf("the timeout opened the account's breaker: %+v", b)
			}
			r.gone("child")
		})
	}
}

// gone checks that a process has ended. Its id is in a file in $CTRL.
func (r *rig) gone(name string) {
	r.T.Helper()
	var pid int
	if _, err := fmt.Sscan(r.Left(name), &pid); err != nil {
		r.T.Fatal(err)
	}
	r.Await("the end of the process "+name, func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ")
	})
}

func TestWorkDoneBeforeATimeoutIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; [ -f b.txt ] && { echo done >> a.txt; exit 0; }; echo half > b.txt; sleep 600\n", "timeout: 5s")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Ending(n)
	if r.Calls() != 2 || s.State != "done" {
		t.Errorf("%d calls, then %s (%s %q); want 2, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	if a := r.State(n).Attempts; a[0].Receipt.Outcome != policy.Outcome(policy.TimedOut) || a[0].Receipt.Commit == "" {
		t.Errorf("the first attempt: %+v, want timed_out with a commit", a[0].Receipt)
	}
}

func TestStopEndsAttemptAndItsProcesses(t *testing.T) {
	t.Parallel()
	// No other process sleeps for exactly this long.
	nap := strconv.Itoa(1_000_000 + os.Getpid())
	for _, mode := range []string{"none", "auto"} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, nil)
			r.Agent("trap '' TERM; echo started > a.txt\nsetsid sh -c 'trap \"\" TERM; sleep "+nap+"' & sleep "+nap+"\n", "")
			r.Config += "sandbox: {mode: " + mode + "}\n"
			if mode == "auto" {
				r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"), []byte("#!/bin/sh\ntrap '' TERM\nsetsid sh -c 'trap \"\" TERM; sleep "+nap+"' & sleep "+nap+"\n"), 0o700))
			}
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			r.Await("both processes", func() bool { return r.Below("sleep\x00"+nap) == 2 })
			_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl stop")
			r.Must(err)
			s := r.Ending(n)
			if left := r.Below("sleep\x00" + nap); left != 0 {
				t.Errorf("%d processes are left", left)
			}
			a := r.State(n)
			if s.Rule != "cancelled" || a.Attempts[0].Receipt.Outcome != policy.Cancelled || !strings.Contains(s.Reasons[0], testrig.Writer) {
				t.Errorf("%s (%s %q), attempt %s; want cancelled by %s", s.State, s.Rule, s.Reasons, a.Attempts[0].Receipt.Outcome, testrig.Writer)
			}
			// The target is 5 s, more than twice the usual time. The limit allows for a busy machine.
			if took := a.Attempts[0].EndedAt.Sub(r.stoppedAt(n)); took > 20*time.Second {
				t.Errorf("the attempt ended %s after the stop", took)
			}
		})
	}
}

func TestStopEndsVerification(t *testing.T) {
	t.Parallel()
	nap := strconv.Itoa(2_000_000 + os.Getpid())
	r := newRig(t, with("grep -q two a.txt || exit 0; sleep "+nap))
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the verification", func() bool { return r.Below("sleep\x00"+nap) == 1 })
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl stop")
	r.Must(err)
	s := r.Ending(n)
	a := r.State(n).Attempts
	if s.Rule != "cancelled" || len(a) != 1 || a[0].Receipt.Outcome != policy.Cancelled || r.Below("sleep\x00"+nap) != 0 {
		t.Errorf("%s (%s %q), attempts %+v; want one, cancelled, and no process", s.State, s.Rule, s.Reasons, a)
	}
}

func TestStopEndsBaseVerification(t *testing.T) {
	t.Parallel()
	nap := strconv.Itoa(3_000_000 + os.Getpid())
	r := newRig(t, with("sleep "+nap))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the verification", func() bool { return r.Below("sleep\x00"+nap) == 1 })
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl stop")
	r.Must(err)
	if s := r.Ending(n); s.Rule != "cancelled" || r.Calls() != 0 || r.Below("sleep\x00"+nap) != 0 {
		t.Errorf("%s (%s %q) after %d calls; want cancelled without one, and no process", s.State, s.Rule, s.Reasons, r.Calls())
	}
}

func TestRestartRepeatsBaseVerification(t *testing.T) {
	t.Parallel()
	nap := strconv.Itoa(4_000_000 + os.Getpid())
	r := newRig(t, with(`test -e "$HOME/../../../../../../ctrl/quick" || sleep `+nap))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the verification", func() bool { return r.Below("sleep\x00"+nap) == 1 })
	if code := r.Stop(syscall.SIGTERM); code != 0 || r.Below("sleep\x00"+nap) != 0 {
		t.Errorf("exit code %d, and %d processes are left", code, r.Below("sleep\x00"+nap))
	}
	r.Touch("quick")
	r.Start()
	if s := r.Ending(n); s.State != "done" || r.Calls() != 1 || len(r.State(n).Attempts) != 1 {
		t.Errorf("%s (%s %q) after %d calls, want done after one", s.State, s.Rule, s.Reasons, r.Calls())
	}
}

func TestGarbageOutputIsAClearFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, more string
		calls              int
		rule               policy.Rule
	}{
		// After an empty answer with exit 0, the agent runs once more.
		{"bytes that are not JSON, exit 0", "head -c 300000 /dev/urandom\n", "stream: codex", 2, policy.RuleNoProgress},
		{"bytes that are not JSON, exit 1", "head -c 300000 /dev/urandom; head -c 3000 /dev/urandom >&2; exit 1\n", "stream: codex", 1, policy.RuleNoProgress},
		{"half of a stream", `printf '{"type":"thread.started"}\n{"type":"turn.started"}\n{"type":"item.comp'` + "\n", "stream: codex", 1, policy.RuleTransient},
		{"a plain agent, exit 1", "head -c 300000 /dev/urandom; head -c 3000 /dev/urandom >&2; exit 1\n", "", 1, policy.RuleNoProgress},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Config += "policy: {transient: {max_consecutive: 1}}\n"
			r.Agent("cat > /dev/null; "+c.script, c.more)
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			s := r.Ending(n)
			if r.Calls() != c.calls || s.State != "stopped" || s.Rule != c.rule || len(s.Reasons) == 0 {
				t.Errorf("%d calls, then %s (%s %q); want %d, then stopped by %s", r.Calls(), s.State, s.Rule, s.Reasons, c.calls, c.rule)
			}
		})
	}
}

func (r *rig) stoppedAt(n int) (at time.Time) {
	r.T.Helper()
	for _, e := range r.Events(n) {
		if e.Kind == thread.KindControl {
			at = e.At
		}
	}
	return at
}
