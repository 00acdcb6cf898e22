package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestSIGTERMHandsAnAttemptOverWithItsFilesAndItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWorkUntil(1)
	began := time.Now()
	if code := r.Stop(syscall.SIGTERM); code != 0 || time.Since(began) > 30*time.Second {
		t.Errorf("the server ended with %d after %s, want 0 within 30 s", code, time.Since(began))
	}
	s := r.State(n)
	if u := s.Unfinished; len(s.Attempts) != 0 || u == nil || u.Session != testrig.Session || u.Commit == "" {
		t.Fatalf("attempts %+v, unfinished %+v; want none, and what goes on", s.Attempts, s.Unfinished)
	}
	r.Start()
	r.WantOneAttempt(n, 2)
	if got := r.Left("args-2"); !strings.Contains(got, "resume "+testrig.Session) {
		t.Errorf("the second call was %q, want the session continued", got)
	}
	if got := r.Left("found-2"); got != "one\npart 1\n" {
		t.Errorf("the second call found %q in a.txt, want what the first one wrote", got)
	}
}

func TestAnotherMachineGoesOnFromTheFilesThatWereHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWorkUntil(1)
	r.Stop(syscall.SIGTERM)
	r.Data = "other"
	r.Start()
	r.WantOneAttempt(n, 2)
	if got := r.Left("args-2"); strings.Contains(got, "resume") {
		t.Errorf("the second call was %q, but its session is on another machine", got)
	}
	if got := r.Left("prompt-2"); !strings.Contains(got, "An earlier try was cut off") {
		t.Errorf("the agent is not told that files were changed before:\n%s", got)
	}
}

func TestWhatGitRefusesIsNotHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Touch("hang")
	n := r.AtWorkUntil(1)
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if s := r.State(n); len(s.Attempts) != 0 || s.Unfinished == nil || s.Unfinished.Commit != "" || s.Acts[thread.ActUnfinished].SHA != "" {
		t.Errorf("attempts %+v, unfinished %+v, acts %+v; want nothing pushed", s.Attempts, s.Unfinished, s.Acts)
	}
	r.Start()
	if s := r.Ending(n); s.State != "done" || r.Left("found-2") != "one\n" {
		t.Errorf("%s (%s %q) after a call that found %q, want done from the branch's files", s.State, s.Rule, s.Reasons, r.Left("found-2"))
	}
}

func TestAnotherNodeGoesOnAtOnceWhenOneIsStopped(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.CutOff(1)
	first := c.join()
	issue := c.issue(testrig.Repo, "A second line")
	c.Working(1)
	second := c.join()
	db, err := sql.Open("pgx", c.DSN)
	c.Must(err)
	t.Cleanup(func() { db.Close() })
	c.beats(db, 1)
	var until int64 // of the lease, just renewed
	c.Must(db.QueryRowContext(t.Context(), "SELECT max(lease_until) FROM threads").Scan(&until))
	c.leave(first, syscall.SIGTERM)
	c.Await("the other node", func() bool { return second.Began(issue.String()) })
	c.WantOneAttempt(issue.Number, 2)
	if a := c.State(issue.Number).Attempts[0]; !a.At.Before(time.UnixMicro(until)) {
		t.Errorf("the other node began at %s, when the lease of the first had run out at %s", a.At, time.UnixMicro(until))
	}
}

func TestThreeDeploysDuringOneAttemptDoNotEndIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.CutOff(3)
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	for call := 1; call <= 3; call++ {
		r.Working(call)
		r.Stop(syscall.SIGTERM)
		r.Start()
	}
	r.WantOneAttempt(n, 4)
	for _, e := range r.Events(n) {
		if e.Kind == thread.KindAttemptEnded && strings.Contains(string(e.Data), `"interrupted"`) {
			t.Errorf("an orderly stop is logged as %s", e.Data)
		}
	}
}

func TestWhatTheBranchGainedMeanwhileIsMergedWithWhatWasHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWorkUntil(1)
	r.Stop(syscall.SIGTERM)
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer,
		fakegithub.Commit{Branch: fmt.Sprintf("pawl/issue-%d", n), Message: "Mine", Files: map[string]string{"b.txt": "by a person\n"}})
	r.Must(err)
	r.Start()
	r.WantOneAttempt(n, 2)
	if text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "b.txt"); err != nil || text != "by a person\n" {
		t.Errorf("b.txt on the branch is %q, %v; want it kept", text, err)
	}
}

func TestWhileItDrainsAServerFinishesAttemptsAndBeginsNone(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Drain = "10m"
	n := r.AtWork()
	r.Must(r.Server.Cmd.Process.Signal(syscall.SIGTERM))
	r.Await("the drain", func() bool { return strings.Contains(r.Log.String(), `"message":"stopping"`) })
	other := r.Solve("Another line", "Please add another line to a.txt.")
	r.Handled() // it is stored, and seen to be work
	r.Touch("go")
	if code := r.Ended(r.Server); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if a := r.State(n).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Edited || len(r.World.Pulls(testrig.Repo)) != 1 {
		t.Errorf("attempts %+v and %d pull requests, want the attempt finished", a, len(r.World.Pulls(testrig.Repo)))
	}
	if a := r.State(other).Attempts; len(a) != 0 || r.Calls() != 1 {
		t.Errorf("attempts %+v at the other thread, want none", a)
	}
	r.Start()
	if s := r.Ending(other); s.State != "done" {
		t.Errorf("%s (%s %q) at the other thread, want done", s.State, s.Rule, s.Reasons)
	}
}

func TestASecondSIGTERMEndsTheDrain(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Drain = "24h"
	n := r.AtWorkUntil(1)
	r.Must(r.Server.Cmd.Process.Signal(syscall.SIGTERM))
	r.Await("the drain", func() bool { return strings.Contains(r.Log.String(), `"message":"stopping"`) })
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	r.Start()
	r.WantOneAttempt(n, 2)
}

func TestAKilledAttemptIsContinuedWithItsFilesAndItsSession(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*rig){"by the next server": (*rig).Start, "in the next container": (*rig).startInContainer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, nil)
			n := r.AtWorkUntil(1)
			r.AwaitRead(testrig.Session)
			r.Stop(syscall.SIGKILL)
			start(r)
			s := r.Ending(n)
			a := r.State(n).Attempts
			if s.State != "done" || len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted || a[1].Receipt.Outcome != policy.Edited {
				t.Errorf("%s (%s %q), attempts %+v; want done after one that was interrupted", s.State, s.Rule, s.Reasons, a)
			}
			if got := r.Left("found-2"); got != "one\npart 1\n" || !strings.Contains(r.Left("args-2"), "resume "+testrig.Session) {
				t.Errorf("the second call was %q and found %q, want the session and the files of the first", r.Left("args-2"), got)
			}
			if text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\npart 1\ntwo\n" {
				t.Errorf("a.txt on the branch is %q, %v", text, err)
			}
			r.WantNoRest(n)
		})
	}
}

// startInContainer is start on what calls itself another machine, as a new container with
// the volume of the last one does.
func (r *rig) startInContainer() {
	r.T.Helper()
	r.Server = r.Launch(exec.Command("bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-uts", "--hostname", "elsewhere", "--die-with-parent",
		testrig.Program, "serve", "--config", r.File()), r.Log)
	r.Addr, r.Pages = r.Server.Addr, r.Server.Pages
	r.World.SetWebhookURL(r.URL("/api/github/hook"))
	if !strings.Contains(r.Log.String(), `"node":"elsewhere-`) {
		r.T.Fatal("the server has the old name of the machine")
	}
}

func TestAnAttemptThatIsKilledAgainAndAgainWaitsAndIsNotStopped(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.CutOff(4)
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	for call := 1; call <= 3; call++ {
		r.Working(call)
		r.Stop(syscall.SIGKILL)
		r.Start()
	}
	r.Await("the wait", func() bool {
		s := r.Thread(testrig.ThreadName(n))
		return s.State == "waiting" && s.Rule == "interrupted"
	})
	a := r.State(n).Attempts
	s := r.Thread(testrig.ThreadName(n))
	if want := a[2].EndedAt.Add(time.Minute); len(a) != 3 || s.Until == nil || !s.Until.Equal(want) {
		t.Errorf("%d attempts, then a wait until %v; want three and a minute", len(a), s.Until)
	}
	// Nothing is left of the three while nobody works on it.
	if left, err := filepath.Glob(filepath.Join(r.Dir, "data", "attempts", "*", "*", "*", "work")); err != nil || len(left) > 0 {
		t.Errorf("work folders are left: %v, %v", left, err)
	}
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
	r.Must(err)
	r.Working(4)
	if got := r.Left("found-4"); got != "one\npart 1\npart 2\npart 3\n" {
		t.Errorf("the fourth call found %q, want what all before it wrote", got)
	}
}

func TestFoldersThatAKilledServerLeftAreRemovedUnlessTheirAttemptGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	for _, name := range []string{"attempts/acme/widgets/77/work", "verify/acme/widgets/0", "verify/acme/widgets/home"} {
		r.Must(os.MkdirAll(filepath.Join(r.Dir, "data", name, "checkout"), 0o700))
	}
	r.Start()
	for name, stays := range map[string]bool{"attempts/acme/widgets/77/work": false, "verify/acme/widgets/0": false, "verify/acme/widgets/home": true} {
		if _, err := os.Stat(filepath.Join(r.Dir, "data", name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLeasesAreFreedAtOnceAlsoAfterASecondCrashInARow(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.CutOff(2)
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	for call := 1; call <= 2; call++ {
		r.Working(call)
		r.Stop(syscall.SIGKILL)
		var until int64
		r.Must(r.Database().QueryRowContext(t.Context(), "SELECT max(lease_until) FROM threads").Scan(&until))
		r.Start()
		r.Await("the next attempt", func() bool { return len(r.State(n).Attempts) == call+1 })
		if a := r.State(n).Attempts[call]; !a.At.Before(time.UnixMicro(until)) {
			t.Errorf("attempt %d began at %s, when the lease of the killed server had run out at %s", a.N, a.At, time.UnixMicro(until))
		}
	}
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
}
