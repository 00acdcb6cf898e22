package solver

import "github.com/pawlbot/pawl/policy"

// Verified is the result of one verify command. Output holds its last lines.
type Verified struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	// Passed says that it exited with 0, or that nothing failed but what failed
	// before Pawl began.
	Passed   bool   `json:"passed"`
	TimedOut bool   `json:"timed_out,omitempty"`
	Signal   string `json:"signal,omitempty"` // that ended it; empty for none
	cut      bool   // Output is not all of it
	Output   string `json:"output,omitempty"`
	MS       int64  `json:"ms"`
	// Runner names the test runners whose output was recognised; empty for none.
	Runner string `json:"runner,omitempty"`
	// PassedTests and FailedTests are as the runner counts them.
	PassedTests int `json:"passed_tests,omitempty"`
	FailedTests int `json:"failed_tests,omitempty"`
	// Failing are the failing tests, Known the names of those that failed before
	// Pawl began.
	Failing []Failing `json:"failing,omitempty"`
	Known   []string  `json:"known,omitempty"`
}

// Failing is a failing test with the text of its assertion.
type Failing struct {
	Name string `json:"name"`
	Text string `json:"text,omitempty"`
}

// count takes over what the tests came to. Runners tell the same failure in
// several places; it counts once.
func (v *Verified) count(all []policy.TestReport) {
	seen, text := map[string]bool{}, 0
	for _, t := range all {
		if t.Runner == "" {
			continue
		}
		v.Runner = t.Runner
		v.PassedTests, v.FailedTests = max(v.PassedTests, t.Passed), max(v.FailedTests, t.Failed)
		for _, f := range t.Failures {
			if seen[f.Name] || len(seen) == maxFailures {
				continue
			}
			seen[f.Name] = true
			if text += len(f.Text); text > maxFailureText {
				f.Text = ""
			}
			v.Failing = append(v.Failing, Failing(f))
		}
	}
	v.FailedTests = max(v.FailedTests, len(v.Failing))
}

// Bounds of the failures that a receipt keeps: how many, and how many bytes of
// their texts together. Beyond that only the number is told.
const (
	maxFailures    = 200
	maxFailureText = 64 << 10
)
