package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// laterVisits are later visits to crash points, which happen in a different situation than the first. Every point's
// first visit is tested as well.
var laterVisits = []string{
	"commit:12", "committed_rows:25", "event_appended:5", "claimed:2", "act_begun:3", "act_logged:3", "check_created:3",
	"pushed:2", "attempt_ending:2", "comment_written:2",
}

// soon are points after which the next server uses the real time. After the other points the test's clock skips the dead
// server's lease.
var soon = []string{
	"received", "stored", "delivery_claimed", "event_appended", "claimed", "probe_acquired", "attempt_logged", "cloned",
	"agent_started", "agent_done", "push_begun", "pushed", "attempt_ending", "attempt_ended", "pull_begun", "decided", "act_logged",
}

// continueWithin is the longest time from a crash until the thread continues: the dead server's lease of 30 s, a start and a
// sweep.
const continueWithin = time.Minute

var crashPoint = regexp.MustCompile(`\bcrash\.Point\("(\w+)"\)`)

// crashPoints returns the names of all crash points in the sources, sorted.
func crashPoints(t *testing.T) (all []string) {
	t.Helper()
	calls, sources := 0, os.DirFS("../..")
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(sources, path)
		calls += bytes.Count(text, []byte("crash.Point("))
		for _, m := range crashPoint.FindAllSubmatch(text, -1) {
			all = append(all, string(m[1]))
		}
		return err
	})
	if err != nil || len(all) != calls || calls < 40 {
		t.Fatalf("%d of %d crash points have a literal name (%v), want all, and at least 40", len(all), calls, err)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// buildCrash builds the program with its crash points, once.
var buildCrash = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(testrig.Program), "pawl-crashpoints")
	out, err := exec.Command("go", "build", "-tags", "crashpoints", "-ldflags=-s -w", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build pawl with crash points: %w\n%s", err, out)
	}
	return path, nil
})

// crashBinary returns the path of the program with crash points.
func crashBinary(t *testing.T) string {
	t.Helper()
	needs.All(t, "a server that kills itself")
	path, err := buildCrash()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// lives is a rig whose server dies at each crash point of a plan, in order, and is restarted each time.
type lives struct {
	*rig
	*crashtest.Lives
}

func newLives(t *testing.T, files map[string]string, plan ...string) *lives {
	t.Helper()
	l := &lives{Lives: crashtest.New(t, crashBinary(t))}
	l.Env = func(life int) []string {
		if life < len(plan) {
			return []string{"PAWL_CRASH_AT=" + plan[life]}
		}
		return nil
	}
	l.rig = newRigAt(t, files, l.Now)
	l.Dated, l.Rig.Addr = l.Now, l.Lives.Addr
	l.Lives.World, l.Lives.Dir, l.Lives.Data, l.Lives.Read, l.Lives.Log = l.Rig.World, l.Rig.Dir, l.Rig.Data, l.Rig.Read, l.Rig.Log
	l.World.SetWebhookURL(l.URL("/api/github/hook"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the server:\n%s", l.Log)
		}
	})
	return l
}

// begin writes the configuration and starts the first server process.
func (l *lives) begin() {
	l.T.Helper()
	l.File()
	l.Begin()
}

// awaitIdle waits until a server runs, every delivery is handled, and cond is true. It returns the threads.
func (l *lives) awaitIdle(what string, within time.Duration, cond func(map[string]thread.State) bool) map[string]thread.State {
	l.T.Helper()
	before := -1
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		l.Serving()
		now := len(l.World.Deliveries())
		l.Must(l.World.WaitDelivered(l.T.Context()))
		missed := len(l.Missed()) // read before the states: a missed delivery can still change them
		states, ok := l.States()
		quiet := now == before && missed == 0
		if ok && quiet && cond(states) {
			return states
		}
		before = now
		if time.Now().After(deadline) {
			l.T.Fatalf("%s did not happen; died at %v\n%s", what, l.Died(), l.StatusOutput())
		}
	}
}

// edits counts a thread's attempts that ended with a change.
func edits(s thread.State) (n int) {
	for _, a := range s.Attempts {
		if a.Receipt.Outcome == policy.WorkUnverified {
			n++
		}
	}
	return n
}

// diligent is an agent that adds a line and leaves a background process in another session. It needs nothing outside the
// checkout.
func diligent(nap, work string) string {
	return "cat > /dev/null\n(setsid sleep " + nap + " > /dev/null 2>&1 &)\nsleep " + work + "\necho \"line $(wc -l < a.txt)\" >> a.txt\n"
}

// diligent configures that agent, with or without the sandbox.
func (r *rig) diligent(boxed bool, nap, work string) {
	r.T.Helper()
	r.Agent(diligent(nap, work), "")
	if boxed { // $CTRL does not exist in the sandbox
		r.Config += "sandbox: {mode: auto}\n"
		r.Must(os.WriteFile(r.Dir+"/agent.sh", []byte("#!/bin/sh\n"+diligent(nap, work)), 0o700))
	}
}

func TestKillsLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	points := append(crashPoints(t), laterVisits...)
	// Two points are tested at a time, because each test uses a whole processor.
	const rows = 2
	for row := range rows {
		t.Run(fmt.Sprint("row ", row+1), func(t *testing.T) {
			t.Parallel()
			for i, point := range points {
				if i/2%rows == row { // each row has points with and without the sandbox
					t.Run(point, func(t *testing.T) { killedAt(t, point, i) })
				}
			}
		})
	}
}

// killedAt plays an issue with a command, a question and another command. The server is killed at the point.
func killedAt(t *testing.T, point string, i int) {
	plan := []string{point}
	if point == "interrupting" { // a server visits it only after an earlier server died
		plan = []string{"agent_started", point}
	}
	l := newLives(t, map[string]string{
		"a.txt":            "one\n",
		".github/pawl.yml": "verify: [\"test -s a.txt\"]\n" + testrig.AllChecks,
	}, plan...)
	if slices.Contains(soon, point) {
		l.Pause = 0
	}
	stops, steers, work := point == "stopping" || point == "queue_stopped" || point == "shutdown", point == "steered", "0.1"
	if stops || steers {
		work = "3" // the agent must still work when the stop or the text arrives
	}
	nap := testrig.Nap(i)
	l.diligent(i%2 == 1, nap, work)
	l.begin()
	l.Serving()
	n := l.Solve("A line", "Please add a line to a.txt.")
	if stops || steers {
		l.Await("the agent at work", func() bool { return l.Below("sleep\x00"+nap) > 0 })
	}
	if stops {
		l.Must(l.Serving().Process.Signal(syscall.SIGTERM))
	}
	if steers {
		l.Writes(n, testrig.Writer, "/pawl steer write it at the end")
	}
	worked := func(attempts int) func(map[string]thread.State) bool {
		return func(states map[string]thread.State) bool { return edits(states[testrig.ThreadName(n)]) >= attempts }
	}
	l.awaitIdle("the first line", testrig.Patience, worked(1))
	l.Writes(n, testrig.Writer, "/pawl status")
	l.Writes(n, testrig.Writer, "/pawl solve one more line")
	states := l.awaitIdle("the second line", testrig.Patience, worked(2))
	died := l.Died()
	if len(died) != len(plan) || !strings.HasPrefix(point, died[len(died)-1].Point) {
		t.Fatalf("the server died at %v, want at %s", died, point)
	}
	l.Invariants(states, testrig.Repo)
	continued(t, l.Events(n), died[len(died)-1], l.Pause == 0)
	l.finished(states[testrig.ThreadName(n)], n)
	if left := l.Below("sleep\x00" + nap); left > 0 {
		t.Errorf("%d processes of agents are left", left)
	}
}

// continued checks that a thread continued within continueWithin after a server's death, by the servers' clock. It checks only
// threads whose log shows open work, or for which the test sets pending.
func continued(t *testing.T, events []thread.Event, d crashtest.Death, pending bool) {
	t.Helper()
	before := slices.IndexFunc(events, func(e thread.Event) bool { return e.At.After(d.At) })
	s, err := thread.Fold(events[:max(before, 0)])
	if err != nil {
		t.Fatal(err)
	}
	if _, running := s.Running(); !running && !s.Open() && !pending {
		return
	}
	for _, e := range events[max(before, 0):] {
		// These events come from Pawl's own push and do not show that the thread continued.
		if e.At.After(d.At) && e.Kind != thread.KindIgnored && e.Kind != thread.KindThread {
			if late := e.At.Sub(d.At); late > continueWithin {
				t.Errorf("killed at %q: %s came after %s, want it within %s", d.Point, e.Kind, late, continueWithin)
			}
			return
		}
	}
	t.Errorf("killed at %q: the thread did not continue", d.Point)
}

// finished checks that a thread ended as if nothing had gone wrong.
func (l *lives) finished(s thread.State, n int) {
	l.T.Helper()
	if s.Decision == nil || s.Decision.Action != policy.DoDone {
		l.T.Errorf("the run ended with %+v, want done", s.Decision)
	}
	pull := l.World.Pulls(testrig.Repo)[0] // Invariants checks that it exists
	by := fmt.Sprintf("attempt %d by", s.Attempts[len(s.Attempts)-1].N)
	if pull.Pull.Draft || len(pull.Pull.Asked) != 1 || !strings.Contains(pull.Body, by) {
		l.T.Errorf("the pull request is %+v, want it ready and by %q", pull, by)
	}
	if answers := l.Answers(n); len(answers) != 1 {
		l.T.Errorf("the question has the answers %q, want one", answers)
	}
	for name, want := range map[string]string{"pawl": "neutral", "pawl/severity": "success", "pawl/stagnation": "success"} {
		if c := l.Check(pull.Pull.HeadSHA, name); c.Conclusion != want {
			l.T.Errorf("check run %s on the head: %q, want %s", name, c.Conclusion, want)
		}
	}
	text, err := l.World.File(l.T.Context(), testrig.Repo, pull.Pull.Head, "a.txt")
	l.Must(err)
	want := "one\n"
	for line := 1; line < max(3, strings.Count(text, "\n")); line++ {
		want += fmt.Sprintf("line %d\n", line)
	}
	if text != want {
		l.T.Errorf("a.txt on the branch is %q, want %q", text, want)
	}
}

func TestOrdinaryBuildHasNoCrashPoints(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(testrig.Program)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"PAWL_CRASH_AT", "PAWL_PAUSE_AT", "PAWL_CRASH_RANDOM", "PAWL_CRASH_CLOCK"} {
		if bytes.Contains(program, []byte(name)) {
			t.Errorf("the program contains %s", name)
		}
	}
}
