package solver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func mayRerun(o *fakegithub.Options) {
	o.Permissions = setup.AppPermissions()
	o.Permissions["actions"] = "write"
}

func TestPendingCommitStatusKeepsAWatchFromReady(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "pending"))
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	for _, wait := range []time.Duration{time.Minute, 4 * time.Minute, 10 * time.Minute, 20 * time.Minute, time.Hour} {
		a.pass(wait)
		a.expect(n, "the status is pending", "Watching: round 0 of 5: GitHub counts a status that has not passed (completed neutral)", 0)
	}
	if a.mentions(n) != 0 {
		t.Errorf("%d mentions before the status passed", a.mentions(n))
	}
	a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "success"))
	a.pass(time.Hour)
	a.expect(n, "the status passed", "Ready: green after 0 rounds (completed success)", 0)
	if a.mentions(n) != 1 {
		t.Errorf("%d mentions, want 1", a.mentions(n))
	}
}

// The check run of a stopped watch is red, which alone makes GitHub count the head as not passed.
func TestStoppedWatchOfAGreenHeadIsReady(t *testing.T) {
	for name, status := range map[string]string{"all green": "success", "a status pending": "pending"} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.comments(n, testrig.Writer, "/pawl watch")
			a.red(n, "unit", "TestA")
			a.red(n, "unit", "TestA")
			a.expect(n, "no progress", "Stopped: not green after 1 round (completed action_required)", 1)
			a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", status))
			a.green(n, "unit") // a user reran it
			for range 5 {
				a.pass(15 * time.Minute)
				if ready := strings.HasPrefix(a.title(n), "Ready"); ready != (status == "success") {
					t.Fatalf("the title is %q", a.title(n))
				}
			}
			a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "success"))
			a.pass(time.Hour)
			a.expect(n, "in the end", "Ready: green after 1 round (completed neutral)", 1)
			if a.mentions(n) != 1 {
				t.Errorf("%d mentions, want 1", a.mentions(n))
			}
		})
	}
}

func TestFailureThatPassedMeanwhileBeginsNoRound(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Config += "policy: {usage_limit: {auto_continue_on_limit_reset: true}}\n"
	a.comments(n, testrig.Writer, "/pawl watch")
	now, account := a.Clock.Now(), a.cfg.Backends[0].Account
	other, err := a.store.Acquire(t.Context(), widgets(99), "other")
	a.Must(err)
	a.Must(a.store.AppendLeased(t.Context(), other, thread.Batch{Account: account, Breaker: func(b policy.Breaker) policy.Breaker {
		return b.After(policy.UsageLimit, now.Add(time.Hour), now.Add(-time.Second), now)
	}}))
	a.red(n, "unit", "TestA")
	if d := a.state(n).Decision; d == nil || d.Rule != policy.RuleUsageLimit {
		t.Fatalf("the round does not wait for the account's reset: %+v", d)
	}
	a.green(n, "unit") // a user reran it
	a.pass(3 * time.Hour)
	a.expect(n, "it passed", "Ready: green after 0 rounds", 0)
	a.red(n, "unit", "TestA")
	a.pass(time.Hour)
	a.expect(n, "it fails again on the same commit", "Watching: round 0 of 5: check unit fails", 0)
	if said := a.Check(a.Head(n), "pawl").Summary; !strings.Contains(said, "flaky") {
		t.Errorf("the check run does not say that the check is flaky:\n%s", said)
	}
}

func TestFailureWhereTheBranchLeftTheBaseIsNotItsOwn(t *testing.T) {
	for name, base := range map[string]string{"the base passes now": "success", "the base's check runs": "", "the base fails still": "failure"} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, mending)
			head := a.Head(n)
			left := a.World.Branches(testrig.Repo)["main"]
			a.ends(left, "unit", "failure", job("go test ./...", "--- FAIL: TestOld (0.00s)\nFAIL"))
			a.Push("main", "fix: the old test", "b.txt", "b\n")
			if tip := a.World.Branches(testrig.Repo)["main"]; base == "" {
				a.Must(a.World.StartCheckRun(testrig.Repo, "github-actions", tip, "unit"))
			} else {
				a.ends(tip, "unit", base, nil)
			}
			a.comments(n, testrig.Writer, "/pawl watch")
			a.red(n, "unit", "TestOld")
			a.pass(10 * time.Minute)
			if a.Calls() > 0 {
				t.Errorf("%d agent runs", a.Calls())
			}
			if base == "success" {
				if a.Head(n) == head {
					t.Error("the base was not merged")
				}
			} else if said := a.Check(head, "pawl").Summary; !strings.Contains(said, "was there before") {
				t.Errorf("the check run does not say that the failure was there before:\n%s", said)
			}
		})
	}
}

func TestWatchWaitsForChecksOfSeveralHours(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.StartCheckRun(testrig.Repo, "github-actions", a.Head(n), "nightly"))
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "unit", "TestA")
	a.pass(5 * time.Hour)
	a.expect(n, "a check runs for hours", "Watching: round 0 of 5", 0)
	a.green(n, "nightly")
	a.expect(n, "all have finished", "Watching: round 1 of 5", 1)
}

func TestWatchWaitsNoLongerForACheckThatNeverEnds(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.StartCheckRun(testrig.Repo, "github-actions", a.Head(n), "stuck"))
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "unit", "TestA")
	a.pass(7 * time.Hour)
	a.expect(n, "after six hours", "Watching: round 1 of 5", 1)
}

func TestRerunThatNeverStartsCostsFewCalls(t *testing.T) {
	a, n := newWatched(t, mending, mayRerun)
	a.World.Inject(fakegithub.Fault{
		Route: "POST /repos/{owner}/{repo}/actions/runs/{id}/rerun-failed-jobs",
		Answer: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte("{}"))
		},
	})
	a.World.ResetCalls()
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "unit", "TestA")
	a.pass(50 * time.Minute)
	a.expect(n, "the jobs do not start", "Watching: round 0 of 5", 0)
	if got := a.World.Calls()["GET /repos/{owner}/{repo}/commits/{ref}/check-runs"]; got > 40 {
		t.Errorf("the checks were read %d times", got)
	}
	a.pass(time.Hour)
	a.expect(n, "after an hour", "Watching: round 1 of 5", 1)
}

func TestRerunThatTakesHoursIsWaitedFor(t *testing.T) {
	a, n := newWatched(t, mending, mayRerun)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "unit", "TestNow")
	a.pass(3 * time.Hour)
	a.expect(n, "the job runs again", "Watching: round 0 of 5", 0)
	a.green(n, "unit")
	a.expect(n, "it passed", "Ready: green after 0 rounds", 0)
	if said := a.Check(a.Head(n), "pawl").Summary; strings.Contains(said, "GitHub shows it no more") {
		t.Errorf("the check run says\n%s", said)
	}
}

func TestFlakyFailureFromBeforeTheWatchBeginsNoRound(t *testing.T) {
	a, n := newWatched(t, mending, mayRerun)
	a.red(n, "unit", "TestNow")
	a.pass(10 * time.Minute)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.pass(3 * time.Hour)
	a.expect(n, "the job runs again", "Watching: round 0 of 5", 0)
	a.green(n, "unit")
	a.expect(n, "it passed", "Ready: green after 0 rounds", 0)
}

func TestAStopIsShownOnAHeadWithAPendingStatus(t *testing.T) {
	a, n := newWatched(t, "echo I changed nothing.\n")
	a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "pending"))
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.pass(5 * time.Minute)
	a.expect(n, "the status is pending", "Watching: round 0 of 5: GitHub counts a status", 0)
	a.comments(n, testrig.Writer, "/pawl solve rename f.txt to g.txt")
	if got := a.title(n); !strings.HasPrefix(got, "Stopped") {
		t.Errorf("the agent changed nothing: title %q", got)
	}
}

func TestTwoChecksOfOneNameAreClassifiedOnce(t *testing.T) {
	a, n := newWatched(t, "echo I changed nothing.\n")
	a.World.AddOtherApp("other-ci", 4711)
	a.comments(n, testrig.Writer, "/pawl watch")
	_, err := a.World.CompleteCheckRun(testrig.Repo, "other-ci", fakegithub.CheckResult{SHA: a.Head(n), Name: "unit", Conclusion: "success"})
	a.Must(err)
	a.red(n, "unit", "TestA")
	a.green(n, "lint")
	a.green(n, "docs")
	found := 0
	for _, r := range a.state(n).Feedback {
		if r.Source == policy.FromCheckRun {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d requests about one failure", found)
	}
}

func TestRequiredVerdictOfPawlKeepsAWatchFromReady(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.RequireChecks(testrig.Repo, "main", "unit", "pawl/severity"))
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.pass(time.Hour)
	a.expect(n, "the base requires a verdict", "Watching: round 0 of 5: GitHub does not let it merge, and required check pawl/severity", 0)
}

func TestFailureOfAReviewedHeadIsNotForgottenAfterAMove(t *testing.T) {
	var a *acts
	a, n := newWatched(t, mending)
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.during(func() { a.Push("feature", "my own fix", "g.txt", "g\n") })
	a.reviews(n, testrig.Writer, "CHANGES_REQUESTED", "Please rename f.txt to h.txt.")
	a.green(n, "unit")
	a.pass(3 * time.Hour)
	if a.Calls() != 2 || !strings.Contains(a.Prompt("2"), "rename f.txt") {
		t.Errorf("%d attempts; the review waits: %q", a.Calls(), a.title(n))
	}
}
