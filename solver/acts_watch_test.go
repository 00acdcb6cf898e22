package solver_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/sjson"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/testrig"
)

// mending is an agent that adds a line to its own file, so that no attempt resembles another.
const mending = `n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > "$CTRL/prompt.$n"
head -c 90 /dev/urandom | base64 > "file$n.txt"; echo "I added file$n.txt."
`

// newWatched returns a world with the writer's pull request, which the tests watch.
func newWatched(t *testing.T, agent string, options ...func(*fakegithub.Options)) (a *acts, pull int) {
	t.Helper()
	t.Parallel()
	a = newActs(t, map[string]string{"a.txt": "one\n"}, options...)
	a.Agent(agent, "")
	a.World.AddOtherApp("github-actions", 15368)
	return a, a.pull("feature", map[string]string{"f.txt": "f\n"})
}

// title returns the title of Pawl's check run on the pull request's head, with status and conclusion.
func (a *acts) title(pull int) string {
	c := a.Check(a.Head(pull), "pawl")
	return strings.TrimSpace(fmt.Sprintf("%s (%s %s)", c.Title, c.Status, c.Conclusion))
}

func (a *acts) expect(pull int, when, title string, calls int) {
	a.T.Helper()
	if got := a.title(pull); !strings.HasPrefix(got, title) || a.Calls() != calls {
		a.T.Errorf("%s: title %q after %d attempts, want %q after %d", when, got, a.Calls(), title, calls)
	}
}

func (a *acts) green(pull int, checks ...string) {
	a.T.Helper()
	for _, name := range checks {
		a.ends(a.Head(pull), name, "success", nil)
	}
	a.settle()
}

// red reports a failed job on the head that names failing tests.
func (a *acts) red(pull int, check string, tests ...string) {
	a.T.Helper()
	var log strings.Builder
	for _, test := range tests {
		fmt.Fprintf(&log, "--- FAIL: %s (0.00s)\n", test)
	}
	a.ends(a.Head(pull), check, "failure", job("go test ./...", log.String()+"FAIL\nFAIL\texample.com/x\t0.003s"))
	a.settle()
}

// fails reports a failed check on the head, with other words for each i.
func (a *acts) fails(pull, i int) {
	a.T.Helper()
	words := strings.Fields("parser wheel lexer catch spring queue index license header socket ledger canvas mutex kernel parcel ribbon gutter walnut")
	of := func(k int) string { return words[(3*i+k)%len(words)] }
	notes := []fakegithub.CheckAnnotation{{Path: of(0) + ".go", Line: i + 1, Message: fmt.Sprintf("The %s of the %s has no %s, so %d widgets were lost.", of(0), of(1), of(2), 7*i)}}
	_, err := a.World.CompleteCheckRun(testrig.Repo, "github-actions", fakegithub.CheckResult{
		SHA: a.Head(pull), Name: "build", Conclusion: "failure", Title: of(1) + " broke", Summary: strings.Repeat(of(2)+" "+of(1)+" ", 9), Annotations: notes,
	})
	a.Must(err)
	a.settle()
}

// mentions counts Pawl's comments that mention the writer.
func (a *acts) mentions(pull int) (n int) {
	for _, c := range a.World.Comments(testrig.Repo, pull) {
		if c.Author == "pawl[bot]" && strings.HasPrefix(c.Body, "@"+testrig.Writer) {
			n++
		}
	}
	return n
}

func TestWatchTurnsAPullRequestGreen(t *testing.T) {
	a, n := newWatched(t, mending)
	a.red(n, "unit", "TestA", "TestB") // before the watch
	a.comments(n, testrig.Writer, "/pawl watch")
	a.expect(n, "the first round", "Watching: round 1 of 5 (completed neutral", 1)
	if !strings.Contains(a.Prompt("1"), "TestA") {
		t.Errorf("the prompt lacks the failing test:\n%s", a.Prompt("1"))
	}
	a.green(n, "lint")
	a.red(n, "unit", "TestB")
	a.expect(n, "the second round", "Watching: round 2 of 5 (completed neutral", 2)
	a.green(n, "unit", "lint")
	a.expect(n, "all green", "Ready: green after 2 rounds (completed", 2)
	a.green(n, "late")
	a.pass(time.Hour)
	if a.mentions(n) != 1 {
		t.Errorf("%d mentions, want 1: %q", a.mentions(n), a.NewestComment(n))
	}
	for _, p := range a.World.Pulls(testrig.Repo) {
		if p.State != "open" || p.Author != testrig.Writer || p.Pull.Head != "feature" {
			t.Errorf("the pull request is %s by %s from %s", p.State, p.Author, p.Pull.Head)
		}
	}
	for _, push := range a.World.Pushes(testrig.Repo) {
		if push.Forced {
			t.Errorf("%+v", push)
		}
	}
}

func TestWatchOfAPullRequestThatIsGreen(t *testing.T) {
	a, n := newWatched(t, mending)
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.expect(n, "green from the beginning", "Ready: green after 0 rounds (completed success)", 0)
	if a.mentions(n) != 1 {
		t.Errorf("%d mentions", a.mentions(n))
	}
	a.comments(n, testrig.Writer, "/pawl unwatch")
	a.expect(n, "the end", "Not watched: ada ended the watch (completed neutral)", 0)
	a.red(n, "unit", "TestA")
	a.pass(time.Hour)
	a.expect(n, "after the end", "Not watched: ada ended the watch (completed neutral)", 0)
}

func TestWatchWaitsUntilAllChecksHaveFinished(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.StartCheckRun(testrig.Repo, "github-actions", a.Head(n), "slow"))
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "unit", "TestA")
	a.expect(n, "a check runs", "Watching: round 0 of 5 (completed neutral", 0)
	_, err := a.World.Review(testrig.Repo, n, testrig.Writer, "CHANGES_REQUESTED", "Please rename f.txt to g.txt.")
	a.Must(err)
	a.settle()
	a.expect(n, "a review while a check runs", "Watching: round 0 of 5 (completed neutral", 0)
	a.green(n, "slow")
	a.expect(n, "all have finished", "Watching: round 1 of 5 (completed neutral", 1)
	for _, want := range []string{"TestA", "rename f.txt"} {
		if !strings.Contains(a.Prompt("1"), want) {
			t.Errorf("one round for all: the prompt lacks %q", want)
		}
	}
}

func TestWatchStopsAfterItsRounds(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Config += "policy: {stagnation: {similarity: 1}}\n" // only the limit of rounds may stop it
	a.comments(n, testrig.Writer, "/pawl watch")
	for i := range 6 {
		a.fails(n, i)
	}
	a.expect(n, "the sixth failure", "Stopped: not green after 5 rounds (completed action_required)", 5)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.pass(time.Hour)
	a.expect(n, "the same words", "Stopped: not green after 5 rounds", 5)
	a.comments(n, testrig.Writer, "Use a mutex around the map, please. /pawl is not needed.")
	a.comments(n, testrig.Writer, "/pawl solve use a mutex around the map")
	a.expect(n, "new words", "Watching: round 0 of 5", 6)
	a.fails(n, 6)
	a.expect(n, "and the count begins anew", "Watching: round 1 of 5", 7)
}

func TestWatchOfACheckThatAlwaysFailsAlike(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Writer, "/pawl watch")
	for range 7 {
		a.fails(n, 1)
	}
	if got := a.title(n); !strings.HasPrefix(got, "Stopped: not green after") || a.Calls() > 5 {
		t.Errorf("%q after %d attempts", got, a.Calls())
	}
}

func TestWatchStopsWithoutConvergence(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "unit", "TestA", "TestB")
	a.red(n, "unit", "TestB") // fewer
	a.red(n, "unit", "TestC") // others
	a.expect(n, "it converges", "Watching: round 3 of 5", 3)
	a.red(n, "unit", "TestC", "TestD")
	a.expect(n, "round 3 mended nothing", "Stopped: not green after 3 rounds", 3)
	if !strings.Contains(a.StatusComment(n), "round 3 fixed no failing test: `example.com/x` TestC") {
		t.Errorf("the status comment does not say why:\n%s", a.StatusComment(n))
	}
}

func TestWatchLeavesFlakyRedAndInfrastructureAlone(t *testing.T) {
	a, n := newWatched(t, mending, func(o *fakegithub.Options) {
		o.Permissions = setup.AppPermissions()
		o.Permissions["actions"] = "write"
	})
	base := a.World.Branches(testrig.Repo)["main"]
	a.ends(base, "nightly", "failure", job("make", "it broke"))
	a.comments(n, testrig.Writer, "/pawl watch")
	a.ends(a.Head(n), "flaky", "failure", job("go test ./...", "--- FAIL: TestNow (0.00s)\nFAIL"))
	a.ends(a.Head(n), "nightly", "failure", job("make", "it broke"))
	a.ends(a.Head(n), "machine", "cancelled", nil)
	a.settle()
	a.ends(a.Head(n), "flaky", "success", nil) // GitHub reruns all failed jobs of the workflow
	a.ends(a.Head(n), "nightly", "failure", job("make", "it broke"))
	a.ends(a.Head(n), "machine", "cancelled", nil)
	a.settle()
	a.expect(n, "nothing is the pull request's fault", "Watching: round 0 of 5", 0)
	if got := a.World.Calls()["POST /repos/{owner}/{repo}/actions/runs/{id}/rerun-failed-jobs"]; got != 1 {
		t.Errorf("%d re-runs, want 1", got)
	}
	said := a.Check(a.Head(n), "pawl").Summary
	for _, want := range []string{"flaky", "was there before", "infrastructure"} {
		if !strings.Contains(said, want) {
			t.Errorf("the check run does not say %q:\n%s", want, said)
		}
	}
}

func TestWatchMergesAConflictingBase(t *testing.T) {
	a, n := newWatched(t, `grep -v '^[<=>][<=>]' f.txt > c && mv c f.txt; cat > "$CTRL/prompt.1"; echo resolved`)
	a.green(n, "unit")
	a.comments(n, testrig.Writer, "/pawl watch")
	a.Push("main", "docs: a page", "b.txt", "b\n")
	a.pass(time.Hour)
	a.expect(n, "a base without conflict", "Ready: green after 0 rounds", 0)
	a.Push("main", "feat: f", "f.txt", "another\n")
	a.pass(time.Hour)
	a.expect(n, "a conflict", "Watching: round 1 of 5", 1)
	a.green(n, "unit")
	a.expect(n, "the conflict is resolved", "Ready: green after 1 round", 1)
	if a.mentions(n) != 1 {
		t.Errorf("%d mentions, want silence after the first", a.mentions(n))
	}
}

func TestWatchIsSilentAfterAPush(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Writer, "/pawl watch")
	a.Push("feature", "my own fix", "g.txt", "g\n")
	a.red(n, "unit", "TestA")
	a.pass(50 * time.Minute)
	a.expect(n, "within the hour", "Watching: round 0 of 5", 0)
	a.pass(20 * time.Minute)
	a.expect(n, "after the hour", "Watching: round 1 of 5", 1)
	a.Push("feature", "another fix", "g.txt", "h\n")
	a.red(n, "unit", "TestB")
	a.comments(n, testrig.Writer, "/pawl watch go on at once")
	a.expect(n, "asked", "Watching: round 1 of 5", 2)
}

func TestWatchBeginsAgainIfTheBranchMoves(t *testing.T) {
	for name, before := range map[string]bool{"its webhook comes first": true, "the push is refused": false} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.comments(n, testrig.Writer, "/pawl watch")
			theirs := ""
			a.during(func() {
				theirs = a.Push("feature", "mine", "g.txt", "g\n")
				if before {
					for a.deliver() {
					}
				}
			})
			a.red(n, "unit", "TestA")
			if a.Head(n) != theirs {
				t.Errorf("the head is %s, want the user's %s", a.Head(n), theirs)
			}
			a.red(n, "unit", "TestA")
			a.pass(70 * time.Minute)
			if a.Head(n) == theirs || !strings.Contains(a.Git("log", "--format=%H", "feature"), theirs) {
				t.Error("the next round did not build on the user's commit")
			}
			a.expect(n, "the next round", "Watching: round 2 of 5", a.Calls())
		})
	}
}

func TestWatchNeedsOnlyTheRequiredChecks(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.Protect(testrig.Repo, "main", "unit"))
	a.Must(a.World.RequireChecks(testrig.Repo, "main", "build"))
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "optional", "TestA")
	a.green(n, "unit")
	a.expect(n, "a required check has not reported", "Watching: round 0 of 5", 0)
	if !strings.Contains(a.StatusComment(n), "required check build may not have passed") {
		t.Errorf("the status comment does not say what is missing:\n%s", a.StatusComment(n))
	}
	a.green(n, "build")
	a.expect(n, "the required ones pass", "Ready: green after 0 rounds", 0)
}

func TestWatchCountsAllChecksIfTheRulesCannotBeRead(t *testing.T) {
	a, n := newWatched(t, mending)
	a.Must(a.World.Protect(testrig.Repo, "main", "unit"))
	a.World.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}/branches/{branch...}", Times: 100, Status: 403, Message: "Resource not accessible by integration"})
	a.comments(n, testrig.Writer, "/pawl watch")
	a.green(n, "unit")
	a.expect(n, "all pass", "Ready: green after 0 rounds", 0)
	a.red(n, "optional", "TestA")
	a.expect(n, "any check counts", "Watching: round 1 of 5", 1)
}

func TestWatchEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(a *acts, n int)
		want string
	}{
		"by a command":          {func(a *acts, n int) { a.Writes(n, testrig.Writer, "/pawl unwatch") }, "ada ended the watch"},
		"by a stop":             {func(a *acts, n int) { a.Writes(n, testrig.Writer, "/pawl stop") }, "ada asked to stop"},
		"by removing the label": {func(a *acts, n int) { a.Must(a.World.RemoveLabel(testrig.Repo, n, testrig.Writer, "pawl:watch")) }, "ada ended the watch"},
		"by closing":            {func(a *acts, n int) { a.Must(a.World.ClosePull(testrig.Repo, n, testrig.Writer)) }, "the thread was closed by ada"},
		"by merging": {func(a *acts, n int) {
			_, err := a.World.MergePull(a.T.Context(), testrig.Repo, n, testrig.Writer)
			a.Must(err)
		}, "the pull request was merged by ada"},
		"by converting to a draft": {func(a *acts, n int) { a.Must(a.World.Draft(testrig.Repo, n, testrig.Writer, true)) }, "the pull request was converted to a draft by ada"},
	} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.Must(a.World.AddLabel(testrig.Repo, n, testrig.Writer, "pawl:watch"))
			a.settle()
			a.expect(n, "watched by the label", "Watching: round 0 of 5", 0)
			c.end(a, n)
			a.settle()
			if got := a.state(n).Watch.Ended; got != c.want {
				t.Errorf("it ended because %q, want %q", got, c.want)
			}
			a.red(n, "unit", "TestA")
			a.pass(2 * time.Hour)
			if a.Calls() != 0 {
				t.Errorf("%d attempts after the end", a.Calls())
			}
		})
	}
}

func TestWatchIsRefusedWithASentence(t *testing.T) {
	for name, c := range map[string]struct {
		asks func(a *acts) (n int)
		want string
	}{
		"on an issue": {func(a *acts) int {
			n, err := a.World.OpenIssue(testrig.Repo, testrig.Writer, "An issue", "Words.")
			a.Must(err)
			a.comments(n, testrig.Writer, "/pawl watch")
			return n
		}, "Not watched: this thread has no open pull request. Nothing was done."},
		"on a protected branch": {func(a *acts) int {
			n := a.pull("release", map[string]string{"r.txt": "r\n"})
			a.Must(a.World.Protect(testrig.Repo, "release"))
			a.comments(n, testrig.Writer, "/pawl watch")
			return n
		}, "Not watched: branch release is protected."},
		"of a bot": {func(a *acts) int {
			n := a.botPull()
			a.comments(n, testrig.Writer, "/pawl watch")
			return n
		}, "Not watched: the pull request was opened by the bot `deps[bot]`, which is not in `policy.allowed_bots`."},
		"from a fork": {func(a *acts) int {
			n := a.pull("feature", map[string]string{"r.txt": "r\n"})
			a.World.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}/pulls/{number}", Times: -1, Answer: fromFork})
			a.comments(n, testrig.Writer, "/pawl watch")
			return n
		}, "Not watched: the pull request comes from a fork, and Pawl pushes only to branches of this repository."},
		"with errors in the configuration": {func(a *acts) int {
			n := a.pull("feature", map[string]string{"r.txt": "r\n"})
			a.Push("main", "ci", ".github/pawl.yml", "watch: {pulls: all}\n")
			a.comments(n, testrig.Writer, "/pawl watch")
			return n
		}, "Not watched: `.github/pawl.yml` has errors."},
		"without a trigger": {func(a *acts) int {
			n := a.pull("feature", map[string]string{"r.txt": "r\n"})
			a.Push("main", "ci", ".github/pawl.yml", "triggers: [command]\n")
			a.Must(a.World.AddLabel(testrig.Repo, n, testrig.Writer, "pawl:watch"))
			a.settle()
			return n
		}, "Not watched: `triggers` in `.github/pawl.yml` does not list `label`."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs(t, nil)
			a.Agent(mending, "")
			a.Must(a.World.AddBot("deps[bot]", 88))
			n := c.asks(a)
			if said := a.NewestComment(n); !strings.Contains(said, strings.TrimSuffix(c.want, ".")) {
				t.Errorf("the answer is %q, want %q", said, c.want)
			}
			if a.state(n).Watching() || a.StatusComment(n) != "" {
				t.Errorf("watched all the same: %q", a.StatusComment(n))
			}
		})
	}
}

// fromFork answers with a pull request from another repository, because the fake has no forks.
func fromFork(w http.ResponseWriter, r *http.Request, github http.Handler) {
	answer := httptest.NewRecorder()
	github.ServeHTTP(answer, r)
	body, err := sjson.SetBytes(answer.Body.Bytes(), "head.repo.id", 424242)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body) // the client reports a broken answer
}

func (a *acts) botPull() int {
	a.T.Helper()
	_, err := a.World.PushCommit(a.T.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "deps", Message: "Bump", Files: map[string]string{"d.txt": "d\n"}})
	a.Must(err)
	n, err := a.World.OpenPull(a.T.Context(), testrig.Repo, "deps[bot]", fakegithub.PullRequest{Title: "Bump d", Head: "deps"})
	a.Must(err)
	return n
}

func TestWatchOfAnAllowedBotsPullRequest(t *testing.T) {
	t.Parallel()
	a := newActs(t, nil)
	a.Agent(mending, "")
	a.Config += "policy: {allowed_bots: [88]}\n"
	a.Must(a.World.AddBot("deps[bot]", 88))
	n := a.botPull()
	a.comments(n, testrig.Writer, "/pawl watch")
	a.pass(6 * time.Minute)
	a.expect(n, "allowed_bots lists it", "Ready: green after 0 rounds", 0)
}

func TestWatchByAReaderIsRefused(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(n, testrig.Reader, "/pawl watch")
	a.red(n, "unit", "TestA")
	a.pass(time.Hour)
	if !strings.Contains(a.NewestComment(n), "may not write to this repository") || a.Calls() != 0 {
		t.Errorf("%d attempts, and the answer is %q", a.Calls(), a.NewestComment(n))
	}
}

func TestWatchedPullsOfTheConfiguration(t *testing.T) {
	for pulls, c := range map[string]struct{ own, again bool }{
		"commanded": {},
		"labelled":  {again: true},
		"own":       {own: true, again: true},
	} {
		t.Run(pulls, func(t *testing.T) {
			t.Parallel()
			a := newActs(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "watch: {pulls: " + pulls + ", rounds: 3}\n"})
			a.Agent(mending, "")
			aLine(a)
			if got := a.state(1).Watched(); got != c.own {
				t.Errorf("Pawl's pull request is watched: %t, want %t", got, c.own)
			}
			n := a.pull("feature", map[string]string{"f.txt": "f\n"})
			a.Must(a.World.AddLabel(testrig.Repo, n, testrig.Writer, "pawl:watch"))
			a.settle()
			a.expect(n, "the label was added", "Watching: round 0 of 3", 1)
			a.Must(a.World.Draft(testrig.Repo, n, testrig.Writer, true))
			a.settle()
			a.Must(a.World.Draft(testrig.Repo, n, testrig.Writer, false))
			a.settle()
			if got := a.state(n).Watched(); got != c.again {
				t.Errorf("watched again after the draft: %t, want %t", got, c.again)
			}
		})
	}
}

func TestWatchOfPawlsOwnPullRequest(t *testing.T) {
	t.Parallel()
	a := newActs(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "watch: {pulls: own}\n"})
	a.Agent(mending, "")
	a.World.AddOtherApp("github-actions", 15368)
	aLine(a)
	a.red(2, "unit", "TestA")
	a.expect(2, "the first round", "Watching: round 1 of 5", 2)
	a.green(2, "unit")
	a.expect(2, "green", "Ready: green after 1 round", 2)
	if a.mentions(2) != 1 {
		t.Errorf("%d mentions of the user who asked for the work", a.mentions(2))
	}
}

func TestWatchedPullRequestsWithOneBase(t *testing.T) {
	t.Parallel()
	a := newActs(t, nil)
	a.Agent(`cat > /dev/null; for f in f.txt g.txt; do [ -f $f ] && grep -v '^[<=>][<=>]' $f > c && mv c $f; done; echo "$PAWL_THREAD" >> "$CTRL/threads"; true`, "")
	one, two := a.pull("one", map[string]string{"f.txt": "1\n"}), a.pull("two", map[string]string{"g.txt": "2\n"})
	a.comments(one, testrig.Writer, "/pawl watch")
	a.comments(two, testrig.Writer, "/pawl watch")
	a.pass(6 * time.Minute)
	a.Push("main", "feat: f", "f.txt", "another\n")
	a.pass(time.Hour)
	a.Push("main", "feat: g", "g.txt", "another\n")
	a.pass(3 * time.Hour)
	for n, want := range map[int]string{one: "Ready: green after 1 round", two: "Ready: green after 1 round"} {
		a.expect(n, "after two conflicts", want, 2)
	}
	if got := strings.Fields(a.Left("threads")); !slices.Equal(got, []string{testrig.ThreadName(one), testrig.ThreadName(two)}) {
		t.Errorf("attempts on %q", got)
	}
}

// maxWatchCalls limits the API calls of a watched pull request that turns green in two rounds. Git requests do not
// count, nor do tokens, which last an hour.
const maxWatchCalls = 40

func TestWatchCostsFewAPICalls(t *testing.T) {
	a, n := newWatched(t, mending)
	a.comments(a.pull("other", map[string]string{"o.txt": "o\n"}), testrig.Writer, "/pawl status") // causes the calls that a server makes once
	a.red(n, "unit", "TestA", "TestB")
	a.World.ResetCalls()
	a.comments(n, testrig.Writer, "/pawl watch")
	a.red(n, "unit", "TestB")
	a.green(n, "unit")
	a.expect(n, "in the end", "Ready: green after 2 rounds", 2)
	calls, sum := a.World.Calls(), 0
	var list []string
	for _, route := range slices.Sorted(maps.Keys(calls)) {
		if !strings.Contains(route, ".git/") && !strings.HasSuffix(route, "/access_tokens") {
			sum += calls[route]
			list = append(list, fmt.Sprintf("%d × %s", calls[route], route))
		}
	}
	t.Logf("%d calls, %d attempts:\n%s", sum, a.Calls(), strings.Join(list, "\n"))
	if sum > maxWatchCalls {
		t.Errorf("%d calls, more than %d", sum, maxWatchCalls)
	}
}
