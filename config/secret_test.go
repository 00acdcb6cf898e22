package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
)

func TestSourcesOfSecretsAreReported(t *testing.T) {
	t.Setenv("HOOK", "a secret that is long enough")
	t.Setenv("MODEL_KEY", "sk-one")
	t.Setenv("PASSWORD", "swordfish")
	t.Setenv("TOOL_KEY", "x")
	for _, row := range []struct {
		name, change, with string
		literal, variables []string
		source             string
	}{
		{"in the file", "", "", []string{"github.app.webhook_secret", "providers[0].key"}, []string{}, "the key of provider openai in the configuration"},
		{"a variable", "sk-old", `"${MODEL_KEY}"`, []string{"github.app.webhook_secret"}, []string{"MODEL_KEY"}, "MODEL_KEY (the key of provider openai)"},
		{"a variable in a text", "sk-old", `"$${x}-${MODEL_KEY}"`, []string{"github.app.webhook_secret"}, []string{"MODEL_KEY"}, "MODEL_KEY (the key of provider openai)"},
		{"an escaped variable", "sk-old", `"$${x}"`, []string{"github.app.webhook_secret", "providers[0].key"}, []string{}, "the key of provider openai in the configuration"},
		{"the App's secret in a variable", "0123456789abcdef0123", `"${HOOK}"`, []string{"providers[0].key"}, []string{"HOOK"}, "the key of provider openai in the configuration"},
		{"a password", "backends:", "database: postgres://pawl:swordfish@db/pawl\nbackends:",
			[]string{"github.app.webhook_secret", "database", "providers[0].key"}, []string{}, "the key of provider openai in the configuration"},
		{"a password in a variable", "backends:", "database: \"postgres://pawl:${PASSWORD}@db/pawl\"\nbackends:",
			[]string{"github.app.webhook_secret", "providers[0].key"}, []string{"PASSWORD"}, "the key of provider openai in the configuration"},
		{"no password", "backends:", "database: postgres://pawl@db/pawl\nbackends:",
			[]string{"github.app.webhook_secret", "providers[0].key"}, []string{}, "the key of provider openai in the configuration"},
		{"a backend's variable", "kind: claude", "kind: claude, env: [TOOL_KEY]",
			[]string{"github.app.webhook_secret", "providers[0].key"}, []string{"TOOL_KEY"}, "the key of provider openai in the configuration"},
	} {
		c := parsed(t, strings.Replace(reloadable, row.change, row.with, 1))
		if diff := cmp.Diff(row.literal, c.LiteralSecrets()); diff != "" {
			t.Errorf("%s: in the file (-want +got)\n%s", row.name, diff)
		}
		if diff := cmp.Diff(row.variables, append([]string{}, c.SecretVariables()...)); diff != "" {
			t.Errorf("%s: variables (-want +got)\n%s", row.name, diff)
		}
		if got := c.Providers[0].KeySource(); got != row.source {
			t.Errorf("%s: the key's source is %q, want %q", row.name, got, row.source)
		}
	}
}

func TestMovingASecretIntoAVariableIsNoChange(t *testing.T) {
	t.Setenv("MODEL_KEY", "sk-old")
	before := parsed(t, reloadable)
	after := parsed(t, strings.Replace(reloadable, "sk-old", `"${MODEL_KEY}"`, 1))
	if all := before.Changes(&after); len(all) > 0 {
		t.Errorf("changes %v, want none", all)
	}
	if config.SecretOf("A", "x").Variable() != "A" {
		t.Error("the variable is not kept")
	}
}
