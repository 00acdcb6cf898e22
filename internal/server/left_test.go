package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
)

func TestStartRemovesLeftoversOfDeadServers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	old := time.Now().Add(-60 * 24 * time.Hour)
	stays := map[string]bool{
		// A server's folder has a lock file. A folder without one belongs to no server.
		"node-1/attempts/acme/widgets/7/1/transcript": false,
		"node-2/attempts/acme/widgets/7/1/transcript": true, // this folder is in use
		"node-3/attempts/acme/widgets/7/1/transcript": true,
		// A killed server left these files in this server's own folder.
		"attempts/acme/widgets/77/work/a.txt": false,
		"verify/acme/widgets/0/a.txt":         false,
		"verify/acme/widgets/home/a.txt":      true,
	}
	for name := range stays {
		path := filepath.Join(r.Dir, "data", name)
		r.Must(os.MkdirAll(filepath.Dir(path), 0o700))
		r.Must(os.WriteFile(path, []byte("old"), 0o600))
		r.Must(os.Chtimes(path, old, old))
	}
	lock := func(folder string) *os.File {
		t.Helper()
		lock, err := wait.Lock(t.Context(), filepath.Join(r.Dir, "data", folder, "pawl.lock"), 0)
		r.Must(err)
		return lock
	}
	r.Must(lock("node-1").Close())
	defer lock("node-2").Close()
	r.Start()
	r.Await("the cleaning at the start", func() bool { return strings.Contains(r.Log.String(), `"old records removed"`) })
	for name, want := range stays {
		if _, err := os.Stat(filepath.Join(r.Dir, "data", name)); (err == nil) != want {
			t.Errorf("%s: %v, want it kept: %t", name, err, want)
		}
	}
	r.Must(lock("node-1").Close()) // the folder is no longer in use
}

// A starting server asks each CLI for its version. Here the CLI hangs, and its child keeps the pipe open.
func TestStopDoesNotWaitForHangingVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("touch \"$CTRL/asked\"; sleep 100000\n", "")
	r.Config = strings.Replace(r.Config, "kind: command", "kind: codex", 1)
	r.Start()
	r.Await("the question", func() bool { return r.Has("asked") })
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestClockChangeDuringAttemptLosesNothing(t *testing.T) {
	t.Parallel()
	needs.All(t, "two renewals of a lease, which come every 10 s")
	for _, by := range []time.Duration{time.Hour, -time.Hour, 8766 * time.Hour, -8766 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Clock = &testrig.Clock{} // only the server uses this clock
			set := func(by time.Duration) {
				r.Clock.Mu.Lock()
				defer r.Clock.Mu.Unlock()
				r.Clock.Ahead = by
			}
			n := r.AtWork()
			lease := func() (until int64) {
				r.Must(r.Node.Store().DB().QueryRowContext(t.Context(), "SELECT max(lease_until) FROM threads").Scan(&until))
				return until
			}
			set(by)
			for range 3 { // sweeps check the lease every 5 s
				before := lease()
				r.Await("a renewal", func() bool { return lease() != before })
			}
			r.Touch("go")
			r.Await("the end of the attempt at work", func() bool { return !r.State(n).Open() })
			r.Await("the server to claim nothing", func() bool {
				return strings.Contains(r.Log.String(), "the clock is wrong; nothing is claimed")
			})
			set(0)
			r.Writes(n, testrig.Reader, "Whether I may write is asked of GitHub.")
			r.WantSolved(n)
			if a := r.State(n).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.WorkUnverified {
				t.Errorf("attempts %+v, want one that edited", a)
			}
			if s := r.Ending(r.Solve("Another line", "Please add another line.")); s.State != "done" || r.Calls() != 2 {
				t.Errorf("the next thread is %s (%s %q) after %d calls, want done after two", s.State, s.Rule, s.Reasons, r.Calls())
			}
		})
	}
}

// The metrics that docs/operations.md describes come from a server's work. The tests of internal/web cover the others.
func TestMetricsCountTheServersWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo two >> a.txt\n"+
		`echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}'`+"\n"+
		`echo '{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":7}}'`+"\n", "stream: codex")
	r.Start()
	r.Solved()
	for name, least := range map[string]float64{
		`pawl_decisions_total{action="attempt",rule="feedback"}`:                        1,
		`pawl_decisions_total{action="done",rule="done"}`:                               1,
		`pawl_attempts_total{backend="mine",ending="completed",outcome="unverified"}`:   1,
		`pawl_attempt_duration_seconds_count{backend="mine"}`:                           1,
		`pawl_tokens_total{backend="mine",kind="input"}`:                                60,
		`pawl_deliveries{state="handled"}`:                                              2,
		`pawl_webhooks_total{code="200"}`:                                               2,
		`pawl_github_requests_total{method="POST",route="/repos/{owner}/{repo}/pulls"}`: 1,
		`pawl_healthy{part="queue"}`:                                                    1,
		`pawl_threads{state="running"}`:                                                 0,
	} {
		if got := r.Metric(name); got < least {
			t.Errorf("%s is %v, want at least %v", name, got, least)
		}
	}
}
