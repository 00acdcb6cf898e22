package policy

import (
	"fmt"
	"slices"
)

// proof says how far the verify commands prove an attempt's work: the value that decides, and its phrase for people.
type proof struct {
	kind   proofKind
	phrase string
}

type proofKind string

const (
	proofNone         proofKind = "none"         // no verify command ran
	proofFailed       proofKind = "failed"       // a command failed
	proofSameText     proofKind = "same_text"    // a command fails with the output that it had on the base
	proofAsBefore     proofKind = "as_before"    // the only failing tests failed in the same way on the base
	proofNoTests      proofKind = "no_tests"     // a runner counted no test
	proofContradicted proofKind = "contradicted" // a command exited with 0, and its runner reported failures
	proofChangedTests proofKind = "changed_tests"
	proofFewerTests   proofKind = "fewer_tests"
	proofPassed       proofKind = "passed"
)

// proof names the first doubt about the work. What failing commands were refused ends the phrase.
func (r Receipt) proof() proof {
	p := r.firstDoubt()
	for _, v := range r.Verify {
		if walled := v.walled(); walled != "" {
			p.phrase += walled
			break
		}
	}
	return p
}

// firstDoubt is a flat table of kinds and their phrases. The first row that applies is the proof.
func (r Receipt) firstDoubt() proof {
	known := len(r.Known())
	switch {
	case len(r.Verify) == 0:
		return proof{proofNone, "unverified, no verify commands"}
	case r.Failing():
		return proof{proofFailed, "not verified"}
	case slices.ContainsFunc(r.Verify, Verified.asText):
		return proof{proofSameText, "a command fails as it did before, compared as text"}
	case known == 1:
		return proof{proofAsBefore, "1 test fails as it did before"}
	case known > 1:
		return proof{proofAsBefore, fmt.Sprintf("%d tests fail as they did before", known)}
	case slices.ContainsFunc(r.Verify, func(v Verified) bool { return v.NoTests }):
		return proof{proofNoTests, "unverified, no test ran"}
	case r.Contradicted() > 0:
		return proof{proofContradicted, "unverified, exit code 0 with " + Plural(r.Contradicted(), "failure") + " reported"}
	case r.OnlyWithItsTests():
		return proof{proofChangedTests, "verified only with changed tests"}
	case r.fewerTests() > 0:
		return proof{proofFewerTests, "verified by " + Plural(r.fewerTests(), "test") + " fewer than before"}
	}
	return proof{proofPassed, "verified"}
}

// fewerTests is how many tests fewer than on the base ran with the tests as they were; 0 where that is not known.
func (r Receipt) fewerTests() int {
	if r.TestEvidence == nil {
		return 0
	}
	return r.TestEvidence.Fewer
}

// predicate ends a sentence about an attempt: "attempt 3 changed the tree and ...".
func (p proof) predicate() string {
	switch p.kind {
	case proofPassed:
		return "the verify commands passed"
	case proofNone:
		return "ended completed; no verify command ran"
	case proofNoTests, proofContradicted, proofChangedTests, proofFewerTests:
		return "is " + p.phrase
	default:
		return p.phrase
	}
}
