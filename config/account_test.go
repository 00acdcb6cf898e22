package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBackendOnEachOfItsAccounts(t *testing.T) {
	const text = minimal + `
providers:
  - {name: team, protocol: anthropic, key: k}
accounts:
  - {name: max-1, provider: team}
  - {name: max-2, credential_file: login.json}
`
	c, err := Parse("/etc/pawl/pawl.yml", []byte(text), testEnv, true)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBackend("claude", Claude)
	b.Accounts = []string{"max-1", "max-2"}
	want := map[string]Account{
		"max-1": {Name: "max-1", Provider: "team"},
		"max-2": {Name: "max-2", CredentialFile: "/etc/pawl/login.json"},
	}
	got := map[string]Account{}
	for _, name := range b.AccountNames() {
		on := c.OnAccount(b, name)
		got[name] = Account{on.Account, on.Provider, on.CredentialFile}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	single := NewBackend("codex", Codex)
	if on := c.OnAccount(single, "max-1"); on.Account != "codex" || on.Provider != "" {
		t.Errorf("a backend without accounts is on %q with provider %q, want codex and none", on.Account, on.Provider)
	}
}
