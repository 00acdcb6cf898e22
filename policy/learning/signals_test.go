package learning

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

func TestSignalValues(t *testing.T) {
	at := gradeDay
	changed := func(change func(*policy.Receipt)) Signal {
		r := policy.Receipt{Trajectory: policy.Trajectory{TestRuns: 2, Bytes: 9000}, ToolCalls: 20, Edits: policy.Edits{Operations: 4},
			StartTree: "1", EndTree: "2", Ending: policy.Completed}
		if change != nil {
			change(&r)
		}
		return TrajectorySignal(r, at)
	}
	verified := func(end string, verify ...policy.Verified) policy.Receipt {
		return policy.Receipt{StartTree: "1", EndTree: end, Verify: verify}
	}
	claimed := func(final, end string, testRuns int) policy.Receipt {
		return policy.Receipt{Final: final, StartTree: "1", EndTree: end, Trajectory: policy.Trajectory{TestRuns: testRuns}}
	}
	passed := policy.Verified{Passed: true, Runner: "go"}
	bent := verified("2", passed)
	bent.TestEvidence = &policy.TestEvidence{AsTheyWere: []policy.Verified{{Exit: 1}}}
	passes, fails := signalOf(VerifierSource, 1, at), signalOf(VerifierSource, failedValue, at)
	for _, c := range []struct {
		name   string
		got    Signal
		want   float64 // -1 for none
		failed bool
		reason string
	}{
		{"no verify commands", VerifierSignal(false, verified("2", passed), at), -1, false, "names no verify commands"},
		{"verifier on an unchanged tree", VerifierSignal(true, verified("1", passed), at), -1, false, "nothing changed"},
		{"verifier that was not reached", VerifierSignal(true, verified("2"), at), -1, false, "before it was verified"},
		{"verifier passed", VerifierSignal(true, verified("2", passed), at), 1, false, "passed"},
		{"verifier that passes only with the change's tests", VerifierSignal(true, bent, at), -1, false, "passes only with changed tests"},
		{"verifier that reports failures and exits with 0", VerifierSignal(true, verified("2", policy.Verified{FailedTests: 1}), at), 0.2, false, "failed"},
		{"verifier failed", VerifierSignal(true, verified("2", passed, policy.Verified{Failing: []policy.Failing{{Name: "TestA"}, {Name: "TestB"}}}), at), 0.2, false, "2 failing tests"},
		{"CI passed", CISignal([]CheckResult{{Name: "build", Conclusion: "success"}, {Name: "docs", Conclusion: "skipped"}}, at), 1, false, "1 check passed"},
		{"CI failed", CISignal([]CheckResult{{Name: "build", Conclusion: "failure"}, {Name: "lint", Conclusion: "success"}}, at), 0.2, false, "build"},
		{"CI without a runner", CISignal([]CheckResult{{Name: "build", Conclusion: "failure", Outside: "billing"}, {Name: "lint", Conclusion: "success"}}, at), -1, true, "billing"},
		{"CI cancelled", CISignal([]CheckResult{{Name: "build", Conclusion: "cancelled"}}, at), -1, false, "cancelled"},
		{"no CI", CISignal([]CheckResult{{Name: "docs", Conclusion: "neutral"}}, at), -1, false, "no check ran"},
		{"no judge", JudgeSignal(nil, at), -1, false, "no judge"},
		{"judge without quota", JudgeSignal(&policy.Judged{Error: "exit 1: quota exhausted", Grade: 0.02}, at), -1, true, "quota exhausted"},
		{"judge outside the scale", JudgeSignal(&policy.Judged{Grade: 8}, at), -1, true, "not between"},
		{"judge", JudgeSignal(&policy.Judged{Grade: 0.7}, at), 0.7, false, ""},
		{"clean trajectory", changed(nil), 0.95, false, "4 edits, 2 test runs"},
		{"half of the calls failed", changed(func(r *policy.Receipt) { r.Trajectory.Errors = 10 }), 0.85, false, "10 of 20 calls failed"},
		{"no tests", changed(func(r *policy.Receipt) { r.Trajectory.TestRuns = 0 }), 0.7, false, "0 test runs"},
		{"cut off", changed(func(r *policy.Receipt) { r.Ending = policy.CutOff }), 0.65, false, "cut_off"},
		{"nothing changed", changed(func(r *policy.Receipt) { r.EndTree = r.StartTree }), 0.1, false, ""},
		{"silent agent", JournalSignal(claimed(" ", "1", 0), Signal{}, at), -1, false, "said nothing"},
		{"true claims", JournalSignal(claimed("Fixed it; all tests pass.", "2", 1), passes, at), 0.9, false, "borne out"},
		{"the agent claims passing tests", JournalSignal(claimed("All tests pass.", "2", 1), fails, at), 0.15, false, "the verifier failed"},
		{"the agent claims to be done", JournalSignal(claimed("I have implemented the feature.", "1", 0), Signal{}, at), 0.15, false, "nothing changed"},
		{"honest defeat", JournalSignal(claimed("I couldn’t get the build to work.", "2", 0), Signal{}, at), 0.3, false, "did not get there"},
		{"unseen tests", JournalSignal(claimed("Tests pass.", "2", 0), Signal{}, at), -1, false, "nobody saw"},
		{"no claim", JournalSignal(claimed("What do you want?", "2", 0), Signal{}, at), -1, false, "claims nothing"},
		{"no loop", SeveritySignal(policy.Severity{Class: policy.None}, at), -1, false, "no edit loop was seen"},
		{"severe loop", SeveritySignal(policy.Defaults().Severity.Judge(policy.Edits{Operations: 120, MaxRepeat: 30}), at), 0.02, false, "severe"},
		{"mild loop", SeveritySignal(policy.Defaults().Severity.Judge(policy.Edits{Operations: 45, MaxRepeat: 9}), at), 0.08, false, "mild"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.got
			if s.usable() != (c.want >= 0) || s.Failed != c.failed || c.want >= 0 && (s.Value < c.want-1e-9 || s.Value > c.want+1e-9) {
				t.Errorf("%+v, want %v, failed %v", s, c.want, c.failed)
			}
			if !strings.Contains(s.why()+s.Detail, c.reason) || !s.usable() && s.Missing == "" {
				t.Errorf("%+v does not say %q", s, c.reason)
			}
		})
	}
}

func TestTrajectoryWithAChangeNeverGetsTheLowestGrade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000)
		r := policy.Receipt{ToolCalls: n.Draw(t, "calls"), Edits: policy.Edits{Operations: n.Draw(t, "edits")}, StartTree: "1", EndTree: "2",
			Trajectory: policy.Trajectory{TestRuns: n.Draw(t, "tests"), Errors: n.Draw(t, "errors"), Retries: n.Draw(t, "retries")}, Ending: rapid.SampledFrom([]policy.Ending{policy.Completed, policy.Crashed, policy.TimedOut}).Draw(t, "ending")}
		if s := TrajectorySignal(r, gradeDay); !s.usable() || s.Value <= floorGrade {
			t.Fatalf("%+v", s)
		}
	})
}
