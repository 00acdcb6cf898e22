package policy

import (
	"fmt"
	"slices"

	"github.com/pawlbot/pawl/policy/simhash"
)

// Stagnant is the verdict on attempts that come to the same point again. The
// zero value is the verdict on no attempts, without its reason.
type Stagnant struct {
	// Kind is what was similar: failure, revision, or empty for nothing.
	Kind string
	// Similar is the number of consecutive similar attempts, counted from the
	// newest backwards.
	Similar int
	// Similarity is that of the newest attempt with the one before it, 0..1.
	Similarity float64
	// Same says that the newest attempt came to the very same point as the one
	// before it on the same input: the same tree, or the same failing tests.
	Same string
	// Escalated says that Similar reached the limit, or that Same holds.
	Escalated bool
	Reasons   []string
}

// Stagnation compares each attempt of a run with the one before it, newest
// first, as long as they are similar.
func Stagnation(run []Attempt, l Limits) Stagnant {
	var v Stagnant
	for i := len(run) - 1; i > 0; i-- {
		kind, s := alike(run[i-1], run[i], l.Stagnation.Similarity)
		if i == len(run)-1 {
			v.Similarity = s
		}
		if kind == "" || v.Kind != "" && kind != v.Kind {
			break
		}
		v.Kind = kind
		v.Similar++
	}
	v.Escalated = v.Similar > 0 && v.Similar >= l.Stagnation.EscalateAfter
	if n := len(run); n > 1 {
		if kind, what := same(run[n-2], run[n-1]); kind != "" {
			v.Kind, v.Same, v.Similarity, v.Similar, v.Escalated = kind, what, 1, max(v.Similar, 1), true
			v.Reasons = []string{fmt.Sprintf("attempts %d and %d came to %s on the same input", run[n-2].N, run[n-1].N, what)}
			return v
		}
	}
	switch {
	case len(run) < 2:
		v.Reasons = []string{"there is no earlier attempt to compare with"}
	case v.Similar == 0:
		v.Reasons = []string{fmt.Sprintf("similarity with the attempt before is %.2f; similar from %.2f", v.Similarity, l.Stagnation.Similarity)}
	default:
		v.Reasons = []string{fmt.Sprintf("%s in a row with a similar %s (%.2f; similar from %.2f)",
			Plural(v.Similar, "attempt"), v.Kind, v.Similarity, l.Stagnation.Similarity)}
	}
	return v
}

// same names the point that two attempts both came to, whatever their texts say:
// the same failing tests, or the same tree. Only failing attempts are compared,
// and only where the second was asked for nothing new.
func same(a, b Attempt) (kind, what string) {
	if b.NewInput || !a.Failing() && !failed(a) || !b.Failing() && !failed(b) {
		return "", ""
	}
	switch {
	case len(b.Tests) > 0 && slices.Equal(a.Tests, b.Tests):
		return "failure", Plural(len(b.Tests), "failing test") + " as before"
	case b.EndTree != "" && a.EndTree == b.EndTree:
		return "revision", "the same tree"
	}
	return "", ""
}

// alike names what two attempts have in common: the failure when both failed in
// similar words, the revision when both made a similar change. The number is
// the higher of the similarities that could be measured.
func alike(a, b Attempt, threshold float64) (kind string, s float64) {
	revision := 0.0
	if a.Change != 0 && b.Change != 0 {
		revision = simhash.Similarity(a.Change, b.Change)
	}
	failure := 0.0
	if failed(a) && failed(b) && a.Evidence != 0 && b.Evidence != 0 {
		failure = simhash.Similarity(a.Evidence, b.Evidence)
	}
	switch {
	case failure >= threshold && failure >= revision:
		return "failure", failure
	case revision >= threshold:
		return "revision", revision
	}
	return "", max(failure, revision)
}

// failed reports whether an attempt has a failure text to compare. A usage limit
// or an interruption says nothing about the work.
func failed(a Attempt) bool {
	switch a.Outcome {
	case Interrupted, Cancelled:
		return false
	case VerifyFailed:
		return true
	default:
		return a.Ending != Completed && a.Ending != UsageLimit && a.Ending != RateLimited && a.Ending != Overloaded
	}
}

// stagnation is rule 7: similar attempts in a row are first answered by trying
// differently (failure) or with another backend (revision), then by stopping.
func stagnation(f Facts) (Decision, bool) {
	run := f.run()
	if len(f.Fresh) > 0 || len(run) == 0 {
		return silent()
	}
	v := Stagnation(run, f.Limits)
	last := run[len(run)-1]
	if !v.Escalated || v.Same != "" && v.Kind == "revision" && !last.Progress() {
		// An attempt that changed nothing is for noProgress to end.
		return silent()
	}
	for _, a := range run[len(run)-v.Similar:] {
		if a.Decision.Different {
			return stop(RuleStagnation, "Say in a comment what to do differently, or /pawl use another backend.",
				append(v.Reasons, "a different approach was already asked for")...)
		}
	}
	d, ok := again(RuleStagnation, v.Reasons...)
	d.Different = true
	if b, found := f.other(last); found && v.Kind == "revision" {
		d.Backend = b.Name
		return d, ok
	}
	if last.Failing() && f.Limits.Ladder.EscalateEffort && f.backend(last.Backend).CanEscalate {
		// The verifier says the same again: this is the ladder's last rung, too.
		d.Backend, d.Rung, d.Escalated = last.Backend, RungEffort, true
	}
	return d, ok
}
