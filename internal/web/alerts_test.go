package web

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/internal/needs"
)

const deploy = "../../config/deploy/"

func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), needs.Program(t, "promtool"), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertsFire(t *testing.T) {
	t.Parallel()
	promtool(t, deploy+"prometheus", "check", "rules", "alerts.yml")
	promtool(t, deploy+"prometheus", "test", "rules", "alerts_test.yml")
}

// TestEveryAlertIsTestedAndHasARunbook checks that a test fires each alert, and that its link leads to a heading.
func TestEveryAlertIsTestedAndHasARunbook(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations struct {
					Runbook string `yaml:"runbook_url"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(page(t, deploy+"prometheus/alerts.yml"), &rules); err != nil {
		t.Fatal(err)
	}
	tests := string(page(t, deploy+"prometheus/alerts_test.yml"))
	headings := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(page(t, "../../docs/operations.md"), -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(string(m[1])), "")
		headings[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	const runbook = "https://github.com/pawlbot/pawl/blob/main/docs/operations.md#"
	for _, r := range rules.Groups[0].Rules {
		if anchor, ok := strings.CutPrefix(r.Annotations.Runbook, runbook); !ok || !headings[anchor] {
			t.Errorf("%s: docs/operations.md has no heading for %q", r.Alert, r.Annotations.Runbook)
		}
		if !strings.Contains(tests, "alertname: "+r.Alert+"\n        exp_alerts: [{") {
			t.Errorf("no test fires %s", r.Alert)
		}
	}
}

func page(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func dashboard(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(deploy + "grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	exprs, ids := map[string]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || (p.Type != "row" && len(p.Targets) == 0) {
			t.Errorf("panel %d %q has a duplicate number, no title or no query", p.ID, p.Title)
		}
		ids[p.ID] = true
		for i, target := range p.Targets {
			exprs[p.Title+string(rune('A'+i))] = target.Expr
		}
	}
	return exprs
}

func TestDashboardQueriesAreValid(t *testing.T) {
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for _, expr := range dashboard(t) {
		rules = append(rules, rule{"pawl:panel", expr})
	}
	data, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yml"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "--lint=none", "rules.yml")
}

// exported lists the metric names in the sources, because Gather omits vectors without values.
func exported(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []struct{ declares, before, after string }{
			{`Name: +"(pawl_[a-z_]+)"`, "", ""},
			{`\bcounter\("([a-z_]+)"`, "pawl_", "_total"},
			{`\bto\.give\("([a-z_]+)"`, "pawl_", ""},
		} {
			for _, m := range regexp.MustCompile(form.declares).FindAllStringSubmatch(string(source), -1) {
				names = append(names, form.before+m[1]+form.after)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestQueriedMetricsExist(t *testing.T) {
	known := exported(t)
	families, err := NewCounters().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "pawl_") && !slices.Contains(known, f.GetName()) {
			t.Errorf("%s is exported, but its declaration was not found", f.GetName())
		}
	}
	asked := string(page(t, deploy+"prometheus/alerts.yml"))
	for _, expr := range dashboard(t) {
		asked += "\n" + expr
	}
	names := regexp.MustCompile(`\bpawl_[a-z_]+`).FindAllString(asked, -1)
	if len(names) < 20 {
		t.Errorf("only %d metrics are queried", len(names))
	}
	for _, name := range names {
		if !slices.Contains(known, strings.TrimSuffix(name, "_bucket")) {
			t.Errorf("%s is queried, but Pawl does not export it", name)
		}
	}
}

func TestDocsListEachMetric(t *testing.T) {
	const path = "../../docs/operations.md"
	_, table, _ := strings.Cut(string(page(t, path)), "\n| metric |")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for row := range strings.Lines(table) {
		metrics := strings.Split(row, "|")[1]
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(metrics, -1) {
			documented = append(documented, "pawl_"+m[1])
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(exported(t), documented); diff != "" {
		t.Errorf("the table of metrics in %s (-exported +documented):\n%s", path, diff)
	}
}
