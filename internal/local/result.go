package local

import (
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
)

// Result is what pawl run --json prints.
type Result struct {
	State   checkrun.State `json:"state"`
	Rule    policy.Rule    `json:"rule"`
	Reasons []string       `json:"reasons"`
	// Outcome and Verification are the last attempt's; empty without one.
	Outcome      policy.Outcome      `json:"outcome,omitempty"`
	Verification policy.Verification `json:"verification,omitempty"`
	Interrupted  bool                `json:"interrupted,omitempty"` // by Ctrl-C or SIGTERM
	Branch       string              `json:"branch"`
	Transcripts  string              `json:"transcripts"`
	Attempts     []Attempt           `json:"attempts"`
}

// Attempt is a receipt with whether it continued a session, and why, and with the tests' results compared with
// the base's.
type Attempt struct {
	policy.Receipt
	Verification policy.Verification `json:"verification"`
	Continues    string              `json:"continues,omitempty"`
	Tests        Tests               `json:"tests,omitzero"`
}

// Tests are the names of tests by what became of them.
type Tests struct {
	Removed  []string `json:"removed,omitempty"`
	Changed  []string `json:"changed,omitempty"` // files on the tests' side
	Fixed    []string `json:"fixed,omitempty"`
	Broken   []string `json:"broken,omitempty"`
	Flaky    []string `json:"flaky,omitempty"`
	AsBefore []string `json:"as_before,omitempty"`
}

// ResultOf is what work came to, whose transcripts are in a folder.
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
