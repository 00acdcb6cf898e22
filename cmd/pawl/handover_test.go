package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// session is how the agent of these tests calls its session.
const session = "0199aaaa-0000-7000-8000-000000000001"

// cutOff makes an agent with a session the only backend. In each of its first calls
// it adds a line and is then at work until somebody ends it, after that it adds a last
// line and comes to its end. It tells what it was called with and what it found.
func (r *rig) cutOff(times int) {
	r.t.Helper()
	r.agent(fmt.Sprintf(`n=$(wc -l < "$CTRL/calls" | tr -d ' ')
cat > "$CTRL/prompt-$n"; echo "$@" > "$CTRL/args-$n"; cp a.txt "$CTRL/found-$n"
echo '{"type":"thread.started","thread_id":"%s"}'
echo '{"type":"turn.started"}'
if [ -e "$CTRL/hang" ]; then rm "$CTRL/hang"; mkfifo .gitattributes; fi
if [ "$n" -le %d ]; then echo "part $n" >> a.txt; touch "$CTRL/ready-$n"; exec sleep 600; fi
echo two >> a.txt
echo '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"The line is there."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}'
`, session, times), "")
	r.config = strings.Replace(r.config, "kind: command", "kind: codex", 1)
	path := filepath.Join(r.dir, "agent.sh")
	script, err := os.ReadFile(path)
	r.must(err)
	r.must(os.WriteFile(path, []byte(strings.Replace(string(script), "\n", "\n[ \"$1\" = --version ] && exit 0\n", 1)), 0o700))
}

// atWorkUntil is the issue that such an agent works on, at its first call.
func (r *rig) atWorkUntil(times int) (issue int) {
	r.t.Helper()
	r.cutOff(times)
	r.start()
	issue = r.solve("A second line", "Please add a second line to a.txt.")
	r.working(1)
	return issue
}

// working waits until the agent has begun its n-th call and changed a file.
func (r *rig) working(n int) {
	r.t.Helper()
	r.await(fmt.Sprintf("call %d of the agent", n), func() bool { return r.has(fmt.Sprintf("ready-%d", n)) })
}

// wantOneAttempt checks that the issue was solved by an attempt that nothing was held
// against, although the agent was called so often, and that GitHub keeps nothing of
// what was between.
func (r *rig) wantOneAttempt(n, calls int) {
	r.t.Helper()
	s := r.ending(n)
	a := r.state(n).Attempts
	if s.State != "done" || r.calls() != calls || len(a) != 1 || a[0].Receipt.Outcome != policy.Edited {
		r.t.Fatalf("%s (%s %q) after %d calls, attempts %+v; want done after %d calls and one attempt", s.State, s.Rule, s.Reasons, r.calls(), a, calls)
	}
	r.once(n)
	want := "one\n"
	for i := 1; i < calls; i++ {
		want += fmt.Sprintf("part %d\n", i)
	}
	if text, err := r.world.File(r.t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != want+"two\n" {
		r.t.Errorf("a.txt on the branch is %q, %v; want what all calls added", text, err)
	}
	r.wantNoRest(n)
}

// wantNoRest checks that neither GitHub nor the server keeps work that is finished.
func (r *rig) wantNoRest(n int) {
	r.t.Helper()
	if act := r.state(n).Acts[thread.ActUnfinished]; act.SHA != "" || !act.Done {
		r.t.Errorf("the reference of unfinished work is %+v, want it removed", act)
	}
	for _, name := range []string{"work", "base"} {
		if left, err := filepath.Glob(filepath.Join(r.dir, "*", "attempts", "*", "*", "*", name)); err != nil || len(left) > 0 {
			r.t.Errorf("folders are left: %v, %v", left, err)
		}
	}
}

func TestSIGTERMHandsAnAttemptOverWithItsFilesAndItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.atWorkUntil(1)
	began := time.Now()
	if code := r.stop(syscall.SIGTERM); code != 0 || time.Since(began) > 30*time.Second {
		t.Errorf("the server ended with %d after %s, want 0 within 30 s", code, time.Since(began))
	}
	s := r.state(n)
	if u := s.Unfinished; len(s.Attempts) != 0 || u == nil || u.Session != session || u.Commit == "" {
		t.Fatalf("attempts %+v, unfinished %+v; want none, and what goes on", s.Attempts, s.Unfinished)
	}
	r.start()
	r.wantOneAttempt(n, 2)
	if got := r.left("args-2"); !strings.Contains(got, "resume "+session) {
		t.Errorf("the second call was %q, want the session continued", got)
	}
	if got := r.left("found-2"); got != "one\npart 1\n" {
		t.Errorf("the second call found %q in a.txt, want what the first one wrote", got)
	}
}

func TestAnotherMachineGoesOnFromTheFilesThatWereHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.atWorkUntil(1)
	r.stop(syscall.SIGTERM)
	r.data = "other"
	r.start()
	r.wantOneAttempt(n, 2)
	if got := r.left("args-2"); strings.Contains(got, "resume") {
		t.Errorf("the second call was %q, but its session is on another machine", got)
	}
	if got := r.left("prompt-2"); !strings.Contains(got, "An earlier try was cut off") {
		t.Errorf("the agent is not told that files were changed before:\n%s", got)
	}
}

func TestWhatGitRefusesIsNotHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.touch("hang")
	n := r.atWorkUntil(1)
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if s := r.state(n); len(s.Attempts) != 0 || s.Unfinished == nil || s.Unfinished.Commit != "" || s.Acts[thread.ActUnfinished].SHA != "" {
		t.Errorf("attempts %+v, unfinished %+v, acts %+v; want nothing pushed", s.Attempts, s.Unfinished, s.Acts)
	}
	r.start()
	if s := r.ending(n); s.State != "done" || r.left("found-2") != "one\n" {
		t.Errorf("%s (%s %q) after a call that found %q, want done from the branch's files", s.State, s.Rule, s.Reasons, r.left("found-2"))
	}
}

func TestAnotherNodeGoesOnAtOnceWhenOneIsStopped(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.cutOff(1)
	first := c.join()
	issue := c.issue(rigRepo, "A second line")
	c.working(1)
	second := c.join()
	db, err := sql.Open("pgx", c.dsn)
	c.must(err)
	t.Cleanup(func() { db.Close() })
	c.beats(db, 1)
	var until int64 // of the lease, just renewed
	c.must(db.QueryRowContext(t.Context(), "SELECT max(lease_until) FROM threads").Scan(&until))
	c.leave(first, syscall.SIGTERM)
	c.await("the other node", func() bool { return second.began(issue.String()) })
	c.wantOneAttempt(issue.Number, 2)
	if a := c.state(issue.Number).Attempts[0]; !a.At.Before(time.UnixMicro(until)) {
		t.Errorf("the other node began at %s, when the lease of the first had run out at %s", a.At, time.UnixMicro(until))
	}
}

func TestThreeDeploysDuringOneAttemptDoNotEndIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.cutOff(3)
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	for call := 1; call <= 3; call++ {
		r.working(call)
		r.stop(syscall.SIGTERM)
		r.start()
	}
	r.wantOneAttempt(n, 4)
	for _, e := range r.events(n) {
		if e.Kind == thread.KindAttemptEnded && strings.Contains(string(e.Data), `"interrupted"`) {
			t.Errorf("an orderly stop is logged as %s", e.Data)
		}
	}
}

func TestWhatTheBranchGainedMeanwhileIsMergedWithWhatWasHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.atWorkUntil(1)
	r.stop(syscall.SIGTERM)
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer,
		fakegithub.Commit{Branch: fmt.Sprintf("pawl/issue-%d", n), Message: "Mine", Files: map[string]string{"b.txt": "by a person\n"}})
	r.must(err)
	r.start()
	r.wantOneAttempt(n, 2)
	if text, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "b.txt"); err != nil || text != "by a person\n" {
		t.Errorf("b.txt on the branch is %q, %v; want it kept", text, err)
	}
}

func TestWhileItDrainsAServerFinishesAttemptsAndBeginsNone(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.drain = "10m"
	n := r.atWork()
	r.must(r.server.cmd.Process.Signal(syscall.SIGTERM))
	r.await("the drain", func() bool { return strings.Contains(r.log.String(), `"message":"stopping"`) })
	other := r.solve("Another line", "Please add another line to a.txt.")
	r.handled() // it is stored, and seen to be work
	r.touch("go")
	if code := r.ended(r.server); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if a := r.state(n).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Edited || len(r.world.Pulls(rigRepo)) != 1 {
		t.Errorf("attempts %+v and %d pull requests, want the attempt finished", a, len(r.world.Pulls(rigRepo)))
	}
	if a := r.state(other).Attempts; len(a) != 0 || r.calls() != 1 {
		t.Errorf("attempts %+v at the other thread, want none", a)
	}
	r.start()
	if s := r.ending(other); s.State != "done" {
		t.Errorf("%s (%s %q) at the other thread, want done", s.State, s.Rule, s.Reasons)
	}
}

func TestASecondSIGTERMEndsTheDrain(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.drain = "24h"
	n := r.atWorkUntil(1)
	r.must(r.server.cmd.Process.Signal(syscall.SIGTERM))
	r.await("the drain", func() bool { return strings.Contains(r.log.String(), `"message":"stopping"`) })
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	r.start()
	r.wantOneAttempt(n, 2)
}

func TestAKilledAttemptIsContinuedWithItsFilesAndItsSession(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*rig){"by the next server": (*rig).start, "in the next container": (*rig).startInContainer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, nil)
			n := r.atWorkUntil(1)
			r.awaitRead(session)
			r.stop(syscall.SIGKILL)
			start(r)
			s := r.ending(n)
			a := r.state(n).Attempts
			if s.State != "done" || len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted || a[1].Receipt.Outcome != policy.Edited {
				t.Errorf("%s (%s %q), attempts %+v; want done after one that was interrupted", s.State, s.Rule, s.Reasons, a)
			}
			if got := r.left("found-2"); got != "one\npart 1\n" || !strings.Contains(r.left("args-2"), "resume "+session) {
				t.Errorf("the second call was %q and found %q, want the session and the files of the first", r.left("args-2"), got)
			}
			if text, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\npart 1\ntwo\n" {
				t.Errorf("a.txt on the branch is %q, %v", text, err)
			}
			r.wantNoRest(n)
		})
	}
}

// startInContainer is start on what calls itself another machine, as a new container with
// the volume of the last one does.
func (r *rig) startInContainer() {
	r.t.Helper()
	r.server = r.launch(exec.Command("bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-uts", "--hostname", "elsewhere", "--die-with-parent",
		pawlBinary, "serve", "--config", r.file()), r.log)
	r.addr, r.pages = r.server.addr, r.server.pages
	r.world.SetWebhookURL(r.url("/api/github/hook"))
	if !strings.Contains(r.log.String(), `"node":"elsewhere-`) {
		r.t.Fatal("the server has the old name of the machine")
	}
}

func TestAnAttemptThatIsKilledAgainAndAgainWaitsAndIsNotStopped(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.cutOff(4)
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	for call := 1; call <= 3; call++ {
		r.working(call)
		r.stop(syscall.SIGKILL)
		r.start()
	}
	r.await("the wait", func() bool { s := r.thread(threadName(n)); return s.State == "waiting" && s.Rule == "interrupted" })
	a := r.state(n).Attempts
	s := r.thread(threadName(n))
	if want := a[2].EndedAt.Add(time.Minute); len(a) != 3 || s.Until == nil || !s.Until.Equal(want) {
		t.Errorf("%d attempts, then a wait until %v; want three and a minute", len(a), s.Until)
	}
	// Nothing is left of the three while nobody works on it.
	if left, err := filepath.Glob(filepath.Join(r.dir, "data", "attempts", "*", "*", "*", "work")); err != nil || len(left) > 0 {
		t.Errorf("work folders are left: %v, %v", left, err)
	}
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl retry")
	r.must(err)
	r.working(4)
	if got := r.left("found-4"); got != "one\npart 1\npart 2\npart 3\n" {
		t.Errorf("the fourth call found %q, want what all before it wrote", got)
	}
}

func TestFoldersThatAKilledServerLeftAreRemovedUnlessTheirAttemptGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	for _, name := range []string{"attempts/acme/widgets/77/work", "verify/acme/widgets/0", "verify/acme/widgets/home"} {
		r.must(os.MkdirAll(filepath.Join(r.dir, "data", name, "checkout"), 0o700))
	}
	r.start()
	for name, stays := range map[string]bool{"attempts/acme/widgets/77/work": false, "verify/acme/widgets/0": false, "verify/acme/widgets/home": true} {
		if _, err := os.Stat(filepath.Join(r.dir, "data", name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLeasesAreFreedAtOnceAlsoAfterASecondCrashInARow(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.cutOff(2)
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	for call := 1; call <= 2; call++ {
		r.working(call)
		r.stop(syscall.SIGKILL)
		var until int64
		r.must(r.database().QueryRowContext(t.Context(), "SELECT max(lease_until) FROM threads").Scan(&until))
		r.start()
		r.await("the next attempt", func() bool { return len(r.state(n).Attempts) == call+1 })
		if a := r.state(n).Attempts[call]; !a.At.Before(time.UnixMicro(until)) {
			t.Errorf("attempt %d began at %s, when the lease of the killed server had run out at %s", a.N, a.At, time.UnixMicro(until))
		}
	}
	if s := r.ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
}

// awaitRead waits until the server has read a text in the output of a thread's first attempt.
func (r *rig) awaitRead(text string) {
	r.t.Helper()
	r.await(text+" in the transcript", func() bool {
		files, _ := filepath.Glob(filepath.Join(r.dir, "data", "attempts", "*", "*", "*", "1", "transcript"))
		return slices.ContainsFunc(files, func(file string) bool {
			read, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(read), text)
		})
	})
}
