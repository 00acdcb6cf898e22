package main

import (
	"slices"
	"testing"
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
		"a person's script": {writer, slices.Repeat([]string{"/pawl retry"}, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, start, later := paced(t)
			r.config += "policy: {allowed_bots: [77]}\n"
			r.agent("cat > /dev/null; head -c 90 /dev/urandom | base64 > \"file$(wc -l < \"$CTRL/calls\" | tr -d ' ').txt\"\n", "")
			r.must(r.world.AddBot("helper[bot]", 77))
			start()
			issue, pull := r.solved()
			typed := r.calls()
			if tc.who == writer {
				later()
				r.must(r.says(pull, writer, tc.texts[0])()) // the first time is new
				r.await("the attempt that it asks for", func() bool { return r.calls() == typed+1 })
				typed++
				r.ending(issue)
			}
			for _, text := range tc.texts {
				if tc.who != writer {
					text = "P1: " + text // else three rounds are all it gets
				}
				later()
				r.must(r.says(pull, tc.who, text)())
				r.handled()
				r.ending(issue)
			}
			if s := r.thread(threadName(issue)); s.State != "stopped" || s.Rule != "unattended" || r.calls() != typed+5 {
				t.Errorf("%d attempts without a person's new words, then %s (%s %q); want 5, then stopped by unattended", r.calls()-typed, s.State, s.Rule, s.Reasons)
			}
			r.await("the check run", func() bool { return r.check(r.head(pull), "pawl").Conclusion == "action_required" })
			later()
			r.must(r.says(pull, writer, "Now write a sentence about pawls as well.")())
			r.await("an attempt for a person's new words", func() bool { return r.calls() == typed+6 })
			r.ending(issue)
			r.must(r.says(pull, "helper[bot]", "And now the teeth.")())
			r.await("an attempt for the bot", func() bool { return r.calls() == typed+7 })
		})
	}
}
