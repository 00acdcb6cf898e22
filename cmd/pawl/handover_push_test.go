package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// A server that is stopped while git pushes does not know whether GitHub takes it.
func TestAStopDuringAPushLosesNoWorkAndAsksNoAgentAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		taken, moved bool
		again        syscall.Signal // what ends the next server during its push
	}{
		{"GitHub takes it", true, false, 0},
		{"GitHub takes it, and a person pushes on top", true, true, 0},
		{"GitHub does not take it", false, false, 0},
		{"GitHub does not take it, and a person pushes", false, true, 0},
		{"GitHub does not take it, and the next server is stopped", false, false, syscall.SIGTERM},
		{"GitHub does not take it, and the next server is killed", false, false, syscall.SIGKILL},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, nil)
			r.CutOff(0)
			r.Start()
			held, release := r.HoldPush(c.taken)
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			<-held
			if code := r.Stop(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			release()
			branch := fmt.Sprintf("pawl/issue-%d", n)
			var person string
			if c.moved {
				commit, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: branch, Message: "Mine", Files: map[string]string{"b.txt": "by a person\n"}})
				r.Must(err)
				person = commit
			}
			if c.again != 0 {
				held, release := r.HoldPush(false)
				r.Start()
				<-held
				r.Stop(c.again)
				release()
			}
			r.Start()
			r.WantOneAttempt(n, 1)
			if c.moved {
				if text, err := r.World.File(t.Context(), testrig.Repo, branch, "b.txt"); err != nil || text != "by a person\n" {
					t.Errorf("b.txt on the branch is %q, %v; want it kept", text, err)
				}
			}
			if head := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA; c.taken && c.moved && head != person {
				t.Errorf("the branch is at %s, want the person's commit %s without a merge", head, person)
			}
			if a := r.State(n).Attempts[0].Receipt; !a.Pushed || a.Tokens.Output != 5 {
				t.Errorf("the receipt says pushed %t and %+v, want what the one call used", a.Pushed, a.Tokens)
			}
		})
	}
}

func TestAStopLosesNothingOfAnAttemptThatMetAUsageLimit(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"while its agent ends": true, "during its push": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			agent := "echo two >> a.txt\n" + fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(5*time.Hour)))
			if hangs {
				agent = strings.Replace(agent, "exit 1", `touch "$CTRL/ready-1"; exec sleep 600`, 1)
			}
			r.Agent(agent, "stream: codex")
			r.Start()
			held, release := (<-chan struct{})(nil), func() {}
			if !hangs {
				held, release = r.HoldPush(true)
			}
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			if hangs {
				r.Working(1)
				r.AwaitRead("turn.failed")
			} else {
				<-held
			}
			r.Stop(syscall.SIGTERM)
			release()
			r.Start()
			s := r.Ending(n)
			a := r.State(n).Attempts
			if s.State != "stopped" || s.Rule != "usage_limit" || r.Calls() != 1 || len(a) != 1 {
				t.Fatalf("%s (%s %q) after %d calls, attempts %+v; want stopped at the usage limit after one", s.State, s.Rule, s.Reasons, r.Calls(), a)
			}
			if got := a[0].Receipt; got.Outcome != policy.Outcome(policy.UsageLimit) || got.Limit == nil || !got.Pushed {
				t.Errorf("the receipt is %+v, want the usage limit and pushed work", got)
			}
			if b := r.Status().Breakers; len(b) != 1 || b[0].Claim.Consecutive != 1 {
				t.Errorf("breakers %+v, want one that heard of one limit", b)
			}
			r.Once(n)
			if text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\ntwo\n" {
				t.Errorf("a.txt on the branch is %q, %v; want the work", text, err)
			}
			r.WantNoRest(n)
		})
	}
}

func TestALimitIsCountedOnceWhereWhatWasHandedOverIsThenStopped(t *testing.T) {
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
	r.Must(r.Says(n, testrig.Writer, "/pawl stop")())
	r.Await("the stop", func() bool { return r.State(n).Stopped != "" })
	r.Stop(syscall.SIGKILL)
	release()
	r.Start()
	r.Over(testrig.ThreadName(n))
	if a := r.State(n).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Interrupted || a[0].Receipt.Limit == nil {
		t.Errorf("attempts %+v, want one that was interrupted and met a limit", a)
	}
	if b := r.Status().Breakers; len(b) != 1 || b[0].Claim.Consecutive != 1 {
		t.Errorf("breakers %+v, want one that heard of one limit", b)
	}
}

func TestAnotherMachinePushesWhatGitHubKeptAndAsksTheAgentForTheRest(t *testing.T) {
	t.Parallel()
	for calls, name := range map[int]string{1: "GitHub kept it", 2: "GitHub was away"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.CutOff(0)
			r.Start()
			held, release := r.HoldPush(false)
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			<-held
			if calls == 2 {
				r.World.Inject(fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", Status: http.StatusServiceUnavailable, Times: -1})
			}
			r.Stop(syscall.SIGTERM)
			release()
			r.World.ClearFaults()
			r.Data = "other"
			r.Start()
			if s := r.Ending(n); s.State != "done" || r.Calls() != calls {
				t.Errorf("%s (%s %q) after %d calls, want done after %d", s.State, s.Rule, s.Reasons, r.Calls(), calls)
			}
			r.Once(n)
			if text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\ntwo\n" {
				t.Errorf("a.txt on the branch is %q, %v; want the work", text, err)
			}
		})
	}
}
