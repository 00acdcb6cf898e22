package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
)

const reloadable = `
github: {app: {integration_id: 1, webhook_secret: 0123456789abcdef0123, private_key_file: key.pem}}
providers: [{name: openai, protocol: openai, key: sk-old}]
backends: [{name: codex, kind: codex, provider: openai}, {name: claude, kind: claude}]
`

func parsed(t *testing.T, text string) config.Server {
	t.Helper()
	c, err := config.Parse("pawl.yml", []byte(text), os.LookupEnv, true)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChangesHideSecrets(t *testing.T) {
	before := parsed(t, reloadable)
	after := parsed(t, strings.NewReplacer("sk-old", "sk-new", "name: claude, kind: claude", "name: claude, kind: claude, effort: low", "1, web", "2, web").
		Replace(reloadable)+"policy: {paused: true, restarts: {max: 7}}\nsandbox: {read_only: [/opt]}\nworkers: 5\n")
	var all, atStart []string
	for _, c := range before.Changes(&after) {
		all = append(all, c.String())
		if c.AtStart() {
			atStart = append(atStart, c.Key)
		}
	}
	want := []string{
		`github.app.integration_id: "1" → "2"`, `sandbox.read_only: "[]" → "[/opt]"`, `providers[0].key: "[hidden]" → "[hidden]"`,
		`backends[1].effort: "" → "low"`, `backends[1].escalated_effort: "xhigh" → "medium"`,
		`policy.paused: "false" → "true"`, `policy.restarts.max: "50" → "7"`, `workers: "2" → "5"`,
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"github.app.integration_id", "workers"}, atStart); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if same := before.Changes(&before); len(same) > 0 {
		t.Errorf("nothing changed, but Changes returned %v", same)
	}
}

func TestReloadKeepsStartKeys(t *testing.T) {
	before := parsed(t, reloadable)
	after := parsed(t, strings.Replace(reloadable, "1, web", "2, web", 1)+"policy: {paused: true}\nsandbox: {read_only: [/opt], network: open}\nlog: {level: debug}\n")
	in := before.Reloaded(after)
	if !in.Policy.Paused || in.Log.Level != "debug" || !cmp.Equal(in.Sandbox.ReadOnly, []string{"/opt"}) {
		t.Errorf("%+v is not active", in)
	}
	if in.GitHub.App.IntegrationID != 1 || in.Sandbox.Network != config.NetworkWalled || before.Policy.Paused {
		t.Errorf("%+v changed without a restart", in)
	}
	for _, c := range in.Changes(&after) {
		if !c.AtStart() {
			t.Errorf("%s is not active, but AtStart is false", c)
		}
	}
	for _, c := range before.Changes(in) {
		if c.AtStart() {
			t.Errorf("%s is active, but AtStart is true", c)
		}
	}
}

func TestDocumentationNamesStartKeys(t *testing.T) {
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range config.StartKeys() {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("docs/configuration.md does not list %s, which needs a restart", key)
		}
	}
}
