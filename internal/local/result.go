package local

import (
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
)

// Result is printed by pawl run --json.
type Result struct {
	State   checkrun.State `json:"state"`
	Rule    policy.Rule    `json:"rule"`
	Reasons []string       `json:"reasons"`
	// Outcome and Verification describe the last attempt, if any.
	Outcome      policy.Outcome      `json:"outcome,omitempty"`
	Verification policy.Verification `json:"verification,omitempty"`
	Interrupted  bool                `json:"interrupted,omitempty"` // by Ctrl-C or SIGTERM
	Branch       string              `json:"branch"`
	Transcripts  string              `json:"transcripts"`
	Attempts     []Attempt           `json:"attempts"`
}

// Attempt is a receipt with the reason for continuing a session, and test results compared with the base.
type Attempt struct {
	policy.Receipt
	Verification policy.Verification `json:"verification"`
	Continues    string              `json:"continues,omitempty"`
	Tests        Tests               `json:"tests,omitzero"`
}

// Tests groups test names by result.
type Tests struct {
	Removed  []string `json:"removed,omitempty"`
	Changed  []string `json:"changed,omitempty"` // test files
	Fixed    []string `json:"fixed,omitempty"`
	Broken   []string `json:"broken,omitempty"`
	Flaky    []string `json:"flaky,omitempty"`
	AsBefore []string `json:"as_before,omitempty"`
}

// ResultOf returns a run's result. transcripts is their folder.
func ResultOf(v checkrun.View, transcripts string) Result {
	out := Result{
		State:       v.State,
		Rule:        v.Rule,
		Reasons:     v.Reasons.Texts(),
		Branch:      v.Branch,
		Transcripts: transcripts,
		Attempts:    []Attempt{},
	}
	for _, a := range v.Attempts {
		tests := Tests{Fixed: a.Fixed(), Broken: a.Receipt.Tests, Flaky: a.Flaky(), AsBefore: a.Known()}
		if e := a.TestEvidence; e != nil {
			tests.Removed, tests.Changed = e.Removed, e.Changed
		}
		out.Outcome, out.Verification = a.Outcome, a.Verification()
		out.Attempts = append(out.Attempts, Attempt{a.Receipt, a.Verification(), a.Continues, tests})
	}
	return out
}
