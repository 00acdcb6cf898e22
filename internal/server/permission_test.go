package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// TestWhoLosesThePermissionAfterThePushGetsNoLaterStep takes the permission away just after a request of GitHub's.
func TestWhoLosesThePermissionAfterThePushGetsNoLaterStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		route  string
		opened bool
	}{
		"the push":         {"POST /{owner}/{repo}.git/git-receive-pack", false},
		"the pull request": {"POST /repos/{owner}/{repo}/pulls", true},
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
			if s := r.Ending(n); s.State != "stopped" || s.Rule != "revoked" {
				t.Errorf("%s (%s %q), want stopped", s.State, s.Rule, s.Reasons)
			}
			r.Settle()
			pulls := r.World.Pulls(testrig.Repo)
			if opened := len(pulls) == 1; opened != c.opened || opened && (!pulls[0].Pull.Draft || len(pulls[0].Pull.Asked) > 0) || len(r.World.Pushes(testrig.Repo)) != 1 {
				t.Errorf("after %d pushes the pull requests are %+v", len(r.World.Pushes(testrig.Repo)), pulls)
			}
			told := ""
			for _, check := range r.World.CheckRuns(testrig.Repo) {
				if check.Name == "pawl" {
					told += check.Conclusion + ": " + check.Title + "\n" + check.Summary
				}
			}
			if !strings.Contains(told, "action_required: Stopped: whoever asked for it may not write any more") {
				t.Errorf("the check run says %s", told)
			}
			r.Must(r.World.SetRole(testrig.Repo, testrig.Writer, "write"))
			r.Writes(n, testrig.Writer, "/pawl retry")
			r.Await("the pull request to be ready", func() bool {
				pulls := r.World.Pulls(testrig.Repo)
				return len(pulls) == 1 && !pulls[0].Pull.Draft && len(pulls[0].Pull.Asked) == 1
			})
			if s := r.Ending(n); s.State != "done" {
				t.Errorf("%s (%s %q), want done by who may write again", s.State, s.Rule, s.Reasons)
			}
		})
	}
}
