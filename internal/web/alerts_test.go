package web

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const deploy = "../../config/deploy/"

// promtool runs Prometheus' own tool, where it is installed.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("needs promtool, of Debian's package prometheus")
	}
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestTheAlertsFireWhenTheySay(t *testing.T) {
	promtool(t, deploy+"prometheus", "check", "rules", "alerts.yml")
	promtool(t, deploy+"prometheus", "test", "rules", "alerts_test.yml")
}

// dashboard reads the expressions of the dashboard, by panel.
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
			t.Errorf("panel %d %q has another one's number, no title or no query", p.ID, p.Title)
		}
		ids[p.ID] = true
		for i, target := range p.Targets {
			exprs[p.Title+string(rune('A'+i))] = target.Expr
		}
	}
	return exprs
}

func TestTheDashboardsQueriesAreValid(t *testing.T) {
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

// Alerts and dashboard ask for metrics that Pawl has, and docs/operations.md tells of each metric.
func TestTheMetricsThatAreAskedForExist(t *testing.T) {
	known := map[string]bool{}
	families, err := NewCounters().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		known[f.GetName()] = true
	}
	source, err := os.ReadFile("metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	client, err := os.ReadFile("../forge/client.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Name: "(pawl_[a-z_]+_total)"`).FindAllStringSubmatch(string(client), -1) {
		known[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`counter\("([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		known["pawl_"+m[1]+"_total"] = true // a vector without a value is not gathered
	}
	for _, m := range regexp.MustCompile(`give\("([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		known["pawl_"+m[1]] = true
	}
	for _, m := range regexp.MustCompile(`Name: "(pawl_[a-z_]+_seconds)"`).FindAllStringSubmatch(string(source), -1) {
		known[m[1]], known[m[1]+"_bucket"] = true, true
	}
	alerts, err := os.ReadFile(deploy + "prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	asked := string(alerts)
	for _, expr := range dashboard(t) {
		asked += "\n" + expr
	}
	names := regexp.MustCompile(`\bpawl_[a-z_]+`).FindAllString(asked, -1)
	if len(names) < 20 {
		t.Errorf("only %d metrics are asked for", len(names))
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("%s is asked for, and no metric of Pawl's", name)
		}
	}
}
