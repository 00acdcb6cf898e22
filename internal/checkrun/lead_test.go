package checkrun

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
)

func TestLeadShowsStateVerificationCostAndNextStep(t *testing.T) {
	goTest := func(v policy.Verified) []policy.Verified {
		v.Command, v.Runner = "go test ./...", "go"
		return []policy.Verified{v}
	}
	attempts := func(n int, took time.Duration, usd float64, last func(*Attempt)) (all []Attempt) {
		for i := range n {
			a := over(i + 1)
			a.Outcome, a.Verify = policy.VerifyFailed, goTest(policy.Verified{Exit: 1, Failing: []policy.Failing{{Name: "TestAdd"}, {Name: "TestSum"}}})
			a.StartedAt, a.Duration, a.CostUSD = now.Add(-time.Hour), took/time.Duration(n), dollars(usd/float64(n))
			all = append(all, a)
		}
		last(&all[n-1])
		return all
	}
	ready := base()
	ready.State, ready.Rule, ready.Number, ready.Pull, ready.DayUSD = Done, policy.RuleDone, 3, 4, 50
	ready.Attempts = attempts(2, 4*time.Minute, 0.38, func(a *Attempt) {
		a.Outcome, a.Verify = policy.WorkVerified, goTest(policy.Verified{Passed: true, PassedTests: 212, Fixed: []string{"TestAdd"}})
		a.Folders = []policy.Folder{{Path: ".", Files: 2, Added: 40, Removed: 7}, {Path: "sum", Files: 1, Added: 1}}
	})
	several := ready
	several.Attempts = attempts(1, time.Minute, 0.1, func(a *Attempt) {
		a.Outcome, a.Verify = policy.WorkVerified, goTest(policy.Verified{Passed: true, PassedTests: 212})
		a.Verify = append(a.Verify, policy.Verified{Command: "npm test", Runner: "jest", Passed: true, PassedTests: 30})
		a.Folders = []policy.Folder{{Path: ".", Files: 1, Added: 1}}
	})
	failing := base()
	failing.State, failing.Rule, failing.Branch = Stopped, policy.RuleVerifyFailed, "pawl/issue-3"
	failing.Attempts = attempts(3, 9*time.Minute, 1.10, func(*Attempt) {})
	for _, c := range []struct {
		f    View
		want []string
	}{
		{ready, []string{
			"**Ready for review: #4** · 3 files, +41 −7",
			"✅ `go test ./...` passes (212 tests; 1 failed before)",
			"Cost so far: 2 attempts, 4 min, $0.38 of $50 today",
			"**Next:** review #4, or comment what to change. `/pawl stop` ends the work.",
		}},
		{several, []string{
			"**Ready for review: #4** · 1 file, +1 −0",
			"✅ `npm test` and 1 other command pass (242 tests)",
			"Cost so far: 1 attempt, 1 min, $0.10 of $50 today",
			"**Next:** review #4, or comment what to change. `/pawl stop` ends the work.",
		}},
		{failing, []string{
			"**Not done: tests still fail after 3 attempts**",
			"❌ `go test ./...`: `TestAdd`, `TestSum` · branch `pawl/issue-3` · 3 attempts, 9 min, $1.10",
			"**You can:** say what to do differently, or `/pawl retry`.",
		}},
	} {
		comment := strings.TrimPrefix(Comment(c.f), StatusMarker(c.f.Thread)+"\n\n")
		lead, _, _ := strings.Cut(comment, "\n\n")
		if diff := cmp.Diff(c.want, strings.Split(lead, "  \n")); diff != "" {
			t.Errorf("the status comment begins (-want +got)\n%s", diff)
		}
		if summary := Checks(c.f)[0].Summary; !strings.HasPrefix(summary, lead) {
			t.Errorf("the check run's summary begins\n%.300s", summary)
		}
	}
}
