package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlbot/pawl/policy/simhash"
)

// Stagnant is the verdict on attempts that come to the same point again. The
// zero value is the verdict on no attempts, without its reason.
type Stagnant struct {
	Kind       string  // what was similar: failure, revision, or empty for nothing
	Similar    int     // attempts in a row, counted from the newest backwards
	Similarity float64 // of the newest attempt with the nearer of the two before it, 0..1
	// Same says that the newest attempt came to the very same point as the one before it on the same input: the same
	// tree, or the same failing tests.
	Same      string
	Escalated bool // Similar reached the limit, or Same holds
	Reasons   []string
	attempts  int // the newest ones that it is about
}

// Stagnation compares each attempt of a run with the two before it, newest first, as
// long as one of them is similar: two points that take turns are one point. What was
// delivered on feedback that says again what was said before is compared over runs.
func Stagnation(all []Attempt, run int, l Limits) Stagnant {
	v := redelivered(all, l)
	if v.Escalated {
		return v
	}
	all = slices.DeleteFunc(slices.Clone(all), func(a Attempt) bool { return a.Run != run })
	v = Stagnant{}
	for _, kind := range []string{"failure", "revision"} {
		n, newest := row(all, kind, l.Stagnation.Similarity)
		if n > v.Similar || n == v.Similar && newest > v.Similarity {
			v.Kind, v.Similar, v.Similarity = kind, n, newest
		}
	}
	if v.Similar == 0 {
		v.Kind = ""
	}
	v.attempts = v.Similar
	v.Escalated = v.Similar > 0 && v.Similar >= l.Stagnation.EscalateAfter
	if a, b, kind, what := same(all); kind != "" {
		v.Kind, v.Same, v.Similarity, v.Similar, v.attempts, v.Escalated = kind, what, 1, max(v.Similar, 1), max(v.attempts, 1), true
		v.Reasons = []string{fmt.Sprintf("attempts %d and %d came to %s on the same input", a.N, b.N, what)}
		return v
	}
	switch {
	case len(all) < 2:
		v.Reasons = []string{"there is no earlier attempt to compare with"}
	case v.Similar == 0:
		v.Reasons = []string{fmt.Sprintf("similarity with the attempts before is %.2f; similar from %.2f", v.Similarity, l.Stagnation.Similarity)}
	default:
		v.Reasons = []string{fmt.Sprintf("%s in a row with a similar %s (%.2f; similar from %.2f)",
			Plural(v.Similar, "attempt"), v.Kind, v.Similarity, l.Stagnation.Similarity)}
	}
	return v
}

// redelivered is the verdict on rounds of feedback, over runs: those whose feedback says
// what that of the round before said, and whose work as a whole is similar to what that
// one delivered.
func redelivered(all []Attempt, l Limits) Stagnant {
	v := Stagnant{Kind: "revision"}
	later, again := simhash.Print(0), false // what the round after delivered, and whether its feedback was said before
	for i := len(all) - 1; i >= 0; i-- {
		whole := all[i].Whole // the last of a round is what it delivered
		for !all[i].NewInput && i > 0 {
			i--
			whole = cmp.Or(whole, all[i].Whole)
		}
		if again {
			s := simhash.Similarity(whole, later)
			if whole == 0 || later == 0 || s < l.Stagnation.Similarity {
				break
			}
			v.Similar++
			v.Similarity = cmp.Or(v.Similarity, s)
		}
		if later, again = whole, all[i].SaidAgain; !again {
			break
		}
		v.attempts = len(all) - i
	}
	v.Escalated = v.Similar > 0 && v.Similar >= l.Stagnation.EscalateAfter
	v.Reasons = []string{fmt.Sprintf("%s of the same request brought similar work (%.2f; similar from %.2f)",
		Plural(v.Similar, "repetition"), v.Similarity, l.Stagnation.Similarity)}
	return v
}

// sameRequest is the share of the words of two remarks, of all that either has, from which
// they ask for the same. One word of six may differ; two requests of one person for
// different things share about half as much.
const sameRequest = 0.7

// maxRequestWords bounds how much of a remark is compared; few have as many.
const maxRequestWords = 400

// SaysAgain reports whether two remarks ask for the same in nearly the same words.
func SaysAgain(a, b string) bool {
	words := func(text string) []string {
		split := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		split = split[:min(len(split), maxRequestWords)]
		slices.Sort(split)
		return slices.Compact(split)
	}
	in, out := words(a), words(b)
	return len(in)+len(out) > 0 && simhash.Shared(in, out) >= sameRequest
}

// same names the point that the newest attempt and an earlier one both came to, whatever their texts say: the same
// failing tests, or the same tree. Only failing attempts are compared, none after which anything new was asked for.
func same(run []Attempt) (a, b Attempt, kind, what string) {
	if len(run) == 0 {
		return a, b, "", ""
	}
	b = run[len(run)-1]
	for i := len(run) - 2; i >= 0 && !run[i+1].NewInput && (b.Failing() || failed(b)); i-- {
		a = run[i]
		switch {
		case !a.Failing() && !failed(a):
		case len(b.Tests) > 0 && slices.Equal(a.Tests, b.Tests) && !turnedGreen(a, b):
			return a, b, "failure", Plural(len(b.Tests), "failing test") + " as before"
		case b.EndTree != "" && a.EndTree == b.EndTree:
			return a, b, "revision", "the same tree"
		}
	}
	return a, b, "", ""
}

// row is how many attempts in a row, from the newest backwards, are alike in a way with
// one of the two before them, and how much the newest is.
func row(all []Attempt, kind string, threshold float64) (n int, newest float64) {
	for i := len(all) - 1; i > 0; i-- {
		s := alike(all[i-1], all[i], kind)
		if i > 1 {
			s = max(s, alike(all[i-2], all[i], kind))
		}
		if n == 0 {
			newest = s
		}
		if s < threshold || turnedGreen(all[i-1], all[i]) {
			break
		}
		n++
	}
	return n, newest
}

// alike is how much two attempts have in common: as a revision, of what they changed; as
// a failure, of the tests that failed in both, or of the words.
func alike(a, b Attempt, kind string) float64 {
	switch {
	case kind == "revision" && a.Change != 0 && b.Change != 0 && a.Outcome != Interrupted && b.Outcome != Interrupted:
		return simhash.Similarity(a.Change, b.Change)
	case kind == "revision" || !failed(a) || !failed(b) || a.Outcome != b.Outcome:
	case len(a.Tests)+len(b.Tests) > 0:
		return simhash.Shared(a.Tests, b.Tests)
	case len(a.Frames) > 0 && len(b.Frames) > 0:
		return simhash.Shared(a.Frames, b.Frames)
	case a.Evidence != 0 && b.Evidence != 0:
		return simhash.Similarity(a.Evidence, b.Evidence)
	}
	return 0
}

// turnedGreen reports whether tests that failed after an attempt, or before Pawl began, pass after a later one, and no
// other test fails there.
func turnedGreen(a, b Attempt) bool {
	fewer := len(b.Tests) < len(a.Tests) || len(b.Fixed()) > len(a.Fixed())
	return fewer && len(b.Tests) > 0 && !slices.ContainsFunc(b.Tests, func(name string) bool { return !slices.Contains(a.Tests, name) })
}

// failed reports whether an attempt has a failure text to compare. What cut or
// interrupted it says nothing about the work.
func failed(a Attempt) bool {
	switch a.Outcome {
	case Interrupted, Cancelled:
		return false
	case VerifyFailed:
		return true
	default:
		return a.Ending != Completed && !a.cut()
	}
}

// stagnation speaks of similar attempts in a row, which are first answered by trying
// differently (failure) or with another backend (revision), then by stopping. Feedback
// that says again what was said before ends neither; a command does.
func stagnation(f Facts) Decision {
	all := f.attempts()
	if len(all) == 0 || len(f.Fresh) > 0 && !f.SaidAgain {
		return Decision{}
	}
	last := all[len(all)-1]
	v := redelivered(all, f.Limits)
	if len(f.Fresh) == 0 {
		v = Stagnation(all, f.Run, f.Limits)
	}
	if last.Run != f.Run && len(f.Fresh) == 0 {
		return Decision{}
	}
	if !v.Escalated || v.Same != "" && v.Kind == "revision" && !last.Progress() {
		// An attempt that changed nothing is for noProgress to end.
		return Decision{}
	}
	for _, a := range all[len(all)-v.attempts:] {
		if a.Decision.Different {
			return stop(RuleStagnation, "Say in a comment what to do differently, or /pawl use another backend.",
				append(v.Reasons, "a different approach was already asked for")...)
		}
	}
	d := again(RuleStagnation, v.Reasons...)
	d.Different = true
	if b, found := f.another(last); found && v.Kind == "revision" {
		d.Backend = b.Name
		return d
	}
	if last.Failing() && f.Limits.Ladder.EscalateEffort && f.canEscalate(f.backend(last.Backend)) {
		// The verifier says the same again: this is the ladder's last rung, too.
		return d.on(last.Backend, RungEffort)
	}
	return d
}
