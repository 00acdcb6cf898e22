package server_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// pullsAre checks the pull requests: their number, drafts and requested reviewers.
func (r *rig) pullsAre(want ...fakegithub.Pull) {
	r.T.Helper()
	var got []fakegithub.Pull
	for _, p := range r.World.Pulls(testrig.Repo) {
		got = append(got, fakegithub.Pull{Draft: p.Pull.Draft, Asked: p.Pull.Asked})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.T.Errorf("pull requests (-want +got):\n%s", diff)
	}
}

// The user loses the permission just after Pawl has pushed, or has opened the pull request.
func TestRevokedUserGetsNoLaterStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		route string
		left  []fakegithub.Pull
	}{
		"the push":         {"POST /{owner}/{repo}.git/git-receive-pack", nil},
		"the pull request": {"POST /repos/{owner}/{repo}/pulls", []fakegithub.Pull{{Draft: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: "verify: ['grep -q two a.txt']\npull_request: {ready_when_verified: true, request_review: true}\n"})
			r.Agent("cat > /dev/null; grep -q two a.txt || echo two >> a.txt\n", "")
			r.Start()
			r.World.Inject(fakegithub.Fault{Route: c.route, Times: 1, Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
				github.ServeHTTP(w, q)
				r.Must(r.World.SetRole(testrig.Repo, testrig.Writer, "read"))
			}})
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			if s := r.Ending(n); s.Rule != "revoked" {
				t.Errorf("%s (%s %q), want stopped by revoked", s.State, s.Rule, s.Reasons)
			}
			r.pullsAre(c.left...)
			if got := len(r.World.Pushes(testrig.Repo)); got != 1 {
				t.Errorf("%d pushes, want one", got)
			}
			r.Must(r.World.SetRole(testrig.Repo, testrig.Writer, "write"))
			r.Writes(n, testrig.Writer, "/pawl retry")
			if s := r.Ending(n); s.State != "done" {
				t.Errorf("%s (%s %q), want done for the user with the restored permission", s.State, s.Rule, s.Reasons)
			}
			r.pullsAre(fakegithub.Pull{Asked: []string{testrig.Writer}})
		})
	}
}

// A lagging replica of GitHub answers 404 once, right after the webhook.
func TestLaggingReplicaRefusesNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.Start()
	r.World.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}/collaborators/{login}/permission", Status: http.StatusNotFound, Message: "Not Found", Times: 1})
	r.WantSolved(r.Solve("A second line", "Please add a second line to a.txt."))
}

func TestRepositoryDeletedDuringAttemptIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWork()
	r.World.Hold() // as if the webhook were late
	r.Must(r.World.DeleteRepo(testrig.Repo))
	r.Touch("go")
	r.Await("the end of the run", func() bool { return !r.State(n).Open() })
	if d := r.State(n).Decision; d.Rule != policy.RuleRepositoryGone {
		t.Errorf("%s: %s", d.Rule, d.Reasons)
	}
}
