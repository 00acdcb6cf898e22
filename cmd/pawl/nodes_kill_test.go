package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// doomed is a cluster of three nodes of which one is killed at a place in its work.
type doomed struct {
	*cluster
	at     string // where; empty for the agent at work
	nap    string // the length of the sleep that its agents leave behind
	box    bool   // the agents are in the sandbox
	thread thread.ID
	killed time.Time
}

// The places are those where what a node leaves behind differs: a delivery, a
// lease alone, an attempt without an agent, with one at work, with one that has
// ended, with a push and without its end, a run without its pull request, and one
// that has ended and is not shown. Leases go by the database's clock, so this
// takes a lease's true time, for all cases at once.
func TestWhenOneOfThreeNodesIsKilledAnotherGoesOnWithinAMinute(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	var all []*doomed
	for i, at := range []string{"event_appended", "claimed", "cloned", "", "", "agent_done", "push_begun", "attempt_ending", "pull_begun", "decided"} {
		d := &doomed{cluster: newCluster(t, db), at: at, nap: testrig.Nap(500 + i), box: i%2 == 0}
		d.kill()
		all = append(all, d)
	}
	for _, d := range all {
		d.goesOn()
	}
}

// kill lets one of three nodes begin, stops it at its place and kills it there.
// The others sleep until then, so that they do not take the work.
func (d *doomed) kill() {
	d.T.Helper()
	work := "0.1"
	if d.at == "" {
		work = "3" // so that it is met at work
	}
	d.Agent(diligent(d.nap, work), "")
	if d.box {
		d.Config += "sandbox: {mode: auto}\n"
		d.Must(os.WriteFile(d.Dir+"/agent.sh", []byte("#!/bin/sh\n"+diligent(d.nap, work)), 0o700))
	}
	var env []string
	if d.at != "" {
		env = []string{"PAWL_PAUSE_AT=" + d.at}
	}
	one := d.withPoints(env...)
	others := []*testrig.Member{d.withPoints(), d.withPoints()}
	d.to(one)
	for _, m := range others {
		d.Must(m.Cmd.Process.Signal(syscall.SIGSTOP))
	}
	d.thread = d.issue(testrig.Repo, "A line")
	d.Await("the place "+d.at, func() bool {
		if d.at == "" {
			return d.Below("sleep\x00"+d.nap) > 0
		}
		return stopped(one)
	})
	d.killed = time.Now()
	d.Must(one.Cmd.Process.Kill())
	<-one.Exited
	d.Addr = others[0].Addr
	d.World.SetWebhookURL(d.URL("/api/github/hook"))
	for _, m := range others {
		d.Must(m.Cmd.Process.Signal(syscall.SIGCONT))
	}
}

// goesOn checks when another node went on and how it ended, and that nothing is
// left of the dead one.
func (d *doomed) goesOn() {
	t := d.T
	t.Helper()
	var s thread.State
	d.Await("the run to end", func() bool {
		s = d.states([]thread.ID{d.thread})[0]
		if s.Open() || s.Decision == nil {
			return false
		}
		shown := len(d.World.CheckRuns(testrig.Repo)) >= 3
		return shown && len(crashtest.LeftOver(s)) == 0
	})
	d.settle()
	e := nextWork(d.events(d.thread), d.killed)
	late := e.At.Sub(d.killed)
	t.Logf("killed at %q: %s came %s later", d.at, e.Kind, late.Round(100*time.Millisecond))
	if e.Kind == "" || late > goOnWithin {
		t.Errorf("killed at %q: another node went on after %s, want %s", d.at, late, goOnWithin)
	}
	s = d.states([]thread.ID{d.thread})[0]
	for _, wrong := range append(crashtest.AttemptsWrong(s, []crashtest.Death{{At: d.killed, Point: d.at}}), crashtest.LeftOver(s)...) {
		t.Errorf("killed at %q: %s", d.at, wrong)
	}
	if s.Decision.Action != policy.DoDone || worked(s) != 1 {
		t.Errorf("killed at %q: attempts %+v, then %+v; want one that worked, and done", d.at, s.Attempts, s.Decision)
	}
	d.Once(d.thread.Number)
	for _, c := range d.World.CheckRuns(testrig.Repo) {
		if c.Status != "completed" {
			t.Errorf("killed at %q: check run %s is %s", d.at, c.Name, c.Status)
		}
	}
	if !d.box {
		d.withPoints() // without a sandbox, a start in the same folder ends what is left
	}
	if left := crashtest.Processes(t, d.Dir); len(left) > 0 || d.Below("sleep\x00"+d.nap) > 0 {
		t.Errorf("killed at %q: processes of agents are left: %q", d.at, left)
	}
}
