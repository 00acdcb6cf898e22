package policy

import "slices"

// Verification says how far the verify commands prove the work of an attempt.
type Verification string

const (
	// Proven: tests were counted and all pass, also with the base's tests over the change, and a new or changed test fails
	// without the change.
	Proven Verification = "proven"
	// Passed: as Proven, but no new or changed test is known to fail without the change.
	Passed Verification = "passed"
	// Uncounted: every command exited with 0, and a runner ran no test or none was recognised.
	Uncounted Verification = "uncounted"
	// ChangedTests: everything passes with the tests that the agent changed or removed. It fails, runs fewer tests, or was
	// not tried with the base's tests.
	ChangedTests Verification = "changed_tests"
	// AsBefore: nothing fails but what fails in the same way on the base.
	AsBefore Verification = "as_before"
	// Failed: a command failed, or its runner reported a failing test.
	Failed Verification = "failed"
	// Broken: a command cannot work here, and could not on the base.
	Broken Verification = "broken"
	// Unverified: no verify command ran.
	Unverified Verification = "none"
)

// Verifies reports whether the work counts as verified.
func (v Verification) Verifies() bool { return v == Proven || v == Passed }

// Verification is a flat table: the first row that applies is the verification.
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

// CommandsPassed reports whether the verify commands passed without a doubt that Pawl can see: the work is verified, or
// no runner is recognised, so that the exit codes are all there is. That is enough to leave draft and to learn from.
func (r Receipt) CommandsPassed() bool {
	v := r.Verification()
	return v.Verifies() || v == Uncounted && !r.ranNoTest()
}

// ranNoTest reports whether a runner of a verify command said that it ran no test.
func (r Receipt) ranNoTest() bool {
	return slices.ContainsFunc(r.Verify, func(v Verified) bool { return v.NoTests })
}

// counted reports whether a runner said that tests ran.
func (v Verified) counted() bool { return v.Runner != "" && !v.NoTests }

// ProvenBy is how many new or changed tests fail without the change. A test that was red before proves nothing new, and
// one that cannot be built without the change was not run.
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

// Done reports whether the work is done by the verification: nothing speaks against it, though it need not be verified.
func (v Verification) Done() bool {
	switch v {
	case Proven, Passed, Uncounted, Unverified:
		return true
	default:
		return false
	}
}

// VerifiedWords says what the verification came to. Base is the name of the branch that the work began from; where it
// is empty the words say "before".
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

// doubt says why the work is not known to pass with the base's tests; empty where it is.
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

// needsItsTests reports whether a command fails with the base's tests that does not fail with the tests as the change
// left them.
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

// stillFails says what fails as it did on the base.
func (r Receipt) stillFails() string {
	if slices.ContainsFunc(r.Verify, Verified.asText) {
		return "a command still fails"
	}
	if n := len(r.Known()); n > 1 {
		return Plural(n, "test") + " still fail"
	}
	return "1 test still fails"
}

// failsNow says how many tests of a failed command fail.
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
