package server_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// Damage by an agent to its process or the machine ends only its own attempt. The next thread runs normally.

func TestKilledAgentIsACrash(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"none", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			// The kernel does the same when memory runs out.
			r.Agent("", "")
			r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"), []byte("#!/bin/sh\nif grep -q starve; then kill -9 $$; fi\necho two >> a.txt\n"), 0o700))
			r.Config += "sandbox: {mode: " + mode + "}\n"
			r.Start()
			bad := r.Solve("One", "Please starve.")
			s := r.Ending(bad)
			if a := r.State(bad).Attempts; s.State != "stopped" || len(a) != 1 || a[0].Receipt.Ending != policy.Crashed && a[0].Receipt.Ending != policy.Killed {
				t.Errorf("%s (%s %q), attempts %+v; want one killed attempt, and stopped", s.State, s.Rule, s.Reasons, a)
			}
			good := r.Solve("Two", "Please add a line.")
			if s := r.Ending(good); s.State != "done" {
				t.Errorf("the next thread is %s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
		})
	}
}

func TestFullWorkspaceFailsOnlyItsAttempt(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"the agent gives up":       "cat /dev/zero > big && exit 0; echo 'no space' >&2; exit 1\n",
		"the agent ignores it":     "cat /dev/zero > big 2> /dev/null; echo done\n",
		"the agent fills its home": "cat /dev/zero > \"$HOME/big\" 2> /dev/null; echo two >> a.txt; echo done\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			data := filepath.Join(r.Dir, "data")
			r.Must(os.Mkdir(data, 0o700))
			testrig.SmallDisk(t, data, 16)
			r.Agent("if grep -q fill; then\n"+script+"else echo two >> a.txt; fi\n", "timeout: 10m")
			r.Start()
			bad := r.Solve("One", "Please fill the disk.")
			s := r.Ending(bad)
			if a := r.State(bad).Attempts; len(a) == 0 || len(a) > 10 || s.State == "done" && a[len(a)-1].Receipt.Commit == "" {
				t.Errorf("%s (%s %q) after %d attempts; want an end with a reason", s.State, s.Rule, s.Reasons, len(a))
			}
			good := r.Solve("Two", "Please add a line.")
			if s := r.Ending(good); s.State != "done" {
				t.Errorf("the next thread is %s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
		})
	}
}

// For an ordinary user, the kernel limits a fork bomb in mode auto (see internal/sandbox). The attempt's end kills all
// remaining processes in any case.
func TestDetachedProcessesEndWithTheAttempt(t *testing.T) {
	t.Parallel()
	for i, mode := range []string{"none", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			nap := testrig.Nap(400 + i)
			// The bomb has three generations: 4 + 16 + 64 processes. Each has its own session and ignores SIGTERM.
			r.Agent("", "timeout: 20s") // a busy machine needs seconds to start the bomb
			r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"), []byte(`#!/bin/sh
cat > /dev/null
bomb() {
	[ $1 = 0 ] && return
	for i in 1 2 3 4; do
		(bomb $(($1 - 1)); trap '' TERM HUP; exec setsid sleep `+nap+`) > /dev/null 2>&1 &
	done
}
bomb 3
trap '' TERM
sleep `+nap+`
`), 0o700))
			r.Config += "sandbox: {mode: " + mode + "}\n"
			r.Start()
			n := r.Solve("A line", "Please add a line.")
			r.Await("the processes", func() bool { return r.Below("sleep\x00"+nap) > 80 })
			s := r.Ending(n)
			if a := r.State(n).Attempts; len(a) != 1 || a[0].Receipt.Ending != policy.TimedOut {
				t.Errorf("%s (%s %q), attempts %+v; want one that timed out", s.State, s.Rule, s.Reasons, a)
			}
			if left := r.Below("sleep\x00" + nap); left > 0 {
				t.Errorf("%d processes are left", left)
			}
			if a := r.State(n).Attempts; a[0].EndedAt.Sub(a[0].At) > 2*time.Minute {
				t.Errorf("the attempt took %s", a[0].EndedAt.Sub(a[0].At))
			}
		})
	}
}
