package checkrun

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// drawn shows all texts of one thread the way they are sent.
func drawn(f Facts) string {
	var b strings.Builder
	for _, c := range Checks(f) {
		fmt.Fprintf(&b, "======== check run %s (%s)\nstatus: %s %s\ntitle: %s\n", c.Name, c.ExternalID, c.Status, c.Conclusion, c.Title)
		for _, a := range c.Actions {
			fmt.Fprintf(&b, "button: %s (%s) = %s\n", a.Label, a.Description, a.Identifier)
		}
		for _, a := range c.Annotations {
			fmt.Fprintf(&b, "annotation: %s:%d-%d %s: %s\n", a.Path, a.StartLine, a.EndLine, a.Level, a.Message)
		}
		b.WriteString("\n" + c.Summary)
	}
	b.WriteString("======== status comment\n" + Comment(f))
	b.WriteString("======== pull request body\n" + PullBody(f) + "\n")
	b.WriteString("======== /pawl status\n" + Status(f))
	b.WriteString("======== /pawl why\n" + Why(f))
	return b.String()
}

func TestTextsLookAsRecorded(t *testing.T) {
	all := cases()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { golden(t, name, drawn(all[name])) })
	}
	t.Run("help", func(t *testing.T) { golden(t, "help", Help("pawl-bot", "slove `@x` now")) })
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden.md")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update to record it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s changed (-want +got):\n%s", path, diff)
	}
}

// ruleRow is the first cell of a row of the table of rules, and named what it names.
var (
	ruleRow = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)
	named   = regexp.MustCompile("`([a-z_]+)`")
)

func TestEveryRuleHasAPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## All rules")
	table, _, _ = strings.Cut(table, "\n## ")
	var b strings.Builder
	n := 0
	cells := ""
	for _, m := range ruleRow.FindAllStringSubmatch(table, -1) {
		cells += m[1] + " "
	}
	for _, m := range named.FindAllStringSubmatch(cells, -1) {
		rule := policy.Rule(m[1])
		for _, state := range []State{Stopped, Waiting} {
			if says := map[State]string{Stopped: rule.Words().Stops, Waiting: rule.Words().Waits}[state]; says == "" {
				continue
			}
			n++
			f := noLoop(base())
			f.Attempts, f.State, f.Rule = []Attempt{over(1)}, state, rule
			f.Reasons = policy.Because(rule, "the reason that policy gave")
			if state == Waiting {
				f.Until = now.Add(90 * time.Minute)
			}
			head, _, _ := strings.Cut(Comment(f), "<details>")
			c := Checks(f)[0]
			fmt.Fprintf(&b, "======== %s, %s: check run %q (%s %s)\n%s", rule, state, c.Title, c.Status, c.Conclusion, head)
		}
	}
	if n < 40 {
		t.Errorf("only %d pages", n)
	}
	golden(t, "rules", b.String())
}
