package doctor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/web"
)

func TestHealthyServerHasNoFailures(t *testing.T) {
	c := newClinic(t, nil)
	if _, err := sandbox.New(t.Context(), sandbox.Auto); err == nil {
		c.replace("mode: none", "mode: auto")
	} else {
		t.Logf("no sandbox works here, so none is checked: %v", err)
	}
	var checks []string
	for _, f := range c.examine() {
		if f.State == Failed {
			t.Errorf("%+v", f)
		}
		checks = append(checks, f.Check)
	}
	for _, check := range []string{"configuration", "database", "data_dir", "disk", "git", "sandbox", "clock", "github", "permissions", "events", "installed", "hook", "backend mine"} {
		if !slices.Contains(checks, check) {
			t.Errorf("no finding of check %s, only of %q", check, checks)
		}
	}
}

// Errors of a configuration have the same hint, one finding each.
func TestUnreadableConfigurationEndsTheChecks(t *testing.T) {
	c := newClinic(t, nil)
	c.text += "sandbx: {}\nworkers: -1\n"
	c.replace("integration_id: 1", `integration_id: "${NOT_SET}"`)
	var got []string
	for _, f := range c.examine() {
		_, text, _ := strings.Cut(f.Text, ": ")
		got = append(got, strings.Join([]string{f.State, f.Check, text, f.Hint}, "|"))
	}
	const row = "failed|configuration|"
	const hint = "|correct it; docs/configuration.md has every key"
	for _, want := range []string{"sandbx: is not a known key", "workers: -1 is out of range", "NOT_SET is not set"} {
		found := func(s string) bool {
			return strings.HasPrefix(s, row) && strings.Contains(s, want) && strings.HasSuffix(s, hint)
		}
		if !slices.ContainsFunc(got, found) {
			t.Errorf("no finding %s in %q", want, got)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d findings, want 3: %q", len(got), got)
	}
	all := Examine(t.Context(), c.path("none.yml"), "", web.Build{})
	if len(all) != 1 || all[0].State != Failed || !strings.Contains(all[0].Hint, "pawl setup writes a new one") {
		t.Errorf("without a file: %+v", all)
	}
}

func TestFindingsAsTextAndJSON(t *testing.T) {
	all := []Finding{
		{Check: "git", State: OK, Text: "git version 2.47.3"},
		{Check: "events", State: Failed, Text: "no push", Hint: "tick it"},
	}
	var lines strings.Builder
	Print(&lines, all)
	const want = "ok       git            git version 2.47.3\n" +
		"failed   events         no push\n" +
		"                        → tick it\n"
	if diff := cmp.Diff(want, lines.String()); diff != "" {
		t.Error(diff)
	}
	const object = `[{"check":"git","state":"ok","text":"git version 2.47.3"},` +
		`{"check":"events","state":"failed","text":"no push","hint":"tick it"}]`
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object, string(text)); diff != "" {
		t.Error(diff)
	}
}
