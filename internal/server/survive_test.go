package server_test

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
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

func TestRevokedTokenDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWork()
	r.World.RevokeTokens()
	r.Touch("go")
	r.WantSolved(n)
	if r.Calls() != 1 {
		t.Errorf("the agent was called %d times, want once", r.Calls())
	}
}

func TestRepeatedlyRevokedTokenDoublesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWork()
	for range 3 {
		r.World.RevokeTokens()
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "Thank you so far.")
		r.Must(err)
		r.Handled()
	}
	r.World.RevokeTokens()
	r.Touch("go")
	r.WantSolved(n)
}

func TestGitHubFailuresAreRetriedWithoutDoubling(t *testing.T) {
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

// solvedDespite solves an issue with one agent call despite a fault of GitHub.
func (r *rig) solvedDespite(fault fakegithub.Fault) {
	r.T.Helper()
	r.World.Inject(fault)
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.WantSolved(n)
	if left := r.World.ClearFaults(); left != 0 {
		r.T.Errorf("the fault did not happen")
	}
	if r.Calls() != 1 {
		r.T.Errorf("the agent was called %d times, want once", r.Calls())
	}
}

// wantStoredWait waits until the only thread has stored a wait for GitHub's limit, before it opens its pull request.
func (r *rig) wantStoredWait() {
	r.T.Helper()
	r.Await("the stored wait", func() bool {
		s, err := r.Node.Store().Stats(r.T.Context())
		r.Must(err)
		return s.Waiting == 1 && s.Running == 0 && s.Queued == 0 && r.Calls() == 1
	})
	if len(r.World.Pulls(testrig.Repo)) != 0 {
		r.T.Fatal("a pull request exists despite the limit")
	}
}

// A worker that sleeps for most of a minute would starve other threads.
func TestWaitForGitHubIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	r.Start()
	r.World.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"45"}}})
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.wantStoredWait()
	r.Clock.Reach(r.Clock.Now().Add(45 * time.Second))
	r.Sweep()
	r.Await("the end", func() bool { return r.View(n).State == "done" && len(r.World.Pulls(testrig.Repo)) == 1 })
	r.Idle(n)
	r.Once(n)
	if r.Calls() != 1 {
		t.Errorf("the agent was called %d times, want once", r.Calls())
	}
}

func TestRunEndsIfItsRepositoryOrThreadIsGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		do     func(r *rig, n, pull int) error
		reason string // a part of the reasons
	}{
		{"repository renamed", func(r *rig, _, _ int) error { return r.World.RenameRepo(testrig.Repo, "gadgets") }, "renamed"},
		{"App uninstalled", func(r *rig, _, _ int) error { return r.World.Uninstall(testrig.Repo) }, "uninstalled"},
		{"App removed from the repository", func(r *rig, _, _ int) error { return r.World.RemoveRepo(testrig.Repo) }, "removed from the App's installation"},
		{"repository deleted", func(r *rig, _, _ int) error { return r.World.DeleteRepo(testrig.Repo) }, "deleted"},
		{"branch deleted", func(r *rig, n, _ int) error {
			return r.World.DeleteBranch(r.T.Context(), testrig.Repo, testrig.Writer, fmt.Sprintf("pawl/issue-%d", n))
		}, "by " + testrig.Writer},
		{"pull request closed", func(r *rig, _, pull int) error { return r.World.ClosePull(testrig.Repo, pull, testrig.Writer) }, "closed by " + testrig.Writer},
		{"issue closed", func(r *rig, n, _ int) error { return r.World.CloseIssue(testrig.Repo, n, testrig.Writer) }, "closed by " + testrig.Writer},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			// The first attempt opens the pull request, and the second is interrupted.
			r.Agent("cat > /dev/null\n[ $(wc -l < \"$CTRL/calls\") = 1 ] && { echo two >> a.txt; exit 0; }\n"+testrig.Waiting, "")
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			r.Ending(n)
			pull := r.World.Pulls(testrig.Repo)[0].Number
			_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve once more")
			r.Must(err)
			r.Await("the agent at work", func() bool { return r.Has("ready") })
			r.Must(c.do(r, n, pull))
			s := r.Ending(n)
			if s.State != "stopped" || s.Rule != "closed" || !strings.Contains(strings.Join(s.Reasons, " "), c.reason) {
				t.Errorf("%s (%s %q), want stopped because %q", s.State, s.Rule, s.Reasons, c.reason)
			}
			a := r.State(n).Attempts
			if len(a) != 2 || a[1].Receipt.Outcome != policy.Cancelled || r.Calls() != 2 {
				t.Errorf("%d calls, attempts %+v; want two, the second cancelled", r.Calls(), a)
			}
			if c.reason == "renamed" {
				r.toldUnder("acme/gadgets", n)
			}
			before := len(r.World.Requests())
			r.Settle()
			if after := len(r.World.Requests()); after != before {
				t.Errorf("the server continued to ask GitHub: %d more requests", after-before)
			}
		})
	}
}

// toldUnder checks that GitHub has the result under the repository's new name.
func (r *rig) toldUnder(repo string, n int) {
	r.T.Helper()
	for _, c := range r.World.CheckRuns(repo) {
		if c.Status != "completed" {
			r.T.Errorf("check run %s on %.7s is %s, want completed", c.Name, c.SHA, c.Status)
		}
	}
	if len(r.World.CheckRuns(repo)) == 0 {
		r.T.Error("there is no check run")
	}
	comments := slices.DeleteFunc(r.World.Comments(repo, n), func(c fakegithub.Comment) bool { return !c.ViaApp })
	if len(comments) != 1 || !strings.Contains(comments[0].Body, "was renamed to `"+repo+"`") || strings.Contains(comments[0].Body, "is running") {
		r.T.Errorf("%+v, want one comment by Pawl that reports the renaming", comments)
	}
}

// GitHub names no repositories when a suspension ends, a new installation has a new id, and the event may be lost.
func TestReinstalledAppObeysCommands(t *testing.T) {
	t.Parallel()
	type world = *fakegithub.Server
	for _, c := range []struct {
		name      string
		leave     func(world) error
		comeBack  func(world) error
		announced bool // GitHub announces the end
	}{
		{"suspension", func(w world) error { return w.Suspend(testrig.Repo) }, func(w world) error { return w.Unsuspend(testrig.Repo) }, true},
		{"suspension whose end is not announced", func(w world) error { return w.Suspend(testrig.Repo) }, func(w world) error { return w.Unsuspend(testrig.Repo) }, false},
		{"installed again", func(w world) error { return w.Uninstall(testrig.Repo) }, func(w world) error { return w.Install(testrig.Repo) }, true},
		{"installed again without an event", func(w world) error { return w.Uninstall(testrig.Repo) }, func(w world) error { return w.Install(testrig.Repo) }, false},
		{"removed and added again", func(w world) error { return w.RemoveRepo(testrig.Repo) }, func(w world) error { return w.Install(testrig.Repo) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent("wc -l < \"$CTRL/calls\" >> a.txt\n", "")
			r.Start()
			n := r.Solve("Lines", "Please add a line to a.txt.")
			r.Ending(n)
			r.Must(c.leave(r.World))
			r.Await("the removal to be seen", func() bool { return r.State(n).Closed != "" })
			if !c.announced {
				r.World.SetWebhookURL("http://127.0.0.1:1/")
			}
			r.Must(c.comeBack(r.World))
			r.Must(r.World.WaitDelivered(t.Context()))
			if c.announced {
				r.Await("the return to be seen", func() bool { return r.State(n).Closed == "" })
				r.Settle()
				if s := r.State(n); s.Closed != "" {
					t.Fatalf("closed again: %s", s.Closed)
				}
			}
			r.World.SetWebhookURL(r.URL("/api/github/hook"))
			_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve again, please")
			r.Must(err)
			r.Await("the second attempt's end", func() bool { a := r.State(n).Attempts; return len(a) == 2 && a[1].Receipt.Outcome != "" })
			if s := r.Ending(n); s.State != "done" {
				t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			r.Once(n)
		})
	}
}

func TestIssueCanBeSolvedAgainAfterClose(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("wc -l < \"$CTRL/calls\" >> a.txt\n", "")
	r.Start()
	n := r.Solve("Lines", "Please add a line to a.txt.")
	r.Ending(n)
	r.Must(r.World.ClosePull(testrig.Repo, r.World.Pulls(testrig.Repo)[0].Number, testrig.Writer))
	r.Settle()
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve again, please")
	r.Must(err)
	s := r.Ending(n)
	open := 0
	for _, p := range r.World.Pulls(testrig.Repo) {
		if p.State == "open" {
			open++
		}
	}
	if s.State != "done" || open != 1 || len(r.World.Pulls(testrig.Repo)) != 2 {
		t.Errorf("%s (%s %q) with %d of %d pull requests open; want done with a second one", s.State, s.Rule, s.Reasons, open, len(r.World.Pulls(testrig.Repo)))
	}
}

func TestSIGTERMDuringAttemptLeavesResumableState(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWork()
	began := time.Now()
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if took := time.Since(began); took > crashtest.StopsWithin {
		t.Errorf("the server took %s to end, want 30 s at most", took)
	}
	if s := r.State(n); len(s.Attempts) != 0 || s.Unfinished == nil {
		t.Errorf("attempts %+v, unfinished %+v; want one that was handed over", s.Attempts, s.Unfinished)
	}
	r.Touch("go")
	r.Start()
	r.WantSolved(n)
}
