package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// moreThanOnce are points that are passed at different moments; the first time
// of each is tested anyway.
var moreThanOnce = []string{
	"commit:12", "committed_rows:25", "event_appended:5", "claimed:2", "act_begun:3", "act_logged:3", "check_created:3", "pushed:2", "attempt_ending:2", "comment_written:2",
}

var crashPoint = regexp.MustCompile(`\bcrash\.Point\("(\w+)"\)`)

// crashPoints are all that the program has, in the order of their names.
func crashPoints(t *testing.T) (all []string) {
	t.Helper()
	sources, err := exec.Command("git", "-C", "../..", "grep", "-h", `crash\.Point(`, "--", "*.go", ":!*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range crashPoint.FindAllSubmatch(sources, -1) {
		all = append(all, string(m[1]))
	}
	if calls := bytes.Count(sources, []byte("crash.Point(")); len(all) != calls || calls < 40 {
		t.Fatalf("%d of %d crash points have a name of their own", len(all), calls)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// diligent is an agent that adds a line and leaves a process behind that nobody
// sees. It needs nothing outside the checkout.
func diligent(nap, work string) string {
	return "cat > /dev/null\n(setsid sleep " + nap + " > /dev/null 2>&1 &)\nsleep " + work + "\necho \"line $(wc -l < a.txt)\" >> a.txt\n"
}

func TestWhereverTheProcessIsKilledNothingIsLostAndNothingDoubled(t *testing.T) {
	t.Parallel()
	points := append(crashPoints(t), moreThanOnce...)
	// Two at a time, as each keeps a processor at work.
	const rows = 2
	for row := range rows {
		t.Run(fmt.Sprint("row ", row+1), func(t *testing.T) {
			t.Parallel()
			for i, point := range points {
				if i/2%rows == row { // each has points in and out of the sandbox
					t.Run(point, func(t *testing.T) { killedAt(t, point, i) })
				}
			}
		})
	}
}

// killedAt plays an issue with a command, a question and another command, while
// the server is killed at a point.
func killedAt(t *testing.T, point string, i int) {
	plan := [][]string{{"PAWL_CRASH_AT=" + point}}
	if point == "interrupting" { // which only follows another death
		plan = [][]string{{"PAWL_CRASH_AT=agent_started"}, {"PAWL_CRASH_AT=interrupting"}}
	}
	l := newLives(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: [\"test -s a.txt\"]\nchecks: {severity: always, stagnation: always}\n"})
	l.Env = func(life int) []string {
		if life < len(plan) {
			return plan[life]
		}
		return nil
	}
	stops := point == "stopping" || point == "queue_stopped" || point == "shutdown"
	work := "0.1"
	if stops {
		work = "3" // so that it is met at work
	}
	l.Agent(diligent(testrig.Nap(i), work), "")
	if i%2 == 1 {
		l.Config += "sandbox: {mode: auto}\n"
		l.Must(os.WriteFile(l.Dir+"/agent.sh", []byte("#!/bin/sh\n"+diligent(testrig.Nap(i), work)), 0o700))
	}
	l.begin()
	l.Serving()
	n := l.Solve("A line", "Please add a line to a.txt.")
	if stops {
		l.Await("the agent at work", func() bool { return l.Below("sleep\x00"+testrig.Nap(i)) > 0 })
		l.Must(l.Serving().Process.Signal(syscall.SIGTERM))
	}
	done := func(attempts int) func(map[string]thread.State) bool {
		return func(states map[string]thread.State) bool { return worked(states[testrig.ThreadName(n)]) >= attempts }
	}
	l.settled("the first line", testrig.Patience, done(1))
	_, err := l.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl status")
	l.Must(err)
	_, err = l.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve one more line")
	l.Must(err)
	states := l.settled("the second line", testrig.Patience, done(2))
	if died := l.Died(); len(died) != len(plan) || !strings.HasPrefix(point, died[len(died)-1].Point) {
		t.Errorf("the server died at %v, want at %s", died, point)
	}
	l.Invariants(states, testrig.Repo)
	l.wentOn(rigThread(n))
	l.finished(states[testrig.ThreadName(n)], n, i)
}

// worked is how many attempts of a thread ended with work on the branch.
func worked(s thread.State) (n int) {
	for _, a := range s.Attempts {
		if a.Receipt.Outcome == policy.Edited {
			n++
		}
	}
	return n
}

// finished checks that a thread ended as if nothing had gone wrong.
func (l *lives) finished(s thread.State, n, i int) {
	l.T.Helper()
	if s.Decision == nil || s.Decision.Action != policy.DoDone {
		l.T.Errorf("the run ended with %+v, want done", s.Decision)
	}
	pull := l.byHead(fmt.Sprintf("pawl/issue-%d", n))
	if pull.Pull == nil || pull.Pull.Draft || len(pull.Pull.Asked) != 1 || !strings.Contains(pull.Body, fmt.Sprintf("attempt %d by", s.Attempts[len(s.Attempts)-1].N)) {
		l.T.Fatalf("no pull request that is ready, as the last attempt left it: %+v", l.World.Pulls(testrig.Repo))
	}
	answers := 0
	for _, c := range l.World.Comments(testrig.Repo, n) {
		if c.ViaApp && strings.Contains(c.Body, "<!-- pawl:answer") {
			answers++
		}
	}
	if answers != 1 {
		l.T.Errorf("%d answers to one question", answers)
	}
	for _, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		if c := l.Check(pull.Pull.HeadSHA, name); c.Conclusion != "success" {
			l.T.Errorf("check run %s on the head: %q, want success", name, c.Conclusion)
		}
	}
	text, err := l.World.File(l.T.Context(), testrig.Repo, pull.Pull.Head, "a.txt")
	l.Must(err)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for k, line := range lines {
		if k > 0 && line != fmt.Sprintf("line %d", k) {
			l.T.Errorf("a.txt on the branch: %q", text)
		}
	}
	if len(lines) < 3 {
		l.T.Errorf("a.txt on the branch lacks a line: %q", text)
	}
	if left := l.Below("sleep\x00" + testrig.Nap(i)); left > 0 {
		l.T.Errorf("%d processes of agents are left", left)
	}
}

// byHead is the pull request of a branch; the zero value when there is none.
func (r *rig) byHead(head string) fakegithub.Issue {
	for _, p := range r.World.Pulls(testrig.Repo) {
		if p.Pull.Head == head {
			return p
		}
	}
	return fakegithub.Issue{}
}

func TestTheOrdinaryProgramHasNoCrashPoints(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(testrig.Program)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"PAWL_CRASH_AT", "PAWL_PAUSE_AT", "PAWL_CRASH_RANDOM", "PAWL_CRASH_CLOCK"} {
		if bytes.Contains(program, []byte(name)) {
			t.Errorf("it knows %s", name)
		}
	}
}
