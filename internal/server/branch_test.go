package server_test

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// An earlier server left the branch with Pawl's name behind, or a user created it.
func TestExistingBranchOfPawlsNameIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.Start()
	push := func(branch, message, file string) {
		_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: branch, Message: message, Files: map[string]string{"a.txt": "one\n", file: "x\n"}})
		r.Must(err)
	}
	push("pawl/issue-1", "Leftover", "left.txt")
	push("main", "Newer", "newer.txt")
	_, err := r.World.Git(t.Context(), testrig.Repo, "branch", "pawl/issue-3", "main~1")
	r.Must(err)
	for i, stale := range []bool{true, false} { // the second branch has no commits of its own
		n := r.Solve("A second line", "Please add a second line to a.txt.")
		if s := r.Ending(n); s.State != "done" {
			t.Fatalf("#%d: %s (%s %q)", n, s.State, s.Rule, s.Reasons)
		}
		body := r.World.Pulls(testrig.Repo)[i].Body
		status := r.World.Comments(testrig.Repo, n)[1].Body
		for what, text := range map[string]string{"description": body, "status": status} {
			if got := strings.Contains(text, "Leftover, by "+testrig.Writer); got != stale {
				t.Errorf("the %s of #%d reports the leftover commit: %t, want %t\n%s", what, n, got, stale, text)
			}
		}
	}
	if _, err := r.World.File(t.Context(), testrig.Repo, "pawl/issue-3", "newer.txt"); err != nil {
		t.Errorf("a branch without commits of its own does not begin from the base: %v", err)
	}
}
