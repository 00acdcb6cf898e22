package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
)

// waiting is an agent that says that it is at work, waits for the test and then
// adds a line.
const waiting = "cat > /dev/null\n" + gated + "echo two >> a.txt\n"

// atWork starts the server with a waiting agent, asks for work, and returns when
// the agent is at it.
func (r *rig) atWork() (n int) {
	r.t.Helper()
	r.agent(waiting, "")
	r.start()
	n = r.solve("A second line", "Please add a second line to a.txt.")
	r.await("the agent at work", func() bool { return r.has("ready") })
	return n
}

// wantSolved checks that an issue ended as if nothing had gone wrong.
func (r *rig) wantSolved(n int) {
	r.t.Helper()
	if s := r.ending(n); s.State != "done" {
		r.t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	r.once(n)
	text, err := r.world.File(r.t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
	if err != nil || text != "one\ntwo\n" {
		r.t.Errorf("a.txt on the branch is %q, %v", text, err)
	}
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	for _, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		if c := r.check(sha, name); c.Conclusion != "success" {
			r.t.Errorf("check run %s: %q, want success", name, c.Conclusion)
		}
	}
}

func TestARevokedTokenDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.atWork()
	r.world.RevokeTokens()
	r.touch("go")
	r.wantSolved(n)
	if r.calls() != 1 {
		t.Errorf("the agent was called %d times, want once", r.calls())
	}
}

func TestATokenThatIsRevokedAgainAndAgainStillLeavesOneOfEach(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.atWork()
	for range 3 {
		r.world.RevokeTokens()
		_, err := r.world.Comment(rigRepo, n, writer, "Thank you so far.")
		r.must(err)
		r.handled()
	}
	r.world.RevokeTokens()
	r.touch("go")
	r.wantSolved(n)
}

func TestFailuresOfGitHubAreRetriedAndNothingIsDoubled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault fakegithub.Fault
	}{
		{"answer lost after the comment was written", fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/issues/{number}/comments", AbortAfter: true}},
		{"502 at the comment", fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/issues/{number}/comments", Status: 502, Times: 2}},
		{"answers lost after the check runs were made", fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/check-runs", AbortAfter: true, Times: 2}},
		{"connection cut at the check runs", fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/check-runs", AbortBefore: true, Times: 2}},
		{"answer lost after the pull request was opened", fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", AbortAfter: true}},
		{"the branch is not seen yet at the pull request", fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", Status: 422, Times: 2,
			Message: "Validation Failed"}},
		{"503 at the pull request", fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", Status: 503, Times: 2}},
		{"answer lost after the push", fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", AbortAfter: true}},
		{"502 at the push", fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", Status: 502, Times: 2}},
		{"secondary limit with retry-after", fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/check-runs", Status: 403,
			Message: "You have exceeded a secondary rate limit.", Header: http.Header{"Retry-After": {"1"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newRig(t, nil).solvedDespite(c.fault)
		})
	}
}

// solvedDespite solves an issue while GitHub fails once in a way, with one call of
// the agent.
func (r *rig) solvedDespite(fault fakegithub.Fault) {
	r.t.Helper()
	r.world.Inject(fault)
	r.agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.wantSolved(n)
	if left := r.world.ClearFaults(); left != 0 {
		r.t.Errorf("the fault did not happen")
	}
	if r.calls() != 1 {
		r.t.Errorf("the agent was called %d times, want once", r.calls())
	}
}

// wantStoredWait waits until the one thread waits in the database for GitHub's limit,
// with its pull request still to be opened.
func (r *rig) wantStoredWait() {
	r.t.Helper()
	r.await("the stored wait", func() bool {
		s, err := r.node.Store().Stats(r.t.Context())
		r.must(err)
		return s.Waiting == 1 && s.Running == 0 && s.Queued == 0 && r.calls() == 1
	})
	if len(r.world.Pulls(rigRepo)) != 0 {
		r.t.Fatal("a pull request is there in spite of the limit")
	}
}

// A worker that slept for most of a minute would be missed by other threads.
func TestAWaitOf45SecondsForGitHubIsStoredAndNotSleptThrough(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo two >> a.txt\n", "")
	r.start()
	r.world.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"45"}}})
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.wantStoredWait()
	r.clock.reach(r.clock.now().Add(45 * time.Second))
	r.sweep()
	r.await("the end", func() bool { return r.view(n).State == "done" && len(r.world.Pulls(rigRepo)) == 1 })
	r.idle(n)
	r.once(n)
	if r.calls() != 1 {
		t.Errorf("the agent was called %d times, want once", r.calls())
	}
}

func TestWhatEndsAtGitHubEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(r *rig, n, pull int) error
		said string // in the reasons
	}{
		{"repository renamed", func(r *rig, _, _ int) error { return r.world.RenameRepo(rigRepo, "gadgets") }, "renamed"},
		{"App uninstalled", func(r *rig, _, _ int) error { return r.world.Uninstall(rigRepo) }, "uninstalled"},
		{"repository taken out", func(r *rig, _, _ int) error { return r.world.RemoveRepo(rigRepo) }, "lost access"},
		{"repository deleted", func(r *rig, _, _ int) error { return r.world.DeleteRepo(rigRepo) }, "deleted"},
		{"branch deleted", func(r *rig, n, _ int) error {
			return r.world.DeleteBranch(r.t.Context(), rigRepo, writer, fmt.Sprintf("pawl/issue-%d", n))
		}, "by " + writer},
		{"pull request closed", func(r *rig, _, pull int) error { return r.world.ClosePull(rigRepo, pull, writer) }, "closed by " + writer},
		{"issue closed", func(r *rig, n, _ int) error { return r.world.CloseIssue(rigRepo, n, writer) }, "closed by " + writer},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			// The first attempt makes the pull request, the second is caught.
			r.agent("cat > /dev/null\n[ $(wc -l < \"$CTRL/calls\") = 1 ] && { echo two >> a.txt; exit 0; }\n"+waiting, "")
			r.start()
			n := r.solve("A second line", "Please add a second line to a.txt.")
			r.ending(n)
			pull := r.world.Pulls(rigRepo)[0].Number
			_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve once more")
			r.must(err)
			r.await("the agent at work", func() bool { return r.has("ready") })
			r.must(c.do(r, n, pull))
			s := r.ending(n)
			if s.State != "stopped" || s.Rule != "closed" || !strings.Contains(strings.Join(s.Reasons, " "), c.said) {
				t.Errorf("%s (%s %q), want stopped because %q", s.State, s.Rule, s.Reasons, c.said)
			}
			a := r.state(n).Attempts
			if len(a) != 2 || a[1].Receipt.Outcome != policy.Cancelled || r.calls() != 2 {
				t.Errorf("%d calls, attempts %+v; want two, the second cancelled", r.calls(), a)
			}
			if c.said == "renamed" {
				r.toldUnder("acme/gadgets", n)
			}
			before := len(r.world.Requests())
			r.settle()
			if after := len(r.world.Requests()); after != before {
				t.Errorf("the server went on asking GitHub: %d more requests", after-before)
			}
		})
	}
}

// toldUnder wants that GitHub shows under the repository's new name how the work ended.
func (r *rig) toldUnder(repo string, n int) {
	r.t.Helper()
	for _, c := range r.world.CheckRuns(repo) {
		if c.Status != "completed" {
			r.t.Errorf("check run %s on %.7s is %s, want completed", c.Name, c.SHA, c.Status)
		}
	}
	if len(r.world.CheckRuns(repo)) == 0 {
		r.t.Error("no check run is there")
	}
	comments := slices.DeleteFunc(r.world.Comments(repo, n), func(c fakegithub.Comment) bool { return !c.ViaApp })
	if len(comments) != 1 || !strings.Contains(comments[0].Body, "was renamed to `"+repo+"`") || strings.Contains(comments[0].Body, "is running") {
		r.t.Errorf("%+v, want one comment by Pawl that tells of the renaming", comments)
	}
}

// GitHub names no repositories in the event that ends a suspension, a new installation
// has an id of its own, and the event may be lost as any other.
func TestWhereTheAppComesBackAnOrderIsObeyed(t *testing.T) {
	t.Parallel()
	type world = *fakegithub.Server
	for _, c := range []struct {
		name     string
		leave    func(world) error
		comeBack func(world) error
		told     bool // of the end
	}{
		{"suspension", func(w world) error { return w.Suspend(rigRepo) }, func(w world) error { return w.Unsuspend(rigRepo) }, true},
		{"suspension whose end is not told", func(w world) error { return w.Suspend(rigRepo) }, func(w world) error { return w.Unsuspend(rigRepo) }, false},
		{"installed again", func(w world) error { return w.Uninstall(rigRepo) }, func(w world) error { return w.Install(rigRepo) }, true},
		{"installed again, which is not told", func(w world) error { return w.Uninstall(rigRepo) }, func(w world) error { return w.Install(rigRepo) }, false},
		{"taken out and in", func(w world) error { return w.RemoveRepo(rigRepo) }, func(w world) error { return w.Install(rigRepo) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.agent("wc -l < \"$CTRL/calls\" >> a.txt\n", "")
			r.start()
			n := r.solve("Lines", "Please add a line to a.txt.")
			r.ending(n)
			r.must(c.leave(r.world))
			r.await("the leaving to be seen", func() bool { return r.state(n).Closed != "" })
			if !c.told {
				r.world.SetWebhookURL("http://127.0.0.1:1/")
			}
			r.must(c.comeBack(r.world))
			r.must(r.world.WaitDelivered(t.Context()))
			if c.told {
				r.await("the coming back to be seen", func() bool { return r.state(n).Closed == "" })
				r.settle()
				if s := r.state(n); s.Closed != "" {
					t.Fatalf("closed again: %s", s.Closed)
				}
			}
			r.world.SetWebhookURL(r.url("/api/github/hook"))
			_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve again, please")
			r.must(err)
			r.await("the second attempt's end", func() bool { a := r.state(n).Attempts; return len(a) == 2 && a[1].Receipt.Outcome != "" })
			if s := r.ending(n); s.State != "done" {
				t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			r.once(n)
		})
	}
}

func TestAfterItsPullRequestWasClosedAnIssueCanBeSolvedAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("wc -l < \"$CTRL/calls\" >> a.txt\n", "")
	r.start()
	n := r.solve("Lines", "Please add a line to a.txt.")
	r.ending(n)
	r.must(r.world.ClosePull(rigRepo, r.world.Pulls(rigRepo)[0].Number, writer))
	r.settle()
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve again, please")
	r.must(err)
	s := r.ending(n)
	open := 0
	for _, p := range r.world.Pulls(rigRepo) {
		if p.State == "open" {
			open++
		}
	}
	if s.State != "done" || open != 1 || len(r.world.Pulls(rigRepo)) != 2 {
		t.Errorf("%s (%s %q) with %d of %d pull requests open; want done with a second one", s.State, s.Rule, s.Reasons, open, len(r.world.Pulls(rigRepo)))
	}
}

func TestKill9DuringAnAttemptIsAnInterruptionAndTheRunGoesOn(t *testing.T) {
	t.Parallel() // it waits for the dead server's lease to run out
	r := newProcessRig(t, nil)
	n := r.atWork()
	killed := time.Now()
	r.stop(syscall.SIGKILL)
	r.touch("go")
	r.start()
	r.wantSolved(n)
	a := r.state(n).Attempts
	if len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted || a[1].Receipt.Outcome != policy.Edited {
		t.Errorf("attempts %+v, want one interrupted and one that edited", a)
	} else if late := a[1].At.Sub(killed); late > goOnWithin {
		t.Errorf("the second attempt began %s after the kill, want %s", late, goOnWithin)
	}
}

func TestSIGTERMDuringAnAttemptLeavesAStateToGoOnFrom(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.atWork()
	began := time.Now()
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if took := time.Since(began); took > crashtest.StopsWithin {
		t.Errorf("the server took %s to end, want 30 s at most", took)
	}
	if s := r.state(n); len(s.Attempts) != 0 || s.Unfinished == nil {
		t.Errorf("attempts %+v, unfinished %+v; want one that was handed over", s.Attempts, s.Unfinished)
	}
	r.touch("go")
	r.start()
	r.wantSolved(n)
}
