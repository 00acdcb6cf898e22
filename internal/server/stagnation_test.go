package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// The reviewer asks for the same again and again, and gets the whole work again with
// another word in it.
func TestTheSameWorkForTheSameRequestIsCalledOverRuns(t *testing.T) {
	t.Parallel()
	r, start, later := paced(t)
	r.Agent(`n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > "$CTRL/prompt.$n"
word=$(echo 'quick slow red old young brown' | cut -d ' ' -f "$n")
for line in alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma; do
  echo "the $line part says that a wheel turns one way and never comes back"; done > essay.txt
echo "the $word fox" >> essay.txt
`, "")
	start()
	issue, pull := r.Solved()
	for i, word := range []string{"now", "soon", "here", "too"} {
		later()
		r.Must(r.Says(pull, testrig.Writer, fmt.Sprintf("The essay still lacks an example; please add one %s.", word))())
		r.Await("the next attempt", func() bool { return r.Calls() == i+2 })
		r.Ending(issue)
		r.Settle()
	}
	s := r.State(issue)
	var rules []string
	for _, a := range s.Attempts {
		rules = append(rules, fmt.Sprintf("%s %t", a.Decision.Rule, a.Decision.Different))
	}
	if want := []string{"feedback false", "feedback false", "feedback false", "feedback false", "stagnation true"}; !slices.Equal(rules, want) {
		t.Errorf("the attempts began by %q, want %q", rules, want)
	}
	r.Await("the verdict", func() bool { return r.Check(r.Head(pull), "pawl/stagnation").Conclusion == "action_required" })
	if c := r.Check(r.Head(pull), "pawl/stagnation"); !strings.Contains(c.Summary, "of the same request brought similar work") {
		t.Errorf("check run %s\n%s", c.Title, c.Summary)
	}
	later()
	r.Must(r.Says(pull, testrig.Writer, "The essay still lacks an example; please add one there.")())
	r.Await("the stop", func() bool { return r.Thread(testrig.ThreadName(issue)).State == "stopped" })
	if s := r.Thread(testrig.ThreadName(issue)); s.Rule != "stagnation" || r.Calls() != 5 {
		t.Errorf("%d calls, then %s (%s %q); want 5, then stopped by stagnation", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	// Other words begin anew.
	later()
	r.Must(r.Says(pull, testrig.Writer, "Say in the last paragraph what a pawl is, with a drawing of the wheel.")())
	r.Await("an attempt", func() bool { return r.Calls() == 6 })
}

// What differs between two runs that fail in the same way is no other failure.
func TestTheSameFailureWithOtherIdsIsStagnation(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(`n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > /dev/null
head -c 90 /dev/urandom | base64 > "file$n.txt"
echo "worker[$$]: upstream refused request req_0$n$(head -c 9 /dev/urandom | od -An -tx1 | tr -d ' \n') on port 4${n}123 after $n.${n}5s, see /tmp/run$$.$n/trace.log" >&2; exit 3
`, "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.Rule != "stagnation" || r.Calls() != 4 {
		t.Errorf("%d calls, then %s (%s %q); want 3, one that is to differ, then stopped by stagnation", r.Calls(), s.State, s.Rule, s.Reasons)
	}
}

// The first frames of a trace tell where it fails, in whatever words; the same words from elsewhere are another failure.
func TestAFailureAtTheSamePlaceInOtherWordsIsStagnation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		function, message string // by the n-th attempt
		rules             []string
	}{
		"other words at the same place": {"total", `$(sed -n "$((n * 3 - 2)),$((n * 3))p" words | tr '\n' ' ')`, []string{"feedback", "verify_failed", "verify_failed", "stagnation"}},
		"the same words from elsewhere": {"step$n", "the very same words of a message that does not change at all", []string{"feedback", "verify_failed", "verify_failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{
				"a.txt": "", ".github/pawl.yml": "verify: [\"sh check.sh\"]\n",
				"words": strings.Join(strings.Fields("cannot read banana while peeling seven wooden ladders near green harbours after midnight rain"), "\n") + "\n",
				"check.sh": `n=$(wc -l < a.txt | tr -d ' ')
printf 'Traceback (most recent call last):\n  File "/srv/%s/main.py", line %s, in <module>\n    run()\n  File "/srv/%s/cart.py", line 4%s, in %s\nValueError: %s\n' $$ "$n" $$ "$n" "` +
					c.function + `" "` + c.message + `"; exit 3
`,
			})
			r.Agent(`cat > /dev/null; echo more >> a.txt; head -c 90 /dev/urandom | base64 > "file$(wc -l < a.txt).txt"
`, "")
			r.Start()
			n := r.Solve("A word", "Please add the right word to a.txt.")
			s := r.Ending(n)
			var rules []string
			for _, a := range r.State(n).Attempts {
				rules = append(rules, string(a.Decision.Rule))
			}
			if !slices.Equal(rules, c.rules) {
				t.Errorf("the attempts began by %q, then %s (%s %q); want %q", rules, s.State, s.Rule, s.Reasons, c.rules)
			}
		})
	}
}

func TestAStoppedThreadNamesAnotherThatStoppedOnTheSameTask(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("cat > /dev/null; echo wrong >> a.txt\n", "")
	r.Start()
	stops := func(title, body string) (text string) {
		n := r.Solve(title, body)
		if s := r.Ending(n); s.State != "stopped" {
			t.Fatalf("#%d: %s (%s %q), want stopped", n, s.State, s.Rule, s.Reasons)
		}
		r.Settle()
		for _, c := range r.World.Comments(testrig.Repo, n) {
			text += c.Body
		}
		return text + "\n" + r.Check(r.State(n).Head, "pawl").Summary
	}
	if text := stops("The right word is missing", "Please add the right word to the end of a.txt."); strings.Contains(text, "which stopped because") {
		t.Errorf("the first one names another\n%s", text)
	}
	if text := stops("A drawing", "Draw the wheel and its pawl from the left side, with all teeth."); strings.Contains(text, "which stopped because") {
		t.Errorf("another task names it\n%s", text)
	}
	const want = "like `#1`, which stopped because verification failed"
	text := stops("The right word is missing here", "Please add the right word to the end of a.txt, soon.")
	if got := strings.Count(text, want); got != 2 {
		t.Errorf("%d of the comment and the check run say %q\n%s", got, want, text)
	}
	r.Must(r.World.CloseIssue(testrig.Repo, 1, testrig.Writer))
	r.Settle()
	if text := stops("The right word is missing", "Please add the right word to the end of a.txt."); !strings.Contains(text, "like `#5`") { // each has a pull request
		t.Errorf("it does not name the one that is open\n%s", text)
	}
}
