package solver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// backport opens another pull request from the same branch, into release.
func (a *acts) backport() (pull int) {
	a.T.Helper()
	a.Push("release", "a release", "r.txt", "r\n")
	pull, err := a.World.OpenPull(a.T.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Backport", Head: "feature", Base: "release"})
	a.Must(err)
	return pull
}

func TestOneWatchPerBranch(t *testing.T) {
	for name, asks := range map[string]func(a *acts, one, two int){
		"commands": func(a *acts, one, two int) {
			a.comments(one, testrig.Writer, "/pawl watch")
			a.comments(two, testrig.Writer, "/pawl watch")
		},
		"two at once": func(a *acts, one, two int) {
			a.Writes(one, testrig.Writer, "/pawl watch")
			a.Writes(two, testrig.Writer, "/pawl watch")
			a.settle()
		},
		"labels": func(a *acts, one, two int) {
			a.label(one)
			a.label(two)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, one := newWatched(t, mending)
			two := a.backport()
			asks(a, one, two)
			want := fmt.Sprintf("Not watched: pull request `#%d` has the same branch and is watched; `/pawl unwatch` there ends that watch. Nothing was done.", one)
			if said := a.NewestComment(two); !strings.Contains(said, want) {
				t.Errorf("the answer is %q, want %q", said, want)
			}
			a.red(one, "unit", "TestA")
			a.pass(time.Hour)
			if len(a.state(two).Attempts) != 0 || a.Calls() != 1 {
				t.Errorf("%d attempts, %d of them on the second pull request", a.Calls(), len(a.state(two).Attempts))
			}
			a.comments(one, testrig.Writer, "/pawl unwatch")
			a.comments(two, testrig.Writer, "/pawl watch")
			a.red(two, "unit", "TestB")
			if got := a.state(two); !got.Watched() || len(got.Attempts) != 1 {
				t.Errorf("after the first watch: watched %t, %d attempts", got.Watched(), len(got.Attempts))
			}
		})
	}
}

// Nobody asked for the watch of Pawl's own pull request, so nobody gets an answer.
func TestOwnPullRequestOfAWatchedBranchIsNotWatched(t *testing.T) {
	t.Parallel()
	a := newActs(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "watch: {pulls: own}\n"})
	a.Agent(mending, "")
	a.World.AddOtherApp("github-actions", 15368)
	a.Push("release", "a release", "r.txt", "r\n")
	a.Push("pawl/issue-1", "a start", "s.txt", "s\n")
	issue, err := a.World.OpenIssue(testrig.Repo, testrig.Writer, "Add a line", "Words.")
	a.Must(err)
	other, err := a.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Backport", Head: "pawl/issue-1", Base: "release"})
	a.Must(err)
	a.comments(other, testrig.Writer, "/pawl watch")
	a.comments(issue, testrig.Writer, "/pawl solve")
	s := a.state(issue)
	if want := fmt.Sprintf("pull request #%d has the same branch", other); s.Pull == 0 || !strings.HasPrefix(s.Watch.Ended, want) {
		t.Errorf("pull request #%d, and the watch ended because %q, want %q", s.Pull, s.Watch.Ended, want)
	}
	for _, c := range append(a.World.Comments(testrig.Repo, issue), a.World.Comments(testrig.Repo, s.Pull)...) {
		if strings.Contains(c.Body, "Not watched: pull request `") {
			t.Errorf("it was answered: %q", c.Body)
		}
	}
}

func TestWatchSaysWhatGitHubDidNotShow(t *testing.T) {
	for route, what := range map[string]string{
		"GET /repos/{owner}/{repo}/pulls/{number}": "the pull request",
		"GET /repos/{owner}/{repo}/pulls":          "the branch's other pull requests",
	} {
		t.Run(what, func(t *testing.T) {
			a, n := newWatched(t, mending)
			a.World.Inject(fakegithub.Fault{Route: route, Times: 100, Status: 403, Message: "Resource not accessible by integration"})
			a.comments(n, testrig.Writer, "/pawl watch")
			for _, want := range []string{
				"Not watched: GitHub did not show " + what + ":",
				"403 Forbidden: Resource not accessible by integration",
				"compare the App's permissions with app.yml and accept new ones on the installation's page",
			} {
				if said := a.NewestComment(n); !strings.Contains(said, want) {
					t.Errorf("the answer is %q, want %q", said, want)
				}
			}
			a.World.ClearFaults()
			a.comments(n, testrig.Writer, "/pawl watch")
			if !a.state(n).Watched() {
				t.Error("not watched after the permission was granted")
			}
		})
	}
}
