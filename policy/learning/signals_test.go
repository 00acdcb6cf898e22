package learning

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

func TestWhatTheSourcesSay(t *testing.T) {
	at := gradeDay
	changed := func(change func(*Trajectory)) Signal {
		tr := Trajectory{Trajectory: policy.Trajectory{TestRuns: 2, Bytes: 9000}, ToolCalls: 20, Edits: 4, Changed: true, Ending: policy.Completed}
		if change != nil {
			change(&tr)
		}
		return TrajectorySignal(tr, at)
	}
	passes, fails := says(VerifierSource, 1, at), says(VerifierSource, failedValue, at)
	for _, c := range []struct {
		name   string
		got    Signal
		want   float64 // -1 for none
		failed bool
		says   string
	}{
		{"no verify commands", VerifierSignal(Verified{}, at), -1, false, "names no verify commands"},
		{"verifier on an unchanged tree", VerifierSignal(Verified{Configured: true, Passed: true}, at), -1, false, "nothing changed"},
		{"verifier passed", VerifierSignal(Verified{Configured: true, Changed: true, Passed: true}, at), 1, false, "passed"},
		{"verifier failed", VerifierSignal(Verified{Configured: true, Changed: true, Failing: []string{"TestA", "TestB"}}, at), 0.2, false, "2 failing tests"},
		{"CI passed", CISignal([]CheckResult{{Name: "build", Conclusion: "success"}, {Name: "docs", Conclusion: "skipped"}}, at), 1, false, "1 check passed"},
		{"CI failed", CISignal([]CheckResult{{Name: "build", Conclusion: "failure"}, {Name: "lint", Conclusion: "success"}}, at), 0.2, false, "build"},
		{"CI without a machine", CISignal([]CheckResult{{Name: "build", Conclusion: "failure", Outside: "billing"}, {Name: "lint", Conclusion: "success"}}, at), -1, true, "billing"},
		{"CI cancelled", CISignal([]CheckResult{{Name: "build", Conclusion: "cancelled"}}, at), -1, false, "cancelled"},
		{"no CI", CISignal([]CheckResult{{Name: "docs", Conclusion: "neutral"}}, at), -1, false, "no check ran"},
		{"no judge", JudgeSignal(nil, at), -1, false, "no judge"},
		{"judge without quota", JudgeSignal(&policy.Judged{Error: "exit 1: quota exhausted", Grade: 0.02}, at), -1, true, "quota exhausted"},
		{"judge beyond the scale", JudgeSignal(&policy.Judged{Grade: 8}, at), -1, true, "not between"},
		{"judge", JudgeSignal(&policy.Judged{Grade: 0.7}, at), 0.7, false, ""},
		{"no transcript", changed(func(tr *Trajectory) { tr.None = "the CLI writes none" }), -1, false, "writes none"},
		{"clean trajectory", changed(nil), 0.95, false, "4 edits, 2 test runs"},
		{"half of the calls failed", changed(func(tr *Trajectory) { tr.Errors = 10 }), 0.85, false, "10 of 20 calls failed"},
		{"no tests", changed(func(tr *Trajectory) { tr.TestRuns = 0 }), 0.7, false, "0 test runs"},
		{"cut off", changed(func(tr *Trajectory) { tr.Ending = policy.CutOff }), 0.65, false, "cut_off"},
		{"nothing changed", changed(func(tr *Trajectory) { tr.Changed = false }), 0.1, false, ""},
		{"silent agent", JournalSignal(Journal{Final: " "}, at), -1, false, "said nothing"},
		{"true claims", JournalSignal(Journal{Final: "Fixed it; all tests pass.", Changed: true, TestRuns: 1, Verifier: passes}, at), 0.9, false, "borne out"},
		{"tests pass, says the agent", JournalSignal(Journal{Final: "All tests pass.", Changed: true, TestRuns: 1, Verifier: fails}, at), 0.15, false, "the verifier failed"},
		{"done, says the agent", JournalSignal(Journal{Final: "I have implemented the feature."}, at), 0.15, false, "nothing changed"},
		{"honest defeat", JournalSignal(Journal{Final: "I couldn’t get the build to work.", Changed: true}, at), 0.3, false, "did not get there"},
		{"tests nobody saw", JournalSignal(Journal{Final: "Tests pass.", Changed: true}, at), -1, false, "nobody saw"},
		{"no claim", JournalSignal(Journal{Final: "What do you want?", Changed: true}, at), -1, false, "claims nothing"},
		{"no loop", SeveritySignal(policy.Severity{Class: policy.None}, at), -1, false, "did not go in circles"},
		{"severe loop", SeveritySignal(policy.Defaults().Severity.Judge(policy.Edits{Operations: 120, MaxRepeat: 30}), at), 0.02, false, "severe"},
		{"mild loop", SeveritySignal(policy.Defaults().Severity.Judge(policy.Edits{Operations: 45, MaxRepeat: 9}), at), 0.08, false, "mild"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.got
			if s.usable() != (c.want >= 0) || s.Failed != c.failed || c.want >= 0 && (s.Value < c.want-1e-9 || s.Value > c.want+1e-9) {
				t.Errorf("%+v, want %v, failed %v", s, c.want, c.failed)
			}
			if !strings.Contains(s.why()+s.Detail, c.says) || !s.usable() && s.Missing == "" {
				t.Errorf("%+v does not say %q", s, c.says)
			}
		})
	}
}

func TestATrajectoryWithAChangeIsNeverAFloorGrade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000)
		tr := Trajectory{ToolCalls: n.Draw(t, "calls"), Edits: n.Draw(t, "edits"),
			Trajectory: policy.Trajectory{TestRuns: n.Draw(t, "tests"), Errors: n.Draw(t, "errors"), Retries: n.Draw(t, "retries")}, Changed: true, Ending: rapid.SampledFrom([]policy.Ending{policy.Completed, policy.Crashed, policy.TimedOut}).Draw(t, "ending")}
		if s := TrajectorySignal(tr, gradeDay); !s.usable() || s.Value <= floorGrade {
			t.Fatalf("%+v", s)
		}
	})
}
