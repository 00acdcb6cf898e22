package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

func TestASecondSIGTERMEndsTheDrain(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Drain = "24h"
	n := r.AtWorkUntil(1)
	r.Must(r.Server.Cmd.Process.Signal(syscall.SIGTERM))
	r.Await("the drain", func() bool { return strings.Contains(r.Log.String(), `"message":"stopping"`) })
	if code := r.Stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("exit code %d, want %d", code, exitDone)
	}
	r.Start()
	r.WantOneAttempt(n, 2)
}

// wantContinued checks that the first attempt was interrupted. The second attempt must have finished the thread with
// the work of both.
func (r *rig) wantContinued(n int, work string) {
	r.T.Helper()
	s, a := r.Ending(n), r.State(n).Attempts
	var outcomes []policy.Outcome
	for _, attempt := range a {
		outcomes = append(outcomes, attempt.Receipt.Outcome)
	}
	if s.State != "done" || !slices.Equal(outcomes, []policy.Outcome{policy.Interrupted, policy.WorkUnverified}) {
		r.T.Errorf("%s (%s %q), attempts %+v; want done after one interrupted attempt", s.State, s.Rule, s.Reasons, a)
	}
	text, err := r.World.File(r.T.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
	if err != nil || text != work {
		r.T.Errorf("a.txt on the branch is %q, %v; want %q", text, err, work)
	}
	r.Once(n)
	r.WantNoUnfinished(n)
}

func TestKilledAttemptContinuesWithFilesAndSession(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*rig){
		"by the next server":    (*rig).Start,
		"in the next container": (*rig).startInContainer,
		"after the next server was killed while it saved the work": (*rig).startAgain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, nil)
			n := r.AtWorkUntil(1)
			r.AwaitRead(testrig.Session)
			killed := time.Now()
			r.Stop(syscall.SIGKILL)
			start(r)
			r.wantContinued(n, "one\npart 1\ntwo\n")
			if got := r.Left("found-2"); got != "one\npart 1\n" || !strings.Contains(r.Left("args-2"), "resume "+testrig.Session) {
				t.Errorf("the second call was %q and found %q, want the session and the files of the first", r.Left("args-2"), got)
			}
			if late := r.State(n).Attempts[1].At.Sub(killed); late > continueWithin {
				t.Errorf("the second attempt began %s after the kill, want within %s", late, continueWithin)
			}
		})
	}
}

// startInContainer is Start with another host name, like a new container with the old container's volume.
func (r *rig) startInContainer() {
	r.T.Helper()
	r.ServeBy(exec.Command("bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-uts", "--hostname", "elsewhere", "--die-with-parent",
		testrig.Program, "serve", "--config", r.File()))
	if !strings.Contains(r.Log.String(), `"node":"elsewhere-`) {
		r.T.Fatal("the server has the old host name")
	}
}

// startAgain is Start after another server was killed while it recorded the first server's interrupted attempts.
func (r *rig) startAgain() {
	r.T.Helper()
	cmd := exec.Command(crashBinary(r.T), "serve", "--config", r.File())
	cmd.Env = append(cmd.Environ(), "PAWL_CRASH_AT=interrupting")
	r.Ended(r.Launch(cmd, r.Log))
	r.Start()
}

func TestRepeatedlyKilledAttemptWaits(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.CutOff(4)
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	for call := 1; call <= 3; call++ {
		r.Working(call)
		r.Stop(syscall.SIGKILL)
		var until int64 // the end of the killed server's lease
		r.Must(r.Database().QueryRowContext(t.Context(), "SELECT max(lease_until) FROM threads").Scan(&until))
		r.Start()
		r.Await("the attempt's end", func() bool { a := r.State(n).Attempts; return len(a) >= call && !a[call-1].EndedAt.IsZero() })
		if ended := r.State(n).Attempts[call-1].EndedAt; !ended.Before(time.UnixMicro(until)) {
			t.Errorf("attempt %d ended at %s, want before the killed server's lease expired at %s", call, ended, time.UnixMicro(until))
		}
	}
	r.Await("the wait", func() bool {
		s := r.Thread(testrig.ThreadName(n))
		return s.State == "waiting" && s.Rule == "interrupted"
	})
	a := r.State(n).Attempts
	s := r.Thread(testrig.ThreadName(n))
	if want := a[2].EndedAt.Add(time.Minute); len(a) != 3 || s.Until == nil || !s.Until.Equal(want) {
		t.Errorf("%d attempts, then a wait until %v; want three attempts and a minute's wait", len(a), s.Until)
	}
	// During the wait the work folders of the three attempts are gone.
	if left, err := filepath.Glob(filepath.Join(r.Dir, "data", "attempts", "*", "*", "*", "work")); err != nil || len(left) > 0 {
		t.Errorf("work folders are left: %v, %v", left, err)
	}
	r.Writes(n, testrig.Writer, "/pawl retry")
	r.Working(4)
	if got := r.Left("found-4"); got != "one\npart 1\npart 2\npart 3\n" {
		t.Errorf("the fourth call found %q, want the lines of all earlier calls", got)
	}
}

// A killed attempt counts even if an earlier server handed it over, because the attempt may be the reason for the kill.
// Its handed-over files are kept.
func TestKillAfterAHandoverCounts(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.AtWorkUntil(2)
	r.Stop(syscall.SIGTERM)
	r.Touch("hang")
	r.Start()
	r.Working(2)
	r.Stop(syscall.SIGKILL)
	r.Start()
	r.wantContinued(n, "one\npart 1\ntwo\n")
	if got := r.Metric("pawl_take_overs_total"); got != 1 {
		t.Errorf("the metrics count %v take-overs, want 1", got)
	}
	if got := r.Left("found-3"); got != "one\npart 1\n" {
		t.Errorf("the third call found %q, want the handed-over line", got)
	}
}

func TestLimitOfAStoppedHandoverCountsOnce(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("echo two >> a.txt\n"+fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(5*time.Hour))), "stream: codex")
	r.Start()
	held, release := r.HoldPush(false)
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	<-held
	r.Stop(syscall.SIGTERM)
	release()
	held, release = r.HoldPush(false)
	r.Start()
	<-held
	r.Writes(n, testrig.Writer, "/pawl stop")
	r.Await("the stop", func() bool { return r.State(n).Stopped != "" })
	r.Stop(syscall.SIGKILL)
	release()
	r.Start()
	r.Over(testrig.ThreadName(n))
	if a := r.State(n).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Interrupted || a[0].Receipt.Limit == nil {
		t.Errorf("attempts %+v, want one that was interrupted and reached a limit", a)
	}
	if b := r.Status().Breakers; len(b) != 1 || b[0].Claim.Consecutive != 1 {
		t.Errorf("breakers %+v, want one breaker with one limit", b)
	}
}
