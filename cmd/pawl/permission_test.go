package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
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
			r.agent("cat > /dev/null; grep -q two a.txt || echo two >> a.txt\n", "")
			r.start()
			r.world.Inject(fakegithub.Fault{Route: c.route, Times: 1, Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
				github.ServeHTTP(w, q)
				r.must(r.world.SetRole(rigRepo, writer, "read"))
			}})
			n := r.solve("A second line", "Please add a second line to a.txt.")
			if s := r.ending(n); s.State != "stopped" || s.Rule != "revoked" {
				t.Errorf("%s (%s %q), want stopped", s.State, s.Rule, s.Reasons)
			}
			r.settle()
			pulls := r.world.Pulls(rigRepo)
			if opened := len(pulls) == 1; opened != c.opened || opened && (!pulls[0].Pull.Draft || len(pulls[0].Pull.Asked) > 0) || len(r.world.Pushes(rigRepo)) != 1 {
				t.Errorf("after %d pushes the pull requests are %+v", len(r.world.Pushes(rigRepo)), pulls)
			}
			told := ""
			for _, check := range r.world.CheckRuns(rigRepo) {
				if check.Name == "pawl" {
					told += check.Conclusion + ": " + check.Title + "\n" + check.Summary
				}
			}
			if !strings.Contains(told, "action_required: Stopped: whoever asked for it may not write any more") {
				t.Errorf("the check run says %s", told)
			}
			r.must(r.world.SetRole(rigRepo, writer, "write"))
			r.writes(n, writer, "/pawl retry")
			r.await("the pull request to be ready", func() bool {
				pulls := r.world.Pulls(rigRepo)
				return len(pulls) == 1 && !pulls[0].Pull.Draft && len(pulls[0].Pull.Asked) == 1
			})
			if s := r.ending(n); s.State != "done" {
				t.Errorf("%s (%s %q), want done by who may write again", s.State, s.Rule, s.Reasons)
			}
		})
	}
}
