package policy

import (
	"math"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy/simhash"
)

// far differs from the zero-like print 1 in so many bits that nothing is alike.
const far simhash.Print = 0xffffffff00000000

// flipped returns p with n bits changed.
func flipped(p simhash.Print, n int) simhash.Print { return p ^ (1<<n - 1) }

func failedWith(evidence simhash.Print) Attempt {
	return Attempt{Receipt: Receipt{Ending: Crashed, Outcome: "crashed", Evidence: evidence}}
}
func changedBy(change simhash.Print) Attempt {
	return Attempt{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Change: change}}
}

func TestAttemptsThatComeToTheSamePointAreCounted(t *testing.T) {
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
		{"only the newest ones in a row count", []Attempt{failedWith(p), failedWith(p), failedWith(p), failedWith(far), failedWith(far)}, "failure", 1, false},
		{"a different one at the end ends the row", []Attempt{failedWith(p), failedWith(p), failedWith(p), failedWith(far)}, "", 0, false},
		{"similar failures and similar revisions do not add up", []Attempt{failedWith(p), {Receipt: Receipt{Ending: Crashed, Outcome: "crashed", Evidence: p, Change: p}}, changedBy(p)}, "revision", 1, false},
		{"texts that are not there are not alike", []Attempt{failedWith(0), failedWith(0), changedBy(0), changedBy(0)}, "", 0, false},
		{"final messages of successes are no failures", []Attempt{
			{Receipt: Receipt{Ending: Completed, Outcome: Edited, Evidence: p}}, {Receipt: Receipt{Ending: Completed, Outcome: Edited, Evidence: p}}}, "", 0, false},
		{"usage limits say nothing of the work", []Attempt{
			{Receipt: Receipt{Ending: UsageLimit, Outcome: "usage_limit", Evidence: p}}, {Receipt: Receipt{Ending: UsageLimit, Outcome: "usage_limit", Evidence: p}}}, "", 0, false},
		{"interruptions say nothing of the work", []Attempt{
			{Receipt: Receipt{Ending: Killed, Outcome: Interrupted, Evidence: p}}, {Receipt: Receipt{Ending: Killed, Outcome: Interrupted, Evidence: p}}}, "", 0, false},
		{"failed verifications with the same output are similar failures", []Attempt{
			{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Evidence: p}}, {Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Evidence: p}}}, "failure", 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := Stagnation(tc.run, Defaults())
			if v.Kind != tc.kind || v.Similar != tc.similar || v.Escalated != tc.escalated {
				t.Errorf("kind %q, %d similar, escalated %t; want %q, %d, %t", v.Kind, v.Similar, v.Escalated, tc.kind, tc.similar, tc.escalated)
			}
			if len(v.Reasons) != 1 || v.Reasons[0] == "" {
				t.Errorf("reasons %q, want one", v.Reasons)
			}
		})
	}
}

func TestTheSimilarityIsThatOfTheNewestPair(t *testing.T) {
	p := simhash.Print(0x123456789abcdef1)
	v := Stagnation([]Attempt{failedWith(p), failedWith(p), failedWith(flipped(p, 16))}, Defaults())
	if math.Abs(v.Similarity-0.75) > 1e-9 || !strings.Contains(v.Reasons[0], "0.75") {
		t.Errorf("similarity %v, reasons %q, want 0.75", v.Similarity, v.Reasons)
	}
}

func TestStagnationIsFirstAnsweredAndThenEnded(t *testing.T) {
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
		{"without an escalated effort it is tried at the usual one", given(failing(false), failing(false), failing(false)).with(func(f *Facts) { f.Backends[0].CanEscalate = false }),
			Decision{Action: DoAttempt, Rule: "stagnation", Backend: "codex", Different: true}},
		{"a similar revision goes to somebody else", given(revising(false), revising(false), revising(false)),
			Decision{Action: DoAttempt, Rule: "stagnation", Backend: "claude", Different: true}},
		{"a similar revision without anybody else is tried differently", given(revising(false), revising(false), revising(false)).alone(),
			Decision{Action: DoAttempt, Rule: "stagnation", Backend: "codex", Different: true}},
		{"a different approach that came to the same ends the run", given(failing(false), failing(false), failing(false), failing(true)),
			Decision{Action: DoStop, Rule: "stagnation"}},
		{"new feedback is worth an attempt all the same", given(failing(false), failing(false), failing(false), failing(true)).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	} {
		t.Run(tc.name, func(t *testing.T) { decides(t, tc.facts, tc.want) })
	}
}

func TestTheSamePointOnTheSameInputIsStagnationAtOnce(t *testing.T) {
	failing := func(tree string, tests ...string) Attempt {
		a := unverified()
		a.EndTree, a.Tests, a.Evidence = tree, tests, 0
		return a
	}
	told := failing("t2", "TestA")
	told.NewInput = true
	for _, tc := range []struct {
		name string
		run  []Attempt
		kind string
	}{
		{"the same failing tests", []Attempt{failing("t1", "TestA", "TestB"), failing("t2", "TestA", "TestB")}, "failure"},
		{"other failing tests", []Attempt{failing("t1", "TestA", "TestB"), failing("t2", "TestA")}, ""},
		{"the same tree", []Attempt{failing("t1"), failing("t1")}, "revision"},
		{"another tree", []Attempt{failing("t1"), failing("t2")}, ""},
		{"trees that are not known", []Attempt{failing(""), failing("")}, ""},
		{"the same failing tests after new feedback", []Attempt{failing("t1", "TestA"), told}, ""},
	} {
		v := Stagnation(tc.run, Defaults())
		if v.Kind != tc.kind || v.Escalated != (tc.kind != "") || (v.Same != "") != (tc.kind != "") {
			t.Errorf("%s: kind %q, escalated %t, same %q; want kind %q", tc.name, v.Kind, v.Escalated, v.Same, tc.kind)
		}
	}
	decides(t, given(failing("t1", "TestA"), failing("t2", "TestA")),
		Decision{Action: DoAttempt, Rule: "stagnation", Backend: "codex", Different: true, Rung: RungEffort, Escalated: true})
	stuck := failing("t1")
	stuck.StartTree = stuck.EndTree
	decides(t, given(failing("t1"), stuck), Decision{Action: DoStop, Rule: "no_progress"})
}
