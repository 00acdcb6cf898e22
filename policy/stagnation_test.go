package policy

import (
	"math"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy/simhash"
)

// far differs from the print 1 in enough bits to be dissimilar.
const far simhash.Print = 0xffffffff00000000

// flipped returns p with n bits changed.
func flipped(p simhash.Print, n int) simhash.Print { return p ^ (1<<n - 1) }

func failedWith(evidence simhash.Print) Attempt {
	return Attempt{Receipt: Receipt{Ending: Crashed, Outcome: "crashed", Evidence: evidence}}
}
func both(evidence, change simhash.Print) Attempt {
	a := failedWith(evidence)
	a.Change = change
	return a
}
func changedBy(change simhash.Print) Attempt {
	return Attempt{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Change: change}}
}

func TestSimilarAttemptsAreCounted(t *testing.T) {
	p := simhash.Print(0x123456789abcdef1)
	for _, tc := range []struct {
		name      string
		run       []Attempt
		kind      string
		similar   int
		escalated bool
	}{
		{"no attempt", nil, "", 0, false},
		{"one attempt", []Attempt{failedWith(p)}, "", 0, false},
		{"two similar failures", []Attempt{failedWith(p), failedWith(p)}, "failure", 1, false},
		{"three similar failures escalate", []Attempt{failedWith(p), failedWith(p), failedWith(p)}, "failure", 2, true},
		{"three similar revisions escalate", []Attempt{changedBy(p), changedBy(p), changedBy(p)}, "revision", 2, true},
		{"nine bits apart are similar", []Attempt{failedWith(p), failedWith(flipped(p, 9))}, "failure", 1, false},
		{"ten bits apart are not", []Attempt{failedWith(p), failedWith(flipped(p, 10))}, "", 0, false},
		{"only the newest row counts", []Attempt{failedWith(p), failedWith(p), failedWith(p), failedWith(far), failedWith(far)}, "failure", 1, false},
		{"a different attempt at the end ends the row", []Attempt{failedWith(p), failedWith(p), failedWith(p), failedWith(far)}, "", 0, false},
		{"similar failures and similar revisions do not add up", []Attempt{failedWith(p), {Receipt: Receipt{Ending: Crashed, Outcome: "crashed", Evidence: p, Change: p}}, changedBy(p)}, "revision", 1, false},
		{"a row of failures counts as such although some changes are more similar", []Attempt{failedWith(p), both(flipped(p, 3), p), both(p, p), both(p, flipped(p, 3))}, "failure", 3, true},
		{"missing texts are not similar", []Attempt{failedWith(0), failedWith(0), changedBy(0), changedBy(0)}, "", 0, false},
		{"final messages of successes are not failures", []Attempt{
			{Receipt: Receipt{Ending: Completed, Outcome: WorkUnverified, Evidence: p}}, {Receipt: Receipt{Ending: Completed, Outcome: WorkUnverified, Evidence: p}}}, "", 0, false},
		{"usage limits do not count", []Attempt{
			{Receipt: Receipt{Ending: UsageLimit, Outcome: "usage_limit", Evidence: p}}, {Receipt: Receipt{Ending: UsageLimit, Outcome: "usage_limit", Evidence: p}}}, "", 0, false},
		{"interruptions do not count", []Attempt{
			{Receipt: Receipt{Ending: Killed, Outcome: Interrupted, Evidence: p}}, {Receipt: Receipt{Ending: Killed, Outcome: Interrupted, Evidence: p}}}, "", 0, false},
		{"failed verifications with the same output are similar failures", []Attempt{
			{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Evidence: p}}, {Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Evidence: p}}}, "failure", 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := Stagnation(tc.run, 0, Defaults())
			if v.Kind != tc.kind || v.Similar != tc.similar || v.Escalated != tc.escalated {
				t.Errorf("kind %q, %d similar, escalated %t; want %q, %d, %t", v.Kind, v.Similar, v.Escalated, tc.kind, tc.similar, tc.escalated)
			}
			if len(v.Reasons) != 1 || v.Reasons[0] == "" {
				t.Errorf("reasons %q, want one", v.Reasons)
			}
		})
	}
}

func TestSimilarityIsTheNewestPairs(t *testing.T) {
	p := simhash.Print(0x123456789abcdef1)
	v := Stagnation([]Attempt{failedWith(p), failedWith(p), failedWith(flipped(p, 16))}, 0, Defaults())
	if math.Abs(v.Similarity-0.75) > 1e-9 || !strings.Contains(v.Reasons[0], "0.75") {
		t.Errorf("similarity %v, reasons %q, want 0.75", v.Similarity, v.Reasons)
	}
}

func TestStagnationTriesDifferentlyThenStops(t *testing.T) {
	p := simhash.Print(0x123456789abcdef1)
	failing := func(different bool) Attempt {
		a := unverified()
		a.Evidence, a.Decision.Different = p, different
		return a
	}
	revising := func(different bool) Attempt {
		a := timedOut()
		a.Change, a.Decision.Different = p, different
		return a
	}
	for _, tc := range []struct {
		name  string
		facts Facts
		want  Decision
	}{
		{"a similar failure is tried differently by the same backend", given(failing(false), failing(false), failing(false)),
			Decision{Action: DoAttempt, Rule: "stagnation", Backend: "codex", Different: true, Rung: RungEffort, Escalated: true}},
		{"a similar failure is tried at the usual effort if there is no higher one", given(failing(false), failing(false), failing(false)).with(func(f *Facts) { f.Backends[0].CanEscalate = false }),
			Decision{Action: DoAttempt, Rule: "stagnation", Backend: "codex", Different: true}},
		{"a similar revision goes to another backend", given(revising(false), revising(false), revising(false)),
			Decision{Action: DoAttempt, Rule: "stagnation", Backend: "claude", Different: true}},
		{"a similar revision may go to another backend of the same account", given(revising(false), revising(false), revising(false)).with(func(f *Facts) { f.Backends[1].Account = f.Backends[0].Account }),
			Decision{Action: DoAttempt, Rule: "stagnation", Backend: "claude", Different: true}},
		{"a similar revision without another backend is tried differently", given(revising(false), revising(false), revising(false)).alone(),
			Decision{Action: DoAttempt, Rule: "stagnation", Backend: "codex", Different: true}},
		{"a different approach with the same result ends the run", given(failing(false), failing(false), failing(false), failing(true)),
			Decision{Action: DoStop, Rule: "stagnation"}},
		{"new feedback starts an attempt despite stagnation", given(failing(false), failing(false), failing(false), failing(true)).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	} {
		t.Run(tc.name, func(t *testing.T) { decides(t, tc.facts, tc.want) })
	}
}

func TestEqualResultIsStagnationAtOnce(t *testing.T) {
	failing := func(tree string, tests ...string) Attempt {
		a := unverified()
		a.EndTree, a.Tests, a.Evidence = tree, tests, 0
		return a
	}
	asked := failing("t2", "TestA")
	asked.NewInput = true
	for _, tc := range []struct {
		name string
		run  []Attempt
		kind string
	}{
		{"the same failing tests", []Attempt{failing("t1", "TestA", "TestB"), failing("t2", "TestA", "TestB")}, "failure"},
		{"other failing tests", []Attempt{failing("t1", "TestA", "TestB"), failing("t2", "TestA")}, ""},
		{"the same tree", []Attempt{failing("t1"), failing("t1")}, "revision"},
		{"another tree", []Attempt{failing("t1"), failing("t2")}, ""},
		{"unknown trees", []Attempt{failing(""), failing("")}, ""},
		{"the failing tests of two attempts ago", []Attempt{failing("t1", "TestA"), failing("t2", "TestB"), failing("t3", "TestA")}, "failure"},
		{"the tree of two attempts ago", []Attempt{failing("t1"), failing("t2"), failing("t1")}, "revision"},
	} {
		v := Stagnation(tc.run, 0, Defaults())
		if v.Kind != tc.kind || v.Escalated != (tc.kind != "") || (v.Same != "") != (tc.kind != "") {
			t.Errorf("%s: kind %q, escalated %t, same %q; want kind %q", tc.name, v.Kind, v.Escalated, v.Same, tc.kind)
		}
	}
	for name, run := range map[string][]Attempt{"at once": {failing("t1", "TestA"), asked}, "later": {failing("t1", "TestA"), asked, failing("t3", "TestB")}} {
		if v := Stagnation(run, 0, Defaults()); v.Escalated || v.Same != "" {
			t.Errorf("after new feedback, %s: %+v, want no stagnation", name, v)
		}
	}
	decides(t, given(failing("t1", "TestA"), failing("t2", "TestA")),
		Decision{Action: DoAttempt, Rule: "stagnation", Backend: "codex", Different: true, Rung: RungEffort, Escalated: true})
	stuck := failing("t1")
	stuck.StartTree = stuck.EndTree
	decides(t, given(failing("t1"), stuck), Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true})
}

func TestFailuresAreComparedByTestsFirst(t *testing.T) {
	p := simhash.Print(0x123456789abcdef1)
	failing := func(evidence simhash.Print, tests ...string) Attempt {
		return Attempt{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Evidence: evidence, Tests: tests}}
	}
	crashed := failedWith(p)
	traced := func(evidence simhash.Print, frames ...simhash.Print) Attempt {
		a := failing(evidence)
		a.Frames = frames
		return a
	}
	traceAndTest := traced(p, 1, 2)
	traceAndTest.Tests = []string{"A"}
	for _, tc := range []struct {
		name string
		a, b Attempt
		want float64
	}{
		{"the same first frames in other words", traced(p, 1, 2), traced(far, 1, 2), 1},
		{"half of the frames in the same words", traced(p, 1, 2), traced(p, 1), 0.5},
		{"other frames in the same words", traced(p, 1), traced(p, 2), 0},
		{"frames against none: the words", traced(p, 1), failing(p), 1},
		{"the same frames below other tests", traceAndTest, failing(p, "B"), 0},
		{"the same tests in other words", failing(p, "A", "B"), failing(far, "A", "B"), 1},
		{"one test of two in the same words", failing(p, "A", "B"), failing(p, "A"), 0.5},
		{"tests against none", failing(p, "A"), failing(p), 0},
		{"no tests, the same words", failing(p), failing(p), 1},
		{"another kind of end in the same words", failing(p), crashed, 0},
	} {
		if got := tc.a.sameFailure(tc.b); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%s: %.2f, want %.2f", tc.name, got, tc.want)
		}
	}
}

func TestAlternatingFailuresAreStagnation(t *testing.T) {
	a, b := failedWith(0x123456789abcdef1), failedWith(far)
	c := failedWith(0x0ff00ff00ff00ff0)
	for _, tc := range []struct {
		name      string
		run       []Attempt
		similar   int
		escalated bool
	}{
		{"A, B, A", []Attempt{a, b, a}, 1, false},
		{"A, B, A, B", []Attempt{a, b, a, b}, 2, true},
		{"A, B, C", []Attempt{a, b, c}, 0, false},
	} {
		if v := Stagnation(tc.run, 0, Defaults()); v.Similar != tc.similar || v.Escalated != tc.escalated {
			t.Errorf("%s: %d similar, escalated %t; want %d, %t", tc.name, v.Similar, v.Escalated, tc.similar, tc.escalated)
		}
	}
}

func TestRepeatedWorkIsStagnationOverRuns(t *testing.T) {
	p := simhash.Print(0x123456789abcdef1)
	n := 0
	round := func(whole simhash.Print, again bool) Attempt {
		n++
		a := finished()
		a.N, a.Run, a.Whole, a.NewInput, a.SaidAgain = n, n, whole, true, again
		return a
	}
	retried := func(a Attempt) Attempt { a.NewInput, a.SaidAgain = false, false; return a }
	for _, tc := range []struct {
		name    string
		all     []Attempt
		similar int
	}{
		{"one repetition", []Attempt{round(p, false), round(flipped(p, 3), true)}, 1},
		{"two repetitions", []Attempt{round(p, false), round(flipped(p, 3), true), round(p, true)}, 2},
		{"two repetitions with a retry in one", []Attempt{round(p, false), round(far, true), retried(round(p, true)), round(p, true)}, 2},
		{"other work", []Attempt{round(p, false), round(far, true), round(p, true)}, 0},
		{"other requests", []Attempt{round(p, false), round(p, false), round(p, false)}, 0},
		{"a new request in between", []Attempt{round(p, false), round(p, true), round(p, false), round(p, true)}, 1},
		{"unknown work", []Attempt{round(0, false), round(0, true), round(0, true)}, 0},
	} {
		v := redelivered(tc.all, Defaults(), true)
		if v.Similar != tc.similar || v.Escalated != (tc.similar >= 2) {
			t.Errorf("%s: %+v, want %d similar", tc.name, v, tc.similar)
		}
		if got := Stagnation(tc.all, n, Defaults()); got.Escalated != v.Escalated {
			t.Errorf("%s: %+v, want escalated %t", tc.name, got, v.Escalated)
		}
	}
	asked := func(f Facts, again bool, command string) Facts {
		f = f.asked(command)
		f.Run, f.SaidAgain = f.Run+1, again
		return f
	}
	stuck := given(round(p, false), round(p, true), round(p, true))
	decides(t, asked(stuck, true, ""), Decision{Action: DoAttempt, Rule: "stagnation", Backend: "claude", Different: true})
	decides(t, asked(stuck, false, ""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"})
	different := round(p, true)
	different.Decision.Different = true
	decides(t, asked(given(round(p, false), round(p, true), round(p, true), different), true, ""), Decision{Action: DoStop, Rule: "stagnation"})
}

func TestRepeatedRequestsAreRecognised(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"Please handle the empty list in Total, it panics there.", "Please handle the empty list in Total, it crashes there!", true},
		{"The name is still wrong: it must be `total_sum`.", "the name is STILL wrong, it must be `total_sum`", true},
		{"Please rename foo to bar.", "Please rename baz to qux.", false},
		{"Add a test for the empty list.", "Add a changelog entry for the release.", false},
		{"", "", false},
		{"still broken", "works now", false},
	} {
		if got := SaysAgain(tc.a, tc.b); got != tc.want {
			t.Errorf("%q and %q: %t, want %t", tc.a, tc.b, got, tc.want)
		}
	}
}
