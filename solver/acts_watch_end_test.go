package solver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// watchEnds lists what a user may do to end a watch.
func watchEnds() map[string]struct {
	end  func(a *acts, n int)
	want string
} {
	return map[string]struct {
		end  func(a *acts, n int)
		want string
	}{
		"unwatch": {func(a *acts, n int) { a.Writes(n, testrig.Writer, "/pawl unwatch") }, "ada ended the watch"},
		"draft":   {func(a *acts, n int) { a.Must(a.World.Draft(testrig.Repo, n, testrig.Writer, true)) }, "the pull request was converted to a draft by ada"},
		"label":   {func(a *acts, n int) { a.Must(a.World.RemoveLabel(testrig.Repo, n, testrig.Writer, "pawl:watch")) }, "ada ended the watch"},
		"close":   {func(a *acts, n int) { a.Must(a.World.ClosePull(testrig.Repo, n, testrig.Writer)) }, "the thread was closed by ada"},
	}
}

// label lets the writer ask for a watch.
func (a *acts) label(pull int) {
	a.T.Helper()
	a.Must(a.World.AddLabel(testrig.Repo, pull, testrig.Writer, "pawl:watch"))
	a.settle()
}

// provoke does everything that starts work on a watched pull request, and checks that no attempt follows.
func (a *acts) provoke(pull int, title string) {
	a.T.Helper()
	calls := a.Calls()
	a.red(pull, "unit", "TestLater")
	a.red(pull, "lint")
	_, err := a.World.Review(testrig.Repo, pull, testrig.Writer, "CHANGES_REQUESTED", "Please rename f.txt to g.txt.")
	a.Must(err)
	_, err = a.World.ReviewComment(a.T.Context(), testrig.Repo, pull, testrig.Writer, "f.txt", 1, "This is wrong.")
	a.Must(err)
	a.settle()
	a.comments(pull, testrig.Writer, "Please change f.txt.")
	a.Push("main", "feat: f", "f.txt", "another\n")
	a.pass(2 * time.Hour)
	a.expect(pull, "after the end", title, calls)
}

func TestEndOfAWatchEndsItsWork(t *testing.T) {
	for name, c := range watchEnds() {
		t.Run(name+" after a round", func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.label(n)
			a.red(n, "unit", "TestA")
			a.expect(n, "a round", "Watching: round 1 of 5", 1)
			c.end(a, n)
			a.settle()
			a.expect(n, "the end", "Not watched: "+c.want+" (completed neutral)", 1)
			a.provoke(n, "Not watched: "+c.want+" (completed neutral)")
		})
		t.Run(name+" during a round", func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.Push("main", "ci", ".github/pawl.yml", "verify: ['false']\n") // the ladder would continue
			a.label(n)
			a.during(func() { c.end(a, n); a.deliverAll() })
			a.red(n, "unit", "TestA")
			a.expect(n, "the end", "Not watched: "+c.want+" (completed neutral)", a.Calls())
			if name != "close" && a.Calls() != 1 {
				t.Errorf("%d attempts, want that the running one continues to its end", a.Calls())
			}
			a.provoke(n, "Not watched: "+c.want+" (completed neutral)")
		})
	}
}

// TestSecondWatchOfAHeadFindsItsFailuresAgain stops the first round before its agent runs.
func TestSecondWatchOfAHeadFindsItsFailuresAgain(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.during(func() { a.Writes(n, testrig.Writer, "/pawl stop"); a.deliverAll() })
	a.red(n, "unit", "TestA")
	head := a.Head(n)
	a.comments(n, testrig.Writer, "/pawl watch")
	if a.Calls() != 1 || a.Head(n) == head {
		t.Errorf("%d runs of the agent, title %q; want a round on the same failure, and its push", a.Calls(), a.title(n))
	}
}

// deliverAll delivers GitHub's webhooks at once.
func (a *acts) deliverAll() {
	for a.deliver() {
	}
}

func TestEndOfAWatchLeavesAUsersOwnRequestAlone(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Push("main", "ci", ".github/pawl.yml", "verify: ['false']\n")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.during(func() { a.Writes(n, testrig.Writer, "/pawl unwatch"); a.deliverAll() })
	a.comments(n, testrig.Writer, "/pawl solve add a line")
	if a.Calls() < 2 {
		t.Errorf("%d attempts, want that the ladder of the user's request goes on", a.Calls())
	}
	if title := a.title(n); strings.HasPrefix(title, "Not watched") {
		t.Errorf("the title is %q", title)
	}
}

func TestWatchEndsIfWhoAskedMayNotWrite(t *testing.T) {
	const ended = "Not watched: ada may not write to the repository any more (completed neutral)"
	lost := func(a *acts) { a.Must(a.World.SetRole(testrig.Repo, testrig.Writer, "read")) }
	t.Run("between rounds", func(t *testing.T) {
		a, n := newWatched(t, mending)
		a.comments(n, testrig.Writer, "/pawl watch")
		a.red(n, "unit", "TestA")
		a.pass(fresh)
		lost(a)
		a.red(n, "unit", "TestB")
		a.expect(n, "the second round", ended, 1)
		a.red(n, "lint", "TestC")
		a.expect(n, "afterwards", ended, 1)
	})
	t.Run("during a round", func(t *testing.T) {
		a, n := newWatched(t, mending)
		a.comments(n, testrig.Writer, "/pawl watch")
		a.during(func() { lost(a) })
		before := a.Head(n)
		a.red(n, "unit", "TestA")
		a.expect(n, "the end", ended, 1)
		if a.Head(n) != before {
			t.Error("pushed for a user who may not write")
		}
	})
	t.Run("but another user asked since", func(t *testing.T) {
		a, n := newWatched(t, mending)
		a.Must(a.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
		a.comments(n, testrig.Writer, "/pawl watch")
		a.comments(n, "mia", "/pawl watch the tests")
		a.pass(fresh)
		lost(a)
		a.red(n, "unit", "TestA")
		a.expect(n, "mia's watch", "Watching: round 1 of 5", 1)
	})
	t.Run("of Pawl's own pull request", func(t *testing.T) {
		t.Parallel()
		a := newActs(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "watch: {pulls: own}\n"})
		a.Agent(mending, "")
		a.World.AddOtherApp("github-actions", 15368)
		aLine(a)
		a.pass(fresh)
		lost(a)
		a.red(2, "unit", "TestA")
		if a.Calls() != 1 || a.state(1).Watch.Ended != "ada may not write to the repository any more" {
			t.Errorf("%d attempts; the watch ended because %q", a.Calls(), a.state(1).Watch.Ended)
		}
	})
}

// fresh is how long a permission that was checked with a request stays valid.
const fresh = 5 * time.Minute

func TestWatchBeginsAnewAfterAForcePush(t *testing.T) {
	for name, reset := range map[string]bool{"on new commits": false, "back to an earlier round": true} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.label(n)
			begun := a.Head(n)
			a.red(n, "unit", "TestA")
			first := a.Head(n)
			a.red(n, "unit", "TestB")
			a.expect(n, "two rounds", "Watching: round 2 of 5", 2)
			want := first
			if reset {
				a.Must(a.World.ResetBranch(a.T.Context(), testrig.Repo, testrig.Writer, "feature", first))
			} else {
				mine := fakegithub.Commit{Branch: "feature", From: begun, Message: "Begin anew", Files: map[string]string{"c.txt": "mine\n"}}
				sha, err := a.World.PushCommit(a.T.Context(), testrig.Repo, testrig.Writer, mine)
				a.Must(err)
				want = sha
			}
			a.settle()
			if a.Head(n) != want {
				t.Fatalf("the head is %s, want %s", a.Head(n), want)
			}
			a.red(n, "unit", "TestB")
			a.pass(50 * time.Minute)
			a.expect(n, "within the hour", "Watching: round 2 of 5", 2)
			a.pass(20 * time.Minute)
			a.expect(n, "after the hour", "Watching: round 3 of 5", 3)
			if !strings.Contains(a.Git("log", "--format=%H", "feature"), want) {
				t.Error("the round did not build on the user's commit")
			}
			for _, push := range a.World.Pushes(testrig.Repo) {
				if push.Forced && push.By != testrig.Writer {
					t.Errorf("%+v", push)
				}
			}
		})
	}
}

func TestWatchLooksAgainAfterABotsPush(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.AddBot("format[bot]", 99))
	format := func(words string) {
		_, err := a.World.PushCommit(a.T.Context(), testrig.Repo, "format[bot]", fakegithub.Commit{Branch: "feature", Message: "Format", Files: map[string]string{"f.txt": words}})
		a.Must(err)
	}
	a.comments(n, testrig.Writer, "/pawl watch")
	a.during(func() { format("formatted\n"); a.deliverAll() })
	a.red(n, "unit", "TestA")
	if s := a.state(n); !s.Attempts[0].Receipt.Moved || len(s.Pending()) != 0 {
		t.Errorf("the attempt on the old head went on: %+v, pending %+v", s.Attempts[0].Receipt, s.Pending())
	}
	a.red(n, "unit", "TestA")
	a.expect(n, "at once, on the new head", "Watching: round 2 of 5", 1)
	format("again\n")
	a.settle()
	a.green(n, "unit")
	a.expect(n, "the bot mended it", "Ready: green after 2 rounds", 1)
}

func TestRemovingTheLabelEndsAWatchWhoeverMay(t *testing.T) {
	for name, who := range map[string]string{"a triager": testrig.Reader, "a bot": "triage[bot]"} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.Must(a.World.AddBot("triage[bot]", 98))
			a.label(n)
			a.Must(a.World.RemoveLabel(testrig.Repo, n, who, "pawl:watch"))
			a.red(n, "unit", "TestA")
			a.expect(n, "the end", "Not watched: "+strings.NewReplacer("[", "(", "]", ")").Replace(who)+" ended the watch", 0)
		})
	}
}

func TestRepeatedWatchAdmitsTheNewHead(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.Must(a.World.Protect(testrig.Repo, "feature"))
	a.comments(n, testrig.Writer, "/pawl watch and hurry")
	a.expect(n, "nothing has changed", "Watching: round 0 of 5", 0)
	a.Push("feature", "mine", "g.txt", "g\n")
	a.comments(n, testrig.Writer, "/pawl watch again, please")
	a.expect(n, "another head", "Not watched: branch feature is protected", 0)
	if !strings.Contains(a.NewestComment(n), "Not watched: branch feature is protected. Nothing was done.") {
		t.Errorf("the answer is %q", a.NewestComment(n))
	}
}

func TestReopenedPullRequestIsWatchedByItsLabel(t *testing.T) {
	t.Parallel()
	a := newActs(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "watch: {pulls: labelled}\n"})
	a.Agent(mending, "")
	a.World.AddOtherApp("github-actions", 15368)
	n := a.pull("feature", map[string]string{"f.txt": "f\n"})
	a.label(n)
	a.red(n, "unit", "TestA")
	a.Must(a.World.ClosePull(testrig.Repo, n, testrig.Writer))
	a.settle()
	a.expect(n, "closed", "Not watched: the thread was closed by ada", 1)
	a.Must(a.World.ReopenIssue(testrig.Repo, n, testrig.Writer))
	a.red(n, "unit", "TestB")
	a.expect(n, "reopened, without new words", "Watching: round 2 of 5", 2)
}

func TestWatchSurvivesARestart(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.ends(a.Head(n), "unit", "failure", job("go test ./...", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/x\t0.003s"))
	a.deliverAll()
	a.Clock.Reach(a.Clock.Now().Add(time.Minute))
	ctx, stop := context.WithCancel(t.Context())
	var began atomic.Bool
	a.before = func(b thread.Batch) error {
		if began.Load() {
			stop()
		}
		if slices.ContainsFunc(b.Events, func(e thread.NewEvent) bool { return e.Kind == thread.KindAttemptStarted }) {
			began.Store(true)
		}
		return nil
	}
	if err := a.solver.Step(ctx, widgets(n)); !errors.Is(err, context.Canceled) {
		t.Fatalf("the step ended with %v, want that the server stopped", err)
	}
	a.before = nil
	a.Clock.Reach(a.Clock.Now().Add(thread.LeaseTime + time.Second))
	a.solver = a.process("node-2")
	a.settle()
	if s := a.state(n); s.Attempts[0].Receipt.Outcome != policy.Interrupted || s.Attempts[1].Decision.Round != 1 {
		t.Errorf("the attempts are %+v", s.Attempts)
	}
	a.expect(n, "another process took over", "Watching: round 1 of 5", 1)
	a.red(n, "unit", "TestB")
	a.expect(n, "the next round", "Watching: round 2 of 5", 2)
	a.green(n, "unit")
	a.expect(n, "green", "Ready: green after 2 rounds", 2)
}

// reviews reviews a pull request.
func (a *acts) reviews(pull int, who, state, words string) (id int64) {
	a.T.Helper()
	id, err := a.World.Review(testrig.Repo, pull, who, state, words)
	a.Must(err)
	a.settle()
	return id
}

func TestWatchTakesTheReviewsThatWereThere(t *testing.T) {
	const words = "Please rename f.txt to g.txt."
	for name, c := range map[string]struct {
		before func(a *acts, n int)
		calls  int
	}{
		"that request changes": {func(a *acts, n int) { a.reviews(n, "mia", "CHANGES_REQUESTED", words) }, 1},
		"that a comment followed": {func(a *acts, n int) {
			a.reviews(n, "mia", "CHANGES_REQUESTED", words)
			a.reviews(n, "mia", "COMMENTED", "Hm.")
		}, 1},
		"that an approval followed": {func(a *acts, n int) {
			a.reviews(n, "mia", "CHANGES_REQUESTED", words)
			a.reviews(n, "mia", "APPROVED", "")
		}, 0},
		"that comment": {func(a *acts, n int) { a.reviews(n, "mia", "COMMENTED", words) }, 0},
		"of a reader":  {func(a *acts, n int) { a.reviews(n, testrig.Reader, "CHANGES_REQUESTED", words) }, 0},
		"that were dismissed": {func(a *acts, n int) {
			a.Must(a.World.Dismiss(testrig.Repo, n, testrig.Writer, a.reviews(n, "mia", "CHANGES_REQUESTED", words)))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.Must(a.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
			c.before(a, n)
			a.green(n, "unit")
			a.comments(n, testrig.Writer, "/pawl watch")
			if a.Calls() != c.calls {
				t.Fatalf("%d attempts, want %d", a.Calls(), c.calls)
			}
			if c.calls == 1 && !strings.Contains(a.Prompt("1"), words) {
				t.Errorf("the prompt lacks the review:\n%s", a.Prompt("1"))
			}
			a.comments(n, testrig.Writer, "/pawl unwatch")
			a.comments(n, testrig.Writer, "/pawl watch once more")
			a.green(n, "unit")
			a.expect(n, "watched again", "Ready: green after", c.calls)
		})
	}
}

func TestLineCommentJoinsTheNextRound(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	_, err := a.World.ReviewComment(t.Context(), testrig.Repo, n, "mia", "f.txt", 1, "This word is wrong.")
	a.Must(err)
	a.settle()
	a.reviews(n, "mia", "COMMENTED", "Generally fine.")
	a.reviews(n, "mia", "APPROVED", "Could be shorter.")
	a.pass(time.Hour)
	a.expect(n, "comments", "Ready: green after 0 rounds", 0)
	a.red(n, "unit", "TestA")
	a.expect(n, "a failing check", "Watching: round 1 of 5", 1)
	for _, want := range []string{"TestA", "This word is wrong."} {
		if !strings.Contains(a.Prompt("1"), want) {
			t.Errorf("the prompt lacks %q:\n%s", want, a.Prompt("1"))
		}
	}
	a.green(n, "unit")
	a.expect(n, "green", "Ready: green after 1 round", 1)
	a.reviews(n, "mia", "CHANGES_REQUESTED", "")
	a.expect(n, "a request without words", "Watching: round 2 of 5", 2)
}

func TestLineCommentOnPawlsOwnWatchedPullRequestBeginsARound(t *testing.T) {
	t.Parallel()
	a := newActs(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "watch: {pulls: own}\n"})
	a.Agent(mending, "")
	aLine(a)
	_, err := a.World.ReviewComment(t.Context(), testrig.Repo, 2, testrig.Writer, "file1.txt", 1, "This word is wrong.")
	a.Must(err)
	a.pass(10 * time.Minute) // for checks to appear
	a.expect(2, "a comment", "Ready: green after 1 round", 2)
}

func TestDismissedReviewCostsNoRound(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.StartCheckRun(testrig.Repo, "github-actions", a.Head(n), "slow"))
	a.comments(n, testrig.Writer, "/pawl watch")
	id := a.reviews(n, testrig.Writer, "CHANGES_REQUESTED", "Please rename f.txt to g.txt.")
	a.expect(n, "a check runs", "Watching: round 0 of 5", 0)
	a.Must(a.World.Dismiss(testrig.Repo, n, testrig.Writer, id))
	a.green(n, "slow")
	a.expect(n, "dismissed", "Ready: green after 0 rounds", 0)
}
