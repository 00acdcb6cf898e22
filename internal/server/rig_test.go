package server_test

import (
	"fmt"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestIssueBecomesDraftPullRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > \"$CTRL/prompt\"\necho two >> a.txt\necho 'a.txt has a second line now'\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Over(testrig.ThreadName(n))
	if s.State != "done" || r.Calls() != 1 {
		t.Fatalf("state %s (%s %v) after %d calls, want done after 1", s.State, s.Rule, s.Reasons, r.Calls())
	}
	pulls := r.World.Pulls(testrig.Repo)
	if len(pulls) != 1 || !pulls[0].Pull.Draft || pulls[0].Pull.Head != fmt.Sprintf("pawl/issue-%d", n) {
		t.Fatalf("pull requests: %+v, want one draft from pawl/issue-%d", pulls, n)
	}
	for name, want := range map[string]string{"pawl": "neutral", "pawl/severity": "success", "pawl/stagnation": "success"} {
		r.Await(name, func() bool { return r.Check(pulls[0].Pull.HeadSHA, name).Conclusion == want })
	}
}
