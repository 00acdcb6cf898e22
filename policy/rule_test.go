package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/goldentest"
)

// rules returns the constants of the type Rule.
func rules(t *testing.T) []Rule { return constants[Rule](t, "rule.go", "Rule") }

// TestRuleTable compares a table in docs/verdicts.md with the rules that neither a title nor an outcome explains, in the order
// of the constants.
func TestRuleTable(t *testing.T) {
	const path = "../docs/verdicts.md"
	const head = "rule | decides | when\n---|---|---\n"
	var table strings.Builder
	table.WriteString(head)
	followed := ""
	for _, m := range meanings {
		followed += m.Follows
	}
	for _, r := range rules(t) {
		w := r.Words()
		if len(w.Decides) == 0 {
			t.Errorf("%s is used in no decision", r)
		}
		if w.When == "" {
			titled := w.Waits != "" || w.Stops != ""
			if !titled && !strings.Contains(followed, "`"+string(r)+"`") {
				t.Errorf("%s has neither a row, nor a title, nor an outcome that it follows", r)
			}
			continue
		}
		decides := each(w.Decides, func(a Action) string { return string(a) })
		fmt.Fprintf(&table, "`%s` | %s | %s\n", r, strings.Join(decides, ", "), w.When)
	}
	holdsTable(t, path, head, table.String())
}

// holdsTable compares the only table below a heading of a page with a table from the code.
func holdsTable(t *testing.T, path, head, table string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), head)
	if !found || strings.Contains(rest, head) {
		t.Fatalf("%s does not hold one table with the head\n%s", path, head)
	}
	_, after, _ := strings.Cut(rest, "\n\n")
	goldentest.Compare(t, path, before+table+"\n"+after)
}

func TestRuleWordsMatchItsDecisions(t *testing.T) {
	for _, r := range rules(t) {
		w := r.Words()
		if waits := slices.Contains(w.Decides, DoWait); waits != (w.Waits != "") {
			t.Errorf("%s decides %q and has the words %q for a wait", r, w.Decides, w.Waits)
		}
		if slices.Contains(w.Decides, DoStop) && w.Stops == "" {
			t.Errorf("%s decides %q and has no words for a stop", r, w.Decides)
		}
	}
}

func TestEveryRuleHasAHeadline(t *testing.T) {
	all := rules(t)
	if len(all) < 40 {
		t.Fatalf("found only %q", all)
	}
	starts := map[Rule]bool{}
	for _, r := range []Rule{RuleDone, RuleNothingLeft, RuleFeedback, RuleProgress, RuleLimitReset, RuleEditLoop, RuleNoAnswer, RuleEscalateEffort, RuleStillFailing, RuleAnswered, RulePlanned, RuleUnwatched, RuleMoved} {
		starts[r] = true
	}
	seen := map[Rule]bool{}
	for _, r := range all {
		if words := r.Words(); (words.Waits == "" && words.Stops == "") != starts[r] {
			t.Errorf("%s has the words %+v, and starts attempts only: %t", r, words, starts[r])
		}
		if seen[r] {
			t.Errorf("%s occurs twice", r)
		}
		seen[r] = true
	}
}

func TestReasonIncludesItsTime(t *testing.T) {
	at := time.Date(2026, 3, 4, 14, 3, 0, 0, time.UTC)
	all := append(Because(RuleFeedback, "1 remark"), Reason{Rule: RuleUsageLimit, Text: "it resets at", Until: at})
	if got, want := all.String(), "1 remark; it resets at 2026-03-04T14:03:00Z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"1 remark", "it resets at noon"}, all.Write(func(time.Time) string { return "noon" })); diff != "" {
		t.Error(diff)
	}
}

func TestReasonsSurviveStorage(t *testing.T) {
	d := Decision{Action: DoWait, Rule: RuleUsageLimit, Reasons: Reasons{
		{Rule: RuleUsageLimit, Text: "it resets at", Until: time.Date(2026, 3, 4, 14, 3, 0, 0, time.UTC)}, {Rule: RuleFeedback, Text: "\"a\" remark"},
	}}
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var got Decision
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, got); diff != "" {
		t.Errorf("%s: %s", data, diff)
	}
	for _, bad := range []string{`7`, `{"text": 7}`, `["a"]`} {
		if err := json.Unmarshal([]byte(bad), new(Reason)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
