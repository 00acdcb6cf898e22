package solver_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver/thread"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestWatchIsRefusedOnlyIfARuleBlocksPushes(t *testing.T) {
	for kind, refused := range map[string]bool{
		"deletion": false, "non_fast_forward": false, "required_linear_history": false,
		"update": true, "pull_request": true, "merge_queue": true, "required_signatures": true,
	} {
		t.Run(kind, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.Must(a.World.AddRule(testrig.Repo, "feature", kind))
			a.comments(n, testrig.Writer, "/pawl watch")
			if a.state(n).Watched() == refused {
				t.Errorf("refused: %t, want %t: %q", !refused, refused, a.NewestComment(n))
			}
			if refused && !strings.Contains(a.NewestComment(n), "branch feature is protected") {
				t.Errorf("the answer is %q", a.NewestComment(n))
			}
		})
	}
}

func TestWatchLooksAgainForACommitStatus(t *testing.T) {
	for name, required := range map[string]bool{"required": true, "optional": false} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, mending)
			want := "GitHub counts a status that has not passed"
			if required {
				want = "GitHub does not let it merge, and required check legacy may not have passed"
				a.Must(a.World.RequireChecks(testrig.Repo, "main", "legacy"))
			}
			a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "pending"))
			a.green(n, "unit")
			a.comments(n, testrig.Writer, "/pawl watch")
			a.pass(30 * time.Minute)
			if got := a.state(n).Watch.Looked; got.Lacks != want || got.Again.IsZero() {
				t.Errorf("the look lacks %q, want %q; again at %s", got.Lacks, want, got.Again)
			}
			a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "success"))
			a.pass(time.Hour)
			a.expect(n, "the status passed, and no event told", "Ready: green after 0 rounds", 0)
		})
	}
}

func TestWatchStopsLookingAfterADay(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.RequireChecks(testrig.Repo, "main", "legacy"))
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.pass(25 * time.Hour)
	a.World.ResetCalls()
	a.pass(48 * time.Hour)
	if calls := a.World.Calls(); len(calls) > 0 {
		t.Errorf("calls after a day: %v", calls)
	}
	a.expect(n, "the title says what it lacks", "Watching: round 0 of 5: GitHub does not let it merge, and required check legacy", 0)
	a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "success"))
	a.comments(n, testrig.Writer, "/pawl watch")
	a.expect(n, "asked to look", "Ready: green after 0 rounds", 0)
}

func TestWatchLooksAtTheLastPushToTheBase(t *testing.T) {
	a, n := newWatched(t, mending)
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.Clock.Reach(a.Clock.Now().Truncate(10 * time.Minute).Add(10*time.Minute + time.Second))
	a.Push("main", "docs: a page", "b.txt", "b\n")
	a.settle()
	a.World.ResetCalls()
	a.Push("main", "feat: f", "f.txt", "another\n") // dropped: the interval already has an event
	a.pass(20 * time.Minute)
	if a.Calls() != 1 {
		t.Errorf("%d attempts, want one for the conflict: %q", a.Calls(), a.title(n))
	}
}

func TestOwnPullRequestFollowsTheLastPushToTheBase(t *testing.T) {
	t.Parallel()
	a := newActs(t, map[string]string{"a.txt": "one\n"})
	a.Agent(testrig.PlainAgent, "")
	aLine(a)
	a.Clock.Reach(a.Clock.Now().Truncate(10 * time.Minute).Add(10*time.Minute + time.Second))
	a.Push("main", "docs: a page", "b.txt", "b\n")
	a.settle()
	a.Push("main", "feat: a", "a.txt", "another\n")
	before := a.Calls()
	a.pass(20 * time.Minute)
	if a.Calls() != before+1 {
		t.Errorf("%d attempts, want one more than %d", a.Calls(), before)
	}
}

func TestWatchDoesNotWaitForPawlsOwnCheck(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.RequireChecks(testrig.Repo, "main", "unit", "pawl"))
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "unit", "TestA")
	a.green(n, "unit")
	a.expect(n, "the base requires Pawl's own check", "Ready: green after 1 round", 1)
}

func TestWatchAsksRarelyWhetherThePullRequestMerges(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.KeepComputing(testrig.Repo, n, true))
	a.green(n, "unit")
	a.World.ResetCalls()
	a.comments(n, testrig.Writer, "/pawl watch")
	a.pass(70 * time.Minute)
	if got := a.World.Calls()["GET /repos/{owner}/{repo}/pulls/{number}"]; got > 90 {
		t.Errorf("asked %d times", got)
	}
	if got := a.state(n); got.Ready() || got.Watch.Looked.Lacks != "GitHub has not computed whether it merges" {
		t.Errorf("ready: %t, lacks %q", got.Ready(), got.Watch.Looked.Lacks)
	}
	a.Must(a.World.KeepComputing(testrig.Repo, n, false))
	a.pass(time.Hour)
	a.expect(n, "computed", "Ready: green after 0 rounds", 0)
}

func TestWatchLooksAgainAfterARefusal(t *testing.T) {
	for _, status := range []int{403, 404, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.green(n, "unit")
			a.World.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}/commits/{ref}/check-runs", Times: 1, Status: status, Message: "No."})
			a.comments(n, testrig.Writer, "/pawl watch")
			if got := a.title(n); !strings.Contains(got, "GitHub did not show the head") {
				t.Errorf("the title is %q", got)
			}
			a.pass(70 * time.Minute)
			a.expect(n, "an hour later", "Ready: green after 0 rounds", 0)
		})
	}
}

func TestWatchGoesOnAfterAnErrorOfGitHub(t *testing.T) {
	for _, route := range []string{"GET /repos/{owner}/{repo}/commits/{ref}/check-runs", "GET /repos/{owner}/{repo}/pulls/{number}", "GET /repos/{owner}/{repo}/branches/{branch...}"} {
		t.Run(route, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.comments(n, testrig.Writer, "/pawl watch")
			a.ends(a.Head(n), "unit", "success", nil)
			for a.deliver() {
			}
			a.Clock.Reach(a.Clock.Now().Add(time.Minute))
			a.World.Inject(fakegithub.Fault{Route: route, Times: -1, Status: 502})
			if err := a.solver.Step(t.Context(), widgets(n)); !errors.Is(err, forge.ErrUnavailable) {
				t.Errorf("the step ended with %v", err)
			}
			a.World.ClearFaults()
			a.Must(a.solver.Step(t.Context(), widgets(n)))
			a.settle()
			a.expect(n, "GitHub answers again", "Ready: green after 0 rounds", 0)
		})
	}
}

func TestWatchReadsManyChecks(t *testing.T) {
	for checks, want := range map[int]string{120: "Ready: green after 0 rounds", 501: "Watching: round 0 of 5: it has more than 500 checks, and Pawl reads no more"} {
		t.Run(fmt.Sprint(checks), func(t *testing.T) {
			a, n := newWatched(t, mending)
			for i := range checks {
				a.ends(a.Head(n), fmt.Sprintf("unit %d", i), "success", nil)
			}
			a.comments(n, testrig.Writer, "/pawl watch")
			a.pass(time.Minute)
			a.expect(n, "all have finished", want, 0)
		})
	}
}

func TestWatchLooksAgainAtANewBase(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Push("release", "a release", "r.txt", "r\n")
	a.Must(a.World.RequireChecks(testrig.Repo, "release", "build"))
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.expect(n, "the first base", "Ready: green after 0 rounds", 0)
	a.Must(a.World.Retarget(testrig.Repo, n, testrig.Writer, "release"))
	a.pass(time.Minute)
	a.expect(n, "the new base requires another check", "Watching: round 0 of 5: GitHub does not let it merge, and required check build", 0)
}

func TestFlakyJobOfAWatchThatCannotRunAgain(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.ends(a.Head(n), "unit", "failure", nil)
	a.ends(a.Head(n), "unit", "success", nil) // a user reran it
	a.settle()
	a.expect(n, "it passed", "Ready: green after 0 rounds", 0)
	a.Push("feature", "more", "g.txt", "g\n")
	a.red(n, "unit", "TestNow")
	a.pass(2 * time.Hour)
	if a.Calls() != 0 || !strings.Contains(a.Check(a.Head(n), "pawl").Summary, "actions: write") {
		t.Errorf("%d attempts; the check run says\n%s", a.Calls(), a.Check(a.Head(n), "pawl").Summary)
	}
}

func TestWatchAfterARestartInMidLook(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.ends(a.Head(n), "unit", "success", nil)
	failed := false
	a.before = func(b thread.Batch) error {
		looked := func(e thread.NewEvent) bool { return e.Kind == thread.KindWatched }
		if failed || !slices.ContainsFunc(b.Events, looked) {
			return nil
		}
		failed = true
		a.solver = a.process("node-2") // on another node
		return errors.New("the server was killed")
	}
	for a.deliver() {
	}
	_ = a.solver.Step(t.Context(), widgets(n))
	a.Clock.Reach(a.Clock.Now().Add(time.Minute))
	_ = a.solver.Step(t.Context(), widgets(n))
	if !failed {
		t.Fatal("the look was not cut off")
	}
	a.before = nil
	a.Must(a.solver.Step(t.Context(), widgets(n)))
	a.settle()
	a.expect(n, "after the restart", "Ready: green after 0 rounds", 0)
	if a.mentions(n) != 1 {
		t.Errorf("%d mentions", a.mentions(n))
	}
}

func TestWatchLooksAgainAfterAnApproval(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.RequireChecks(testrig.Repo, "main", "legacy"))
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	const lacks = "Watching: round 0 of 5: GitHub does not let it merge, and required check legacy"
	a.expect(n, "a status is missing, whose events Pawl does not get", lacks, 0)
	a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "success"))
	a.reviews(n, testrig.Reader, "APPROVED", "Fine.")
	a.expect(n, "approved by a reader, whose approval GitHub does not count", lacks, 0)
	id := a.reviews(n, testrig.Writer, "APPROVED", "Fine.")
	a.expect(n, "approved", "Ready: green after 0 rounds", 0)
	a.Must(a.World.SetStatus(testrig.Repo, a.Head(n), "legacy", "failure"))
	a.Must(a.World.Dismiss(testrig.Repo, n, testrig.Writer, id))
	a.settle()
	a.expect(n, "dismissed", lacks, 0)
}
