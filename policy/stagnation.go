package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlbot/pawl/policy/simhash"
)

// Stagnant is the verdict on similar attempts. The zero value means no attempts.
type Stagnant struct {
	Kind       string  // failure, revision, or empty for none
	Similar    int     // similar attempts in a row, from the newest backwards
	Similarity float64 // of the newest attempt to the closer of the two before it, 0..1
	// Same names the equal result of the newest and an earlier attempt on the same input: the same tree or failing
	// tests.
	Same      string
	Escalated bool // Similar reached the limit, or Same is set
	Reasons   []string
	attempts  int // the number of newest attempts covered
}

// Stagnation compares each of a run's attempts with the two before it, so alternating attempts count as similar. It
// compares feedback rounds across runs.
func Stagnation(all []Attempt, run int, l Limits) Stagnant {
	v := redelivered(all, l, true)
	if v.Escalated {
		return v
	}
	all = slices.DeleteFunc(slices.Clone(all), func(a Attempt) bool { return a.Run != run })
	v = similar(all, l.Stagnation)
	if p, ok := samePoint(all); ok {
		v.Kind = p.kind
		v.Same = p.what
		v.Similarity = 1
		v.Similar = max(v.Similar, 1)
		v.attempts = max(v.attempts, 1)
		v.Escalated = true
		v.Reasons = []string{fmt.Sprintf("attempts %d and %d came to %s on the same input", p.earlier, p.newest, p.what)}
	}
	return v
}

func similar(run []Attempt, l StagnationLimits) (v Stagnant) {
	from := l.Similarity
	for _, kind := range []string{kindFailure, kindRevision} {
		n, newest := row(run, likenesses[kind], l)
		if cmp.Or(cmp.Compare(n, v.Similar), cmp.Compare(newest.similarity, v.Similarity)) > 0 {
			v.Kind = kind
			v.Similar = n
			v.Similarity = newest.similarity
			from = newest.from
		}
	}
	v.attempts = v.Similar
	v.Escalated = l.reached(v.Similar)
	switch {
	case len(run) < 2:
		v.Reasons = []string{"there is no earlier attempt to compare with"}
	case v.Similar == 0:
		v.Reasons = []string{fmt.Sprintf("similarity with the attempts before is %.2f; similar from %.2f", v.Similarity, from)}
	default:
		v.Reasons = []string{fmt.Sprintf("%s in a row with a similar %s (%.2f; similar from %.2f)",
			Plural(v.Similar, "attempt"), v.Kind, v.Similarity, from)}
	}
	if v.Similar == 0 {
		v.Kind = ""
	}
	return v
}

const (
	kindFailure  = "failure"
	kindRevision = "revision"
)

var likenesses = map[string]likeness{
	kindFailure:  Attempt.likeFailure,
	kindRevision: Attempt.likeRevision,
}

type likeness func(Attempt, Attempt, StagnationLimits) alike

// alike is the similarity of two attempts, and its threshold.
type alike struct{ similarity, from float64 }

func (a alike) margin() float64 { return a.similarity - a.from }

func (l StagnationLimits) reached(similar int) bool {
	return similar > 0 && similar >= l.EscalateAfter
}

func revisions(v Stagnant, from float64) string {
	return fmt.Sprintf("%s of feedback in a row brought similar work (%.2f; similar from %.2f)", Plural(v.Similar, "round"), v.Similarity, from)
}

func similarity(a, b simhash.Print) (s float64, known bool) {
	if a == 0 || b == 0 {
		return 0, false
	}
	return simhash.Similarity(a, b), true
}

// sameRequest is the least share of common words of two remarks that repeat each other. Different requests of one user
// share about half.
const sameRequest = 0.7

// maxRequestWords limits the compared words; few remarks are longer.
const maxRequestWords = 400

// SaysAgain reports whether two remarks ask for the same in nearly the same words.
func SaysAgain(a, b string) bool {
	in, out := requestWords(a), requestWords(b)
	return len(in)+len(out) > 0 && simhash.Shared(in, out) >= sameRequest
}

// requestWords returns a remark's distinct words, sorted.
func requestWords(text string) []string {
	split := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
	split = split[:min(len(split), maxRequestWords)]
	slices.Sort(split)
	return slices.Compact(split)
}

// point is a result that two attempts of a run share.
type point struct {
	kind, what      string
	earlier, newest int // attempt numbers
}

// samePoint finds an earlier attempt with the newest one's failing tests or tree. Both must have failed, without new
// requests in between.
func samePoint(run []Attempt) (point, bool) {
	if len(run) == 0 {
		return point{}, false
	}
	b := run[len(run)-1]
	if !b.fails() {
		return point{}, false
	}
	for i := len(run) - 2; i >= 0; i-- {
		if run[i+1].NewInput {
			break
		}
		a := run[i]
		switch {
		case !a.fails():
			// only failed attempts count
		case a.sameTests(b):
			return point{kindFailure, Plural(len(b.Tests), "failing test") + " as before", a.N, b.N}, true
		case b.EndTree != "" && a.EndTree == b.EndTree:
			return point{kindRevision, "the same tree", a.N, b.N}, true
		}
	}
	return point{}, false
}

func (a Attempt) fails() bool { return a.Failing() || a.failed() }

func (a Attempt) sameTests(later Attempt) bool {
	if len(later.Tests) == 0 || !slices.Equal(a.Tests, later.Tests) {
		return false
	}
	return !later.greenerThan(a)
}

// row counts similar attempts from the newest backwards, and returns the newest one's similarity.
func row(all []Attempt, like likeness, l StagnationLimits) (n int, newest alike) {
	for i := len(all) - 1; i > 0; i-- {
		s := like(all[i-1], all[i], l)
		if i > 1 {
			other := like(all[i-2], all[i], l)
			if other.margin() > s.margin() {
				s = other
			}
		}
		if n == 0 {
			newest = s
		}
		if s.margin() < 0 || all[i].greenerThan(all[i-1]) {
			break
		}
		n++
	}
	return n, newest
}

func (a Attempt) likeRevision(b Attempt, l StagnationLimits) alike {
	like := alike{from: l.forPatches(a.ChangeWords, b.ChangeWords)}
	if a.Outcome == Interrupted || b.Outcome == Interrupted {
		return like
	}
	like.similarity, _ = similarity(a.Change, b.Change)
	return like
}

func (a Attempt) likeFailure(b Attempt, l StagnationLimits) alike {
	return alike{a.sameFailure(b), l.Similarity}
}

// sameFailure returns the share of common failing tests or stack frames, else the texts' similarity.
func (a Attempt) sameFailure(b Attempt) float64 {
	if a.Outcome != b.Outcome {
		return 0
	}
	if !a.failed() || !b.failed() {
		return 0
	}
	switch {
	case len(a.Tests)+len(b.Tests) > 0:
		return simhash.Shared(a.Tests, b.Tests)
	case len(a.Frames) > 0 && len(b.Frames) > 0:
		return simhash.Shared(a.Frames, b.Frames)
	}
	s, _ := similarity(a.Evidence, b.Evidence)
	return s
}

// greenerThan reports whether fewer tests fail or more are fixed than earlier, and no other test fails.
func (a Attempt) greenerThan(earlier Attempt) bool {
	if len(a.Tests) == 0 {
		return false
	}
	mended := len(a.Tests) < len(earlier.Tests) || len(a.Fixed()) > len(earlier.Fixed())
	if !mended {
		return false
	}
	return !slices.ContainsFunc(a.Tests, func(name string) bool { return !slices.Contains(earlier.Tests, name) })
}

// failed reports whether an attempt has a failure text to compare.
func (a Attempt) failed() bool {
	switch a.Outcome {
	case VerifyFailed:
		return true
	case WorkVerified, WorkUnverified:
		return false
	default:
		return a.Ending != Completed && !a.cut() && !a.Outcome.BrokenOff()
	}
}

// stagnation responds to similar attempts: it asks for a different approach (failure) or another backend (revision),
// then stops. New words always get one more attempt.
func stagnation(f Facts) Decision {
	all := f.attempts()
	v := f.stagnant(all)
	if !v.Escalated {
		return Decision{}
	}
	last := all[len(all)-1]
	if v.sameTree() && !last.Progress() {
		// noProgress handles an attempt without a change.
		return Decision{}
	}
	for _, a := range all[len(all)-v.attempts:] {
		if a.Decision.Different && !f.newWords() {
			return stop(
				RuleStagnation,
				"Say in a comment what to do differently, or /pawl use another backend.",
				append(v.Reasons, "a different approach was already asked for")...,
			)
		}
	}
	d := again(RuleStagnation, v.Reasons...)
	d.Different = true
	if b, found := f.another(last); found && v.Kind == kindRevision {
		return d.with(b)
	}
	if last.Failing() && f.mayEscalate(f.backend(last.Backend)) {
		// A repeated failure also uses the ladder's last rung.
		return d.on(last.Backend, RungEffort)
	}
	return d
}

// stagnant judges all attempts if no feedback followed, else rounds of feedback. A command resets the count.
func (f Facts) stagnant(all []Attempt) Stagnant {
	switch {
	case len(all) == 0:
		return Stagnant{}
	case slices.ContainsFunc(f.Fresh, func(r Request) bool { return r.Command != "" }):
		return Stagnant{}
	case len(f.Fresh) > 0:
		return redelivered(all, f.Limits, f.SaidAgain)
	case all[len(all)-1].Run != f.Run:
		return Stagnant{}
	}
	return Stagnation(all, f.Run, f.Limits)
}

func (f Facts) newWords() bool { return len(f.Fresh) > 0 && !f.SaidAgain }

func (v Stagnant) sameTree() bool { return v.Same != "" && v.Kind == kindRevision }
