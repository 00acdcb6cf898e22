package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
)

// holdPush has GitHub hold the next push. taken says whether it takes it, once the
// server that pushed is gone.
func (r *rig) holdPush(taken bool) (held <-chan struct{}, release func()) {
	begun, gone, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.world.Inject(fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
		defer close(done)
		pack, err := io.ReadAll(q.Body)
		close(begun)
		<-gone
		if q.Body = io.NopCloser(bytes.NewReader(pack)); taken && err == nil {
			github.ServeHTTP(w, q)
		}
	}})
	return begun, func() { close(gone); <-done }
}

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
			r.cutOff(0)
			r.start()
			held, release := r.holdPush(c.taken)
			n := r.solve("A second line", "Please add a second line to a.txt.")
			<-held
			if code := r.stop(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			release()
			branch := fmt.Sprintf("pawl/issue-%d", n)
			var person string
			if c.moved {
				commit, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: branch, Message: "Mine", Files: map[string]string{"b.txt": "by a person\n"}})
				r.must(err)
				person = commit
			}
			if c.again != 0 {
				held, release := r.holdPush(false)
				r.start()
				<-held
				r.stop(c.again)
				release()
			}
			r.start()
			r.wantOneAttempt(n, 1)
			if c.moved {
				if text, err := r.world.File(t.Context(), rigRepo, branch, "b.txt"); err != nil || text != "by a person\n" {
					t.Errorf("b.txt on the branch is %q, %v; want it kept", text, err)
				}
			}
			if head := r.world.Pulls(rigRepo)[0].Pull.HeadSHA; c.taken && c.moved && head != person {
				t.Errorf("the branch is at %s, want the person's commit %s without a merge", head, person)
			}
			if a := r.state(n).Attempts[0].Receipt; !a.Pushed || a.Tokens.Output != 5 {
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
			agent := "echo two >> a.txt\n" + fmt.Sprintf(limited, resetText(time.Now().Add(5*time.Hour)))
			if hangs {
				agent = strings.Replace(agent, "exit 1", `touch "$CTRL/ready-1"; exec sleep 600`, 1)
			}
			r.agent(agent, "stream: codex")
			r.start()
			held, release := (<-chan struct{})(nil), func() {}
			if !hangs {
				held, release = r.holdPush(true)
			}
			n := r.solve("A second line", "Please add a second line to a.txt.")
			if hangs {
				r.working(1)
				r.awaitRead("turn.failed")
			} else {
				<-held
			}
			r.stop(syscall.SIGTERM)
			release()
			r.start()
			s := r.ending(n)
			a := r.state(n).Attempts
			if s.State != "stopped" || s.Rule != "usage_limit" || r.calls() != 1 || len(a) != 1 {
				t.Fatalf("%s (%s %q) after %d calls, attempts %+v; want stopped at the usage limit after one", s.State, s.Rule, s.Reasons, r.calls(), a)
			}
			if got := a[0].Receipt; got.Outcome != policy.Outcome(policy.UsageLimit) || got.Limit == nil || !got.Pushed {
				t.Errorf("the receipt is %+v, want the usage limit and pushed work", got)
			}
			if b := r.status().Breakers; len(b) != 1 || b[0].Claim.Consecutive != 1 {
				t.Errorf("breakers %+v, want one that heard of one limit", b)
			}
			r.once(n)
			if text, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\ntwo\n" {
				t.Errorf("a.txt on the branch is %q, %v; want the work", text, err)
			}
			r.wantNoRest(n)
		})
	}
}

func TestALimitIsCountedOnceWhereWhatWasHandedOverIsThenStopped(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.agent("echo two >> a.txt\n"+fmt.Sprintf(limited, resetText(time.Now().Add(5*time.Hour))), "stream: codex")
	r.start()
	held, release := r.holdPush(false)
	n := r.solve("A second line", "Please add a second line to a.txt.")
	<-held
	r.stop(syscall.SIGTERM)
	release()
	held, release = r.holdPush(false)
	r.start()
	<-held
	r.must(r.says(n, writer, "/pawl stop")())
	r.await("the stop", func() bool { return r.state(n).Stopped != "" })
	r.stop(syscall.SIGKILL)
	release()
	r.start()
	r.over(threadName(n))
	if a := r.state(n).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Interrupted || a[0].Receipt.Limit == nil {
		t.Errorf("attempts %+v, want one that was interrupted and met a limit", a)
	}
	if b := r.status().Breakers; len(b) != 1 || b[0].Claim.Consecutive != 1 {
		t.Errorf("breakers %+v, want one that heard of one limit", b)
	}
}

func TestAnotherMachinePushesWhatGitHubKeptAndAsksTheAgentForTheRest(t *testing.T) {
	t.Parallel()
	for calls, name := range map[int]string{1: "GitHub kept it", 2: "GitHub was away"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.cutOff(0)
			r.start()
			held, release := r.holdPush(false)
			n := r.solve("A second line", "Please add a second line to a.txt.")
			<-held
			if calls == 2 {
				r.world.Inject(fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", Status: http.StatusServiceUnavailable, Times: -1})
			}
			r.stop(syscall.SIGTERM)
			release()
			r.world.ClearFaults()
			r.data = "other"
			r.start()
			if s := r.ending(n); s.State != "done" || r.calls() != calls {
				t.Errorf("%s (%s %q) after %d calls, want done after %d", s.State, s.Rule, s.Reasons, r.calls(), calls)
			}
			r.once(n)
			if text, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\ntwo\n" {
				t.Errorf("a.txt on the branch is %q, %v; want the work", text, err)
			}
		})
	}
}
