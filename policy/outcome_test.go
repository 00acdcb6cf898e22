package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// constants returns the values of a type's constants in a file, in the file's order.
func constants[T ~string](t *testing.T, name, typ string) (all []T) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		kind, ok := spec.Type.(*ast.Ident)
		if !ok || kind.Name != typ {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, T(value))
		return true
	})
	return all
}

// endings returns the constants of the type Ending.
func endings(t *testing.T) []Ending { return constants[Ending](t, "words.go", "Ending") }

func TestEveryEndingHasOneOutcome(t *testing.T) {
	all := endings(t)
	if len(all) < 15 {
		t.Fatalf("found only %q", all)
	}
	for _, e := range all {
		if _, known := endedAs[e]; !known && e != Completed {
			t.Errorf("%s has no outcome", e)
		}
	}
}

// TestOutcomeTable compares a table in docs/verdicts.md with the outcomes' meanings.
func TestOutcomeTable(t *testing.T) {
	const path = "../docs/verdicts.md"
	const head = "outcome | means | what follows\n---|---|---\n"
	named := regexp.MustCompile("`([a-z_]+)`")
	known := rules(t)
	var table strings.Builder
	table.WriteString(head)
	for _, o := range Outcomes() {
		m := o.Meaning()
		if m == (Meaning{}) {
			t.Errorf("%s has no meaning", o)
		}
		for _, name := range named.FindAllStringSubmatch(m.Follows, -1) {
			if !slices.Contains(known, Rule(name[1])) && !slices.Contains(Outcomes(), Outcome(name[1])) {
				t.Errorf("%s: %s is neither a rule nor an outcome", o, name[1])
			}
		}
		fmt.Fprintf(&table, "`%s` | %s | %s\n", o, m.Means, m.Follows)
	}
	if len(meanings) != len(Outcomes()) {
		t.Errorf("%d meanings of %d outcomes", len(meanings), len(Outcomes()))
	}
	holdsTable(t, path, head, table.String())
}

// TestVerificationTable checks that docs/verdicts.md has a row for each verification.
func TestVerificationTable(t *testing.T) {
	page, err := os.ReadFile("../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "verification | means\n")
	if !found {
		t.Fatal("docs/verdicts.md has no table of verifications")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var got []Verification
	for _, row := range regexp.MustCompile("(?m)^`([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, Verification(row[1]))
	}
	want := constants[Verification](t, "verification.go", "Verification")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-constants +docs/verdicts.md:\n%s", diff)
	}
}

func TestStoredOutcomesAreTranslated(t *testing.T) {
	passed := []Verified{{Passed: true, Runner: "go", PassedTests: 1}}
	for _, c := range []struct {
		receipt Receipt
		purpose Purpose
		want    Outcome
	}{
		{Receipt{Outcome: "edited", Ending: Completed, Verify: passed}, ToChange, WorkVerified},
		{Receipt{Outcome: "edited", Ending: Completed}, ToChange, WorkUnverified},
		{Receipt{Outcome: "loop", Ending: Killed}, ToChange, EditLoop},
		{Receipt{Outcome: "loop", Ending: SelfLoop}, ToChange, SelfStopped},
		{Receipt{Outcome: "turn_limit", Ending: TurnLimit}, ToChange, SelfStopped},
		{Receipt{Outcome: "turn_limit", Ending: TurnLimit, Paused: true}, ToChange, OutOfBudget},
		{Receipt{Outcome: "answered", Ending: Completed}, ToAnswer, Answered},
		{Receipt{Outcome: "answered", Ending: Completed}, ToPlan, Planned},
		{Receipt{Outcome: "timed_out", Ending: TimedOut, Silent: "15m"}, ToChange, FellSilent},
		{Receipt{Outcome: "timed_out", Ending: TimedOut}, ToChange, WasTimedOut},
	} {
		if got := c.receipt.Stored(c.purpose); got != c.want {
			t.Errorf("%s that ended %s: %s, want %s", c.receipt.Outcome, c.receipt.Ending, got, c.want)
		}
	}
}

// An outcome that Pawl stores now is read unchanged.
func TestCurrentOutcomesAreReadUnchanged(t *testing.T) {
	endings := constants[Ending](t, "words.go", "Ending")
	rapid.Check(t, func(t *rapid.T) {
		r := anyReceipt(t, endings)
		purpose := rapid.SampledFrom([]Purpose{ToChange, ToAnswer, ToPlan}).Draw(t, "purpose")
		r.Outcome = r.Came(purpose, Defaults().Severity)
		if r.Outcome == WasTimedOut && r.Silent != "" {
			t.Fatal("silence is read as another time limit")
		}
		if got := r.Stored(purpose); got != r.Outcome {
			t.Fatalf("%s became %s", r.Outcome, got)
		}
	})
}

// anyVerified draws the result of a verify command.
func anyVerified(t *rapid.T) Verified {
	name := func(label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"TestA", "TestB", "pkg [build failed]"}), 0, 2, rapid.ID).Draw(t, label)
	}
	v := Verified{
		Command:     rapid.SampledFrom([]string{"make", "go test ./..."}).Draw(t, "command"),
		Runner:      rapid.SampledFrom([]string{"", "go"}).Draw(t, "runner"),
		Exit:        rapid.SampledFrom([]int{0, 0, 1, 127}).Draw(t, "exit"),
		PassedTests: rapid.IntRange(0, 2).Draw(t, "passed"),
		NoTests:     rapid.Bool().Draw(t, "no tests"),
		Known:       name("known"),
		Fixed:       name("fixed"),
		Broken:      rapid.SampledFrom([]string{"", "", "no program"}).Draw(t, "broken"),
	}
	for _, n := range name("failing") {
		v.Failing = append(v.Failing, Failing{Name: n})
	}
	v.FailedTests = len(v.Failing)
	v.Passed = len(v.Failing) == 0 && v.Broken == "" && (v.Exit == 0 || len(v.Known) > 0)
	return v
}

// anyReceipt draws a receipt, whose fields may contradict each other.
func anyReceipt(t *rapid.T, endings []Ending) Receipt {
	some := func(label string) []string { return rapid.SliceOfN(rapid.Just("x"), 0, 1).Draw(t, label) }
	word := func(label string) string { return rapid.SampledFrom([]string{"", "words"}).Draw(t, label) }
	all := rapid.SliceOfN(rapid.Custom(anyVerified), 0, 2)
	r := Receipt{
		Ending:    rapid.SampledFrom(endings).Draw(t, "ending"),
		StartTree: "a",
		EndTree:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tree"),
		Silent:    word("silent"),
		Declined:  word("declined"),
		Question:  word("question"),
		Budget:    word("budget"),
		Paused:    rapid.Bool().Draw(t, "paused"),
		Conflicts: some("conflicts"),
		LeftOut:   some("left out"),
		Edits:     Edits{Operations: rapid.IntRange(0, 120).Draw(t, "edits"), MaxRepeat: rapid.IntRange(0, 30).Draw(t, "repeats")},
		Verify:    all.Draw(t, "verify"),
	}
	if rapid.Bool().Draw(t, "evidence") {
		r.TestEvidence = &TestEvidence{
			AsTheyWere: all.Draw(t, "as they were"),
			Without:    all.Draw(t, "without"),
			Fewer:      rapid.IntRange(0, 1).Draw(t, "fewer"),
			Skipped:    word("skipped"),
		}
	}
	if rapid.Bool().Draw(t, "leak") {
		r.Leaks = []Leak{{Kind: "key"}}
	}
	return r
}

// Every receipt has one outcome of the list. The outcome is never "verified" if no test was counted or a command failed.
func TestOutcomeFollowsTheReceipt(t *testing.T) {
	known, endings := Outcomes(), endings(t)
	rapid.Check(t, func(t *rapid.T) {
		r := anyReceipt(t, endings)
		purpose := rapid.SampledFrom([]Purpose{ToChange, ToAnswer, ToPlan}).Draw(t, "purpose")
		o := r.Came(purpose, Defaults().Severity)
		if !slices.Contains(known, o) {
			t.Fatalf("outcome %q is not in the list", o)
		}
		if o.BrokenOff() {
			t.Fatalf("outcome %q, which only Pawl or a user can set", o)
		}
		if (o == Answered || o == Planned) != (purpose != ToChange && r.Ending == Completed) {
			t.Fatalf("outcome %q of an attempt to %q that ended %s", o, purpose, r.Ending)
		}
		if o.Work() && (len(r.Leaks)+len(r.Conflicts) > 0 || r.Failing()) {
			t.Fatalf("%s despite a secret, a conflict or a failure", o)
		}
		if o == WorkVerified {
			borne(t, r)
		}
		if v := r.Verification(); v.Verifies() {
			borne(t, r)
		}
		if words := r.VerifiedWords("main"); words == "" {
			t.Fatal("the verification has no words")
		}
	})
}

// borne fails unless a receipt shows that its work is verified.
func borne(t *rapid.T, r Receipt) {
	counted := false
	for _, v := range r.Verify {
		if v.Exit != 0 || len(v.Failing)+len(v.Known) > 0 || v.Broken != "" || v.NoTests {
			t.Fatalf("verified despite %+v", v)
		}
		counted = counted || v.Runner != ""
	}
	if !counted {
		t.Fatalf("verified without a counted test: %+v", r.Verify)
	}
	if r.TestEvidence != nil && (r.TestEvidence.Fewer > 0 || r.TestEvidence.Skipped != "") {
		t.Fatalf("verified despite %+v", r.TestEvidence)
	}
}
