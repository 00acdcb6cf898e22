package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// The reviewer repeats one request. Each time, the agent submits the whole work with one word changed.
func TestStagnationOverRuns(t *testing.T) {
	t.Parallel()
	const again = "The essay still lacks an example; please add one %s."
	r, issue, pull, later := essays(t, fmt.Sprintf(again, "now"), fmt.Sprintf(again, "soon"), fmt.Sprintf(again, "here"), fmt.Sprintf(again, "too"))
	later()
	r.Writes(pull, testrig.Writer, fmt.Sprintf(again, "there"))
	r.Await("the stop", func() bool { return r.Thread(testrig.ThreadName(issue)).State == "stopped" })
	if s := r.Thread(testrig.ThreadName(issue)); s.Rule != "stagnation" || r.Calls() != 5 {
		t.Errorf("%d calls, then %s (%s %q); want 5, then stopped by stagnation", r.Calls(), s.State, s.Rule, s.Reasons)
	}
}

// Rephrased requests make no difference.
func TestStagnationDespiteRephrasing(t *testing.T) {
	t.Parallel()
	essays(t, "Where is the example? I cannot find any.", "A reader needs to see the rule applied once.",
		"Nothing here illustrates the claim.", "Show, do not tell: pick a real wheel and walk through it.")
}

// essays has a reviewer write four comments. The agent answers each with the whole essay and one word changed. The last
// attempt must take a different approach.
func essays(t *testing.T, comments ...string) (r *rig, issue, pull int, later func()) {
	t.Helper()
	r, start, later := paced(t)
	r.Agent(`n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > "$CTRL/prompt.$n"
word=$(echo 'quick slow red old young brown' | cut -d ' ' -f "$n")
for line in alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma; do
  echo "the $line part says that a wheel turns one way and never comes back"; done > essay.txt
echo "the $word fox" >> essay.txt
`, "")
	start()
	issue, pull = r.Solved()
	for i, comment := range comments {
		later()
		r.Writes(pull, testrig.Writer, comment)
		r.Await("the next attempt", func() bool { return r.Calls() == i+2 })
		r.Ending(issue)
	}
	var rules []string
	for _, a := range r.State(issue).Attempts {
		rules = append(rules, fmt.Sprintf("%s %t", a.Decision.Rule, a.Decision.Different))
	}
	if want := []string{"feedback false", "feedback false", "feedback false", "feedback false", "stagnation true"}; !slices.Equal(rules, want) {
		t.Errorf("the attempts began by %q, want %q", rules, want)
	}
	r.Await("the verdict", func() bool { return r.Check(r.Head(pull), "pawl/stagnation").Conclusion == "action_required" })
	return r, issue, pull, later
}

func TestStoppedThreadNamesASimilarOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo no idea >&2; exit 1\n", "")
	r.Start()
	stops := func(title, body string) string {
		n := r.Solve(title, body)
		if s := r.Ending(n); s.State != "stopped" {
			t.Fatalf("#%d: %s (%s %q), want stopped", n, s.State, s.Rule, s.Reasons)
		}
		return r.StatusComment(n)
	}
	const again, task = "which stopped because", "Please add the right word to the end of a.txt."
	first := stops("The right word is missing", task)
	other := stops("A drawing", "Draw the wheel and its pawl from the left side, with all teeth.")
	same := stops("The right word is missing here", "Please add the right word to the end of a.txt, soon.")
	if strings.Contains(first+other, again) || !strings.Contains(same, "like `#1`, "+again) {
		t.Errorf("the comments on the first, another and the same task:\n%s\n%s\n%s\nwant the last to name the first", first, other, same)
	}
	r.Must(r.World.CloseIssue(testrig.Repo, 1, testrig.Writer))
	r.Settle()
	if text := stops("The right word is missing", task); !strings.Contains(text, "like `#3`, "+again) {
		t.Errorf("the comment does not name the open issue\n%s", text)
	}
}
