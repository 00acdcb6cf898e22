package server_test

import (
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestPawlWorksWhenItIsAskedForAReviewByAWriter(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "feature", Message: "Add b.txt", Files: map[string]string{"b.txt": "b\n"}})
	r.Must(err)
	n, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "A feature", Body: "Adds b.txt.", Head: "feature"})
	r.Must(err)
	r.Must(r.World.AskReview(testrig.Repo, n, testrig.Writer, testrig.Reader))
	r.Must(r.World.AskReview(testrig.Repo, n, testrig.Reader, "pawl[bot]"))
	r.Settle()
	if r.Calls() != 0 {
		t.Fatalf("%d calls of the agent, where nobody who may asked Pawl", r.Calls())
	}
	_, err = r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "another", Message: "Add c.txt", Files: map[string]string{"c.txt": "c\n"}})
	r.Must(err)
	n, err = r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Another", Body: "Adds c.txt.", Head: "another"})
	r.Must(err)
	r.Must(r.World.AskReview(testrig.Repo, n, testrig.Writer, "pawl[bot]"))
	if s := r.Ending(n); s.State != "done" || r.Calls() != 1 {
		t.Errorf("%s (%s %q) after %d calls", s.State, s.Rule, s.Reasons, r.Calls())
	}
}
