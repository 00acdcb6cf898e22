package checkrun

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

// Attempts without a push, questions, plans and stops leave the check run of a finished commit unchanged.
func TestCheckKeepsItsVerdictUntilANewCommitOrAFailingVerification(t *testing.T) {
	over := []State{Stopped, Done, Failed, Answered, Planned}
	rapid.Check(t, func(t *rapid.T) {
		f := cases()["done"]
		f.Head = rapid.SampledFrom([]string{"", f.Attempts[1].Commit}).Draw(t, "head")
		if rapid.Bool().Draw(t, "not verified") {
			f.Attempts[1].Verify, f.Attempts[1].Outcome = nil, policy.WorkUnverified
		}
		was := run(f)
		for i := range rapid.IntRange(1, 6).Draw(t, "attempts") {
			a := attempt(policy.Receipt{
				N:       3 + i,
				Ending:  rapid.SampledFrom([]policy.Ending{policy.Completed, policy.Crashed, policy.UsageLimit, policy.TimedOut}).Draw(t, "ending"),
				Outcome: rapid.SampledFrom(policy.Outcomes()).Draw(t, "outcome"),
			})
			a.Run = 2 + i
			if a.Outcome == policy.VerifyFailed {
				a.Outcome = policy.NoChange
			}
			f.Attempts, f.Run = append(f.Attempts, a), a.Run
			f.State, f.Rule = rapid.SampledFrom(over).Draw(t, "state"), policy.RuleNoProgress
			now := run(f)
			if was.Conclusion != now.Conclusion || was.Title != now.Title {
				t.Fatalf("%s %q, then %s %q", was.Conclusion, was.Title, now.Conclusion, now.Title)
			}
		}
		failing := attempt(policy.Receipt{N: 99, Ending: policy.Completed, Outcome: policy.VerifyFailed, Verify: []policy.Verified{{Command: "make", Exit: 1}}})
		failing.Run = f.Run
		f.Attempts, f.State, f.Rule = append(f.Attempts, failing), Stopped, policy.RuleVerifyFailed
		if now := run(f); now.Conclusion != ActionRequired {
			t.Fatalf("after a failing verification: %s", fmt.Sprint(now.Conclusion, now.Title))
		}
	})
}

func TestAnotherUsersCommitIsNotVerified(t *testing.T) {
	for name, change := range map[string]func(*View){
		"the head is the attempt's": func(f *View) { f.Head = f.Attempts[1].Commit },
		"another user pushed":       func(f *View) { f.Head = "theirs" },
		"an attempt began from their commit and added nothing": func(f *View) {
			f.Head, f.Run = "theirs", 2
			a := attempt(policy.Receipt{N: 3, Ending: policy.Completed, Outcome: policy.NoChange, Base: "theirs", Verify: f.Attempts[1].Verify})
			a.Run = 2
			f.Attempts = append(f.Attempts, a)
		},
		"nothing is left to do, and nothing ran": func(f *View) { f.Attempts = nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := cases()["done"]
			f.Attempts = slices.Clone(f.Attempts)
			change(&f)
			got := run(f)
			verified := f.Head != "" && !f.foreignHead()
			if (got.Conclusion == Success) != verified || (got.Title == "Done: verified") != verified {
				t.Errorf("%s %q", got.Conclusion, got.Title)
			}
			if fact := headFact(f); strings.Contains(fact, "passed") != verified {
				t.Error(fact)
			}
		})
	}
}
