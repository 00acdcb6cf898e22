package server_test

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// A maintainer may pause a repository with a comment on any thread.
func TestPausedRepositoryStartsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.Start()
	commands := func(n int, who, command, answer string) {
		t.Helper()
		r.Writes(n, who, command)
		r.Await(answer, func() bool { return len(r.CommentsWith(n, answer)) > 0 })
	}
	apart, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Something else", "No order.")
	r.Must(err)
	commands(apart, testrig.Writer, "/pawl pause", "need the maintain or admin permission. Nothing was done.")
	commands(apart, "mia", "/pawl pause", "Nothing begins in `acme/widgets` until a maintainer comments `/pawl unpause`.")
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Ending(n)
	if s.Rule != "paused" || r.Calls() != 0 {
		t.Fatalf("%s (%s %q) after %d calls of the agent, want stopped by paused", s.State, s.Rule, s.Reasons, r.Calls())
	}
	r.wantIn("the reasons", strings.Join(s.Reasons, " "), "mia paused acme/widgets in a comment")
	commands(n, "mia", "/pawl pause", "Nothing was done: `acme/widgets` is paused already, by mia.")
	commands(n, "mia", "/pawl unpause", "Work may begin in `acme/widgets` again. Runs that the pause stopped continue.")
	r.Await("the work", func() bool { return r.State(n).Ended && r.Calls() == 1 })
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
}
