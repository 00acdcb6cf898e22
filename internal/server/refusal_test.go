package server_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func (r *rig) reactions(n int) (all []string) {
	for _, c := range r.World.Comments(testrig.Repo, n) {
		all = append(all, c.Reactions...)
	}
	return all
}

func (r *rig) othersPull() int {
	r.T.Helper()
	r.Push("theirs", "more", "a.txt", "one\nmore\n")
	n, err := r.World.OpenPull(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Mine", Body: "It is mine.", Head: "theirs"})
	r.Must(err)
	return n
}

func TestRefusedCommandIsAnsweredByVisibility(t *testing.T) {
	t.Parallel()
	for _, public := range []bool{true, false} {
		t.Run(fmt.Sprintf("public=%t", public), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent(testrig.PlainAgent, "")
			if public {
				r.Must(r.World.Publish(testrig.Repo))
			}
			r.Start()
			n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add a line.")
			r.Must(err)
			r.Writes(n, testrig.Reader, "/pawl solve")
			r.Settle()
			wantReactions := map[bool][]string{true: {"confused by pawl[bot]"}}[public]
			if diff := cmp.Diff(wantReactions, r.reactions(n)); diff != "" {
				t.Errorf("reactions (-want +got):\n%s", diff)
			}
			if got, want := len(r.CommentsWith(n, "may not write to this repository")), map[bool]int{false: 1}[public]; got != want {
				t.Errorf("%d comments, want %d", got, want)
			}
			if s := r.State(n); s.Tracked() || s.Snapshot.Title != "" {
				t.Errorf("the thread is %+v, want no thread that Pawl works on", s.Snapshot)
			}
		})
	}
}

func TestReviewGetsAReaction(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Must(r.World.Publish(testrig.Repo))
	r.Start()
	n := r.othersPull()
	for _, who := range []string{testrig.Reader, testrig.Writer} {
		_, err := r.World.Review(testrig.Repo, n, who, "COMMENTED", "/pawl ask What is this?")
		r.Must(err)
		r.Settle()
	}
	if diff := cmp.Diff([]string{"confused by pawl[bot]", "eyes by pawl[bot]"}, r.World.ReviewReactions(testrig.Repo, n)); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
}

func TestExcludedBackendIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: "backends: [mine]\n"})
	r.Agent(testrig.PlainAgent, "")
	r.Config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q], effort: low, escalated_effort: high}\n", filepath.Join(r.Dir, "agent.sh"))
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add a line.")
	r.Must(err)
	// The first attempt makes the repository's settings known to Pawl.
	r.Must(r.World.AddLabel(testrig.Repo, n, testrig.Writer, "pawl:other"))
	r.Ending(n)
	if got := r.State(n).Attempts[0].Backend; got != "mine" {
		t.Errorf("the attempt ran on %s, want mine", got)
	}
	r.Writes(n, testrig.Writer, "/pawl use other")
	r.Settle()
	r.Writes(n, testrig.Writer, "/pawl escalate")
	r.Ending(n)
	for _, want := range []string{
		"`.github/pawl.yml` of this repository does not list the backend `other`. Nothing was done.\n\nBackends: `mine`.",
		"No backend here has an escalated effort",
	} {
		if got := r.CommentsWith(n, want); len(got) != 1 {
			t.Errorf("%d comments say %q, want one", len(got), want)
		}
	}
}

// github.app.user reaches the handlers. Their tests cover who may assign it.
func TestAssignmentToTheConfiguredUserCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.App = ", user: Pawl-Agent"
	r.Must(r.World.AddUser("pawl-agent", 1003, map[string]string{testrig.Repo: "read"}))
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add a line.")
	r.Must(err)
	r.play(n, []happens{{"a reader assigns it", func() error {
		return r.World.Assign(testrig.Repo, n, testrig.Reader, "pawl-agent")
	}, "- mallory has read permission; write is needed"}})
}
