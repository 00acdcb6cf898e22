package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/testrig"
)

// reviews is a review of a pull request by an allowed bot, and waits for what it leads to.
func (r *rig) reviews(issue, pull int, text string) status.Thread {
	r.T.Helper()
	_, err := r.World.Review(testrig.Repo, pull, "helper[bot]", "COMMENTED", text)
	r.Must(err)
	r.Handled()
	return r.Ending(issue)
}

// reviewedBy is a rig with a bot that may ask, and an agent that writes so many lines into
// a file of each call and keeps its prompts.
func reviewedBy(t *testing.T, lines int) *rig {
	t.Helper()
	r := newRig(t, nil)
	r.Config += "policy: {allowed_bots: [77]}\n"
	r.Agent(fmt.Sprintf("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\nfor i in $(seq %d); do head -c 9 /dev/urandom | base64; done > \"file$n.txt\"\n", lines), "")
	r.Must(r.World.AddBot("helper[bot]", 77))
	r.Start()
	return r
}

// A reviewer that finds something new each time, and work that grows by it: nothing
// repeats itself, and it would go on for ever.
func TestReviewsThatNeverConvergeStop(t *testing.T) {
	t.Parallel()
	r := reviewedBy(t, 150)
	issue, pull := r.Solved()
	for round := 1; round <= 3; round++ {
		if s := r.reviews(issue, pull, fmt.Sprintf("**P1**: part %d leaks under load, and nothing tests it.", round)); s.State != "done" || r.Calls() != 1+round {
			t.Fatalf("round %d: %d calls, then %s (%s %q)", round, r.Calls(), s.State, s.Rule, s.Reasons)
		}
	}
	s := r.reviews(issue, pull, "**P1**: the cache is never cleared.")
	if s.State != "stopped" || s.Rule != "not_converging" || r.Calls() != 4 || !strings.Contains(strings.Join(s.Reasons, "\n"), "growth: the work adds 600 lines, 4.0 times the 150") {
		t.Errorf("%d calls, then %s (%s %q); want 4, then stopped as the work grows", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	r.Await("the check run", func() bool {
		c := r.Check(r.Head(pull), "pawl")
		return c.Conclusion == "action_required" && c.Title == "Stopped: the rounds of review do not converge" && strings.Contains(c.Summary, "4.0 times the 150")
	})
	r.Must(r.Says(pull, testrig.Writer, "/pawl solve Only clear the cache.")())
	r.Await("an attempt for a person's order", func() bool { return r.Calls() == 5 })
	if s := r.Ending(issue); s.State != "done" || !strings.Contains(r.Prompt("5"), "the cache is never cleared") {
		t.Errorf("%s (%s %q), asked %s", s.State, s.Rule, s.Reasons, r.Prompt("5"))
	}
	if s := r.reviews(issue, pull, "The name of the cache says nothing."); s.State != "done" || r.Calls() != 6 {
		t.Errorf("after a person's order: %d calls, then %s (%s %q); want another round", r.Calls(), s.State, s.Rule, s.Reasons)
	}
}

func TestLateRoundsOfReviewAreForWhatIsMarkedAsBlocking(t *testing.T) {
	t.Parallel()
	r := reviewedBy(t, 1)
	issue, pull := r.Solved()
	for round := 1; round <= 4; round++ {
		if s := r.reviews(issue, pull, fmt.Sprintf("![P1 Badge](https://img.shields.io/badge/P1-orange?style=flat) Part %d leaks.", round)); s.State != "done" || r.Calls() != 1+round {
			t.Fatalf("round %d: %d calls, then %s (%s %q)", round, r.Calls(), s.State, s.Rule, s.Reasons)
		}
	}
	s := r.reviews(issue, pull, "nit: no comma here, please.")
	if s.State != "stopped" || s.Rule != "not_blocking" || r.Calls() != 5 {
		t.Errorf("%d calls, then %s (%s %q); want 5, then a remark that waits", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	r.Await("the check run", func() bool {
		c := r.Check(r.Head(pull), "pawl")
		return c.Title == "Stopped: remarks wait that are not marked as blocking" && strings.Contains(c.Summary, "Mark what must be done as blocking")
	})
	r.Must(r.Says(pull, testrig.Writer, "/pawl retry")())
	r.Await("an attempt for a person's order", func() bool { return r.Calls() == 6 })
	if s := r.Ending(issue); s.State != "done" || !strings.Contains(r.Prompt("6"), "no comma here") {
		t.Errorf("%s (%s %q), asked %s", s.State, s.Rule, s.Reasons, r.Prompt("6"))
	}
}
