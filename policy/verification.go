package policy

import "slices"

// Verification grades how well the verify commands prove an attempt's work.
type Verification string

const (
	// Proven: counted tests pass, also with the base's test files. A new or changed test fails without the change.
	Proven Verification = "proven"
	// Passed: counted tests pass, but no new or changed test is known to fail without the change.
	Passed Verification = "passed"
	// Uncounted: every command exited with 0, but no test was counted.
	Uncounted Verification = "uncounted"
	// ChangedTests: all tests pass with the agent's test changes. With the base's test files they fail, are fewer, or
	// did not run.
	ChangedTests Verification = "changed_tests"
	// AsBefore: the base has the same failures.
	AsBefore Verification = "as_before"
	Failed   Verification = "failed"
	// Broken: a command cannot work, not even on the base.
	Broken     Verification = "broken"
	Unverified Verification = "none"
)

func (v Verification) Verifies() bool { return v == Proven || v == Passed }

// Verification is a flat table: the first case that applies wins.
func (r Receipt) Verification() Verification {
	has := func(is func(Verified) bool) bool { return slices.ContainsFunc(r.Verify, is) }
	switch {
	case len(r.Verify) == 0:
		return Unverified
	case has(func(v Verified) bool { return v.Broken != "" }):
		return Broken
	case r.Failing():
		return Failed
	case len(r.Known()) > 0:
		return AsBefore
	case r.doubt() != "":
		return ChangedTests
	case r.ranNoTest(), !has(Verified.counted):
		return Uncounted
	case r.ProvenBy() > 0:
		return Proven
	}
	return Passed
}

// CommandsPassed reports whether the verify commands passed without a known doubt. Drafts are then marked ready, and
// learning counts the work.
func (r Receipt) CommandsPassed() bool {
	v := r.Verification()
	return v.Verifies() || v == Uncounted && !r.ranNoTest()
}

// ranNoTest reports whether a verify command's runner reported no test.
func (r Receipt) ranNoTest() bool {
	return slices.ContainsFunc(r.Verify, func(v Verified) bool { return v.NoTests })
}

func (v Verified) counted() bool { return v.Runner != "" && !v.NoTests }

// ProvenBy counts new or changed tests that fail without the change. Earlier failures and build failures prove
// nothing.
func (r Receipt) ProvenBy() int {
	if r.TestEvidence == nil {
		return 0
	}
	old := append(r.Fixed(), r.Known()...)
	var proving []string
	for _, v := range r.TestEvidence.Without {
		for _, f := range v.Failing {
			if !f.build() && !slices.Contains(old, f.Name) {
				proving = append(proving, f.Name)
			}
		}
	}
	slices.Sort(proving)
	return len(slices.Compact(proving))
}

// Done reports whether the verification found no failure or doubt, verified or not.
func (v Verification) Done() bool {
	switch v {
	case Proven, Passed, Uncounted, Unverified:
		return true
	default:
		return false
	}
}

// VerifiedWords describes the verification. base names the base branch; if empty, the text says "before".
func (r Receipt) VerifiedWords(base string) string {
	as := "as on " + base
	if base == "" {
		as = "as before"
	}
	switch r.Verification() {
	case Proven:
		return "verified by " + Plural(r.ProvenBy(), "new test")
	case Passed:
		return "verified"
	case Uncounted:
		return "commands passed, no tests counted"
	case ChangedTests:
		return r.doubt()
	case AsBefore:
		return r.stillFails() + ", " + as
	case Unverified:
		return "not verified, no verify command"
	case Broken:
		return "a verify command cannot work here"
	default:
		return r.Deciding().failsNow()
	}
}

// doubt says why the work may fail with the base's test files; empty if it passes.
func (r Receipt) doubt() string {
	e := r.TestEvidence
	switch {
	case e == nil:
		return ""
	case r.needsItsTests():
		return "passes only with changed tests"
	case e.Fewer > 0:
		return Plural(e.Fewer, "fewer test") + " ran than before"
	case e.Skipped != "":
		return "passes with changed tests, and takes too long to try without"
	}
	return ""
}

// needsItsTests reports whether a command fails with the base's test files but not with the change's.
func (r Receipt) needsItsTests() bool {
	for i, v := range r.TestEvidence.AsTheyWere {
		if v.Broken != "" {
			continue
		}
		if !v.Passed {
			return true
		}
		if i < len(r.Verify) && r.Verify[i].clean() && !v.clean() {
			return true
		}
	}
	return false
}

func (r Receipt) stillFails() string {
	if slices.ContainsFunc(r.Verify, Verified.asText) {
		return "a command still fails"
	}
	if n := len(r.Known()); n > 1 {
		return Plural(n, "test") + " still fail"
	}
	return "1 test still fails"
}

func (v Verified) failsNow() string {
	switch n := max(len(v.Failing), v.FailedTests-len(v.Known)-len(v.Flaky)); {
	case n == 0:
		return "a verify command fails"
	case n == 1:
		return "1 test fails"
	default:
		return Plural(n, "test") + " fail"
	}
}
