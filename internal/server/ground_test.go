package server_test

import (
	"fmt"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// with returns a repository with a file a.txt, an ignored folder bin and a verify command.
func with(verify string) map[string]string {
	return map[string]string{"a.txt": "one\n", ".gitignore": "bin/\n", ".github/pawl.yml": "verify:\n  - " + fmt.Sprintf("%q", verify) + "\n"}
}

func TestBrokenCommandCostsNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, with(`PATH="$PATH:$HOME/../../../../../../ctrl"; mended a.txt`))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	base := r.World.Branches(testrig.Repo)["main"]
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s, c := r.Ending(n), r.Check(base, "pawl")
	if s.Rule != "verify_broken" || r.Calls() != 0 || c.Conclusion != "action_required" {
		t.Fatalf("%d calls, then %s (%s %q), check run %q (%s)", r.Calls(), s.State, s.Rule, s.Reasons, c.Title, c.Conclusion)
	}
	r.Writes(n, testrig.Writer, "Please go on.")
	r.Settle()
	if r.Calls() != 0 {
		t.Errorf("%d calls after a remark, want none", r.Calls())
	}
	r.Program("mended", "#!/bin/sh\nexec test -s \"$1\"\n")
	r.Writes(n, testrig.Writer, "/pawl solve")
	r.Await("the attempt", func() bool { return r.Calls() == 1 })
	if s := r.Ending(n); s.State != "done" || r.Check(r.Head(r.PullOf(n)), "pawl").Title != "Done: commands passed, no tests counted" {
		t.Errorf("%s (%s %q), want done and verified", s.State, s.Rule, s.Reasons)
	}
	if c := r.Check(base, "pawl"); c.Conclusion != "neutral" {
		t.Errorf("the check run on the base is left as %q (%s)", c.Title, c.Conclusion)
	}
}
