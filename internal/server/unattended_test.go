package server_test

import (
	"slices"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// Whoever is no person, and whoever says again what was said, begins five attempts in a
// row; a person's new words begin anew.
func TestWhatNobodyTypesBeginsFiveAttemptsInARow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		who   string
		texts []string
	}{
		"a bot that never tires": {"helper[bot]", []string{"Look at the wheel.", "Its teeth are blunt, sharpen them.", "Where is the spring?", "Rename turn to rotate.",
			"A test for the catch is missing.", "Why is there no readme?", "Format the sources.", "Update the year in the license."}},
		"a person's script": {testrig.Writer, slices.Repeat([]string{"/pawl retry"}, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, start, later := paced(t)
			r.Config += "policy: {allowed_bots: [77]}\n"
			r.Agent("cat > /dev/null; head -c 90 /dev/urandom | base64 > \"file$(wc -l < \"$CTRL/calls\" | tr -d ' ').txt\"\n", "")
			r.Must(r.World.AddBot("helper[bot]", 77))
			start()
			issue, pull := r.Solved()
			typed := r.Calls()
			if tc.who == testrig.Writer {
				later()
				r.Must(r.Says(pull, testrig.Writer, tc.texts[0])()) // the first time is new
				r.Await("the attempt that it asks for", func() bool { return r.Calls() == typed+1 })
				typed++
				r.Ending(issue)
			}
			for _, text := range tc.texts {
				if tc.who != testrig.Writer {
					text = "P1: " + text // else three rounds are all it gets
				}
				later()
				r.Must(r.Says(pull, tc.who, text)())
				r.Handled()
				r.Ending(issue)
			}
			if s := r.Thread(testrig.ThreadName(issue)); s.State != "stopped" || s.Rule != "unattended" || r.Calls() != typed+5 {
				t.Errorf("%d attempts without a person's new words, then %s (%s %q); want 5, then stopped by unattended", r.Calls()-typed, s.State, s.Rule, s.Reasons)
			}
			r.Await("the check run", func() bool { return r.Check(r.Head(pull), "pawl").Conclusion == "action_required" })
			later()
			r.Must(r.Says(pull, testrig.Writer, "Now write a sentence about pawls as well.")())
			r.Await("an attempt for a person's new words", func() bool { return r.Calls() == typed+6 })
			r.Ending(issue)
			r.Must(r.Says(pull, "helper[bot]", "And now the teeth.")())
			r.Await("an attempt for the bot", func() bool { return r.Calls() == typed+7 })
		})
	}
}
