package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// In each round, a bot finds something new, and the work grows. No attempt repeats an earlier one, so only the limit on
// growth stops the rounds.
func TestReviewsThatNeverConvergeStop(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config += "policy: {allowed_bots: [77]}\n"
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\nhead -c 1350 /dev/urandom | base64 -w 12 > \"file$n.txt\"\n", "")
	r.Must(r.World.AddBot("helper[bot]", 77))
	r.Start()
	issue, pull := r.Solved()
	for round := 1; round <= 4; round++ {
		r.Writes(pull, "helper[bot]", fmt.Sprintf("**P1**: part %d leaks under load, and nothing tests it.", round))
		r.Handled()
		r.Ending(issue)
	}
	s := r.Thread(testrig.ThreadName(issue))
	if s.Rule != "not_converging" || r.Calls() != 4 {
		t.Errorf("%d calls, then %s (%s %q); want 4, then stopped by not_converging", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	r.wantIn("the reasons", strings.Join(s.Reasons, "\n"), "growth: the work adds 600 lines, 4.0 times the 150")
	r.Must(r.Commenting(pull, testrig.Writer, "/pawl solve Only part 4.")())
	r.Await("an attempt for a user's command", func() bool { return r.Calls() == 5 })
	if s := r.Ending(issue); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	r.wantIn("the prompt", r.Prompt("5"), "part 4 leaks under load")
}
