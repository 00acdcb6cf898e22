package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/goldentest"
	"github.com/pawlbot/pawl/policy"
)

// testEnv is the environment of every test.
func testEnv(name string) (string, bool) {
	value, ok := map[string]string{
		"PAWL_APP_ID":         "12345",
		"PAWL_WEBHOOK_SECRET": "a secret that is long enough",
		"SHORT_SECRET":        "hunter2",
		"DB_PASSWORD":         "swordfish",
		"EMPTY":               "",
		"OPENAI_API_KEY":      "sk-example",
		"YAML":                "x\nworkers: 99",
	}[name]
	return value, ok
}

// minimal is the shortest valid configuration.
const minimal = `
github:
  app: {integration_id: 1, webhook_secret: "0123456789abcdef", private_key_file: app.pem}
backends:
  - {name: codex, kind: codex}
`

func TestExampleLoadsAndHoldsTheDefaults(t *testing.T) {
	got, err := Load("example.yml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.DataDir = folder
	want.Database.Path = filepath.Join(folder, "pawl.db")
	want.GitHub.App = App{IntegrationID: 12345, WebhookSecret: NewSecret("a secret that is long enough"),
		PrivateKeyFile: filepath.Join(folder, "app.pem")}
	want.Policy.AllowedBots, want.Policy.Learning.Judge, want.Policy.Learning.JudgeEnv, want.Sandbox.ReadOnly = []int64{}, []string{}, []string{}, []string{}
	want.Images.Registries = []string{}
	want.HTTP.Proxies = []netip.Prefix{}
	none := []policy.HostRule{}
	want.Network = Network{Setup: none, Agent: none, Verify: none, Judge: none, Private: []netip.Prefix{}, Download: 10 << 30}
	want.Setup.Secrets = []SetupSecrets{{Env: []string{"NPM_TOKEN"}, Repositories: []string{"acme/*"}}}
	want.Providers = []Provider{{Name: "openai", Protocol: OpenAI, BaseURL: "https://api.openai.com/v1", Key: NewSecret("sk-example"), NoAnswerBytes: 65536,
		Prices: []Price{{Model: "gpt-5", Input: 1.25, CachedInput: 0.125, Output: 10}}}}
	want.Accounts = []Account{{Name: "max-1", Provider: "openai"}, {Name: "max-2", CredentialFile: got.Accounts[1].CredentialFile}}
	want.Backends = []Backend{
		{Name: "codex", Kind: "codex", Stream: "codex", Model: "gpt-5", Effort: "medium", EscalatedEffort: "high",
			Account: "main", Provider: "openai",
			Timeout: 90 * time.Minute, IdleTimeout: 15 * time.Minute, StartupTimeout: 2 * time.Minute},
		{Name: "mine", Kind: "command", Argv: []string{"/usr/local/bin/my-agent"}, Stream: "plain", Account: "mine",
			Env: []string{"MY_KEY"}, Timeout: 90 * time.Minute, IdleTimeout: 15 * time.Minute, StartupTimeout: 2 * time.Minute},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("example.yml differs from the documented defaults (-want +got):\n%s", diff)
	}
}

func TestMinimalConfigurationKeepsEveryDefault(t *testing.T) {
	got, err := Parse("/etc/pawl/pawl.yml", []byte(minimal), testEnv, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default().Policy, got.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if got.GitHub.App.PrivateKeyFile != "/etc/pawl/app.pem" || got.Database.Path != "/etc/pawl/pawl.db" || got.DataDir != "/etc/pawl" {
		t.Errorf("paths do not start from the file's folder: %+v", got)
	}
	if diff := cmp.Diff([]Backend{NewBackend("codex", Codex)}, got.Backends); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	if b := got.Backends[0]; b.Account != "codex" || b.Stream != "codex" || b.Timeout != 90*time.Minute {
		t.Errorf("account and stream do not follow from the name and kind: %+v", b)
	}
}

func TestServerWithoutWebhooksNeedsNoSecret(t *testing.T) {
	const app = "backends: [{name: codex, kind: codex}]\ngithub: {app: {integration_id: 1, private_key_file: app.pem}"
	for name, text := range map[string]string{
		"another server receives":  app + "}\nserver: {address: ''}\ndatabase: postgres://pawl@db/pawl\n",
		"polls":                    app + ", receive: poll}\n",
		"polls without an address": app + ", receive: poll}\nserver: {address: ''}\n",
	} {
		if _, err := Parse("pawl.yml", []byte(text), testEnv, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsNameFileLineKeyAndRemedy(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no broken files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			goldentest.Compare(t, strings.TrimSuffix(file, ".yml")+".golden", errorsOf(filepath.Base(file), data))
		})
	}
}

// errorsOf returns the errors of a repository's or a server's file. The file's name determines which it is.
func errorsOf(name string, data []byte) string {
	if strings.HasPrefix(name, "repo-") {
		r, problems := ParseRepo(name, data)
		if len(problems) > 0 {
			return Problems(problems).Error() + "\n"
		}
		server := Default()
		server.Backends = []Backend{{Name: "codex"}, {Name: "claude"}}
		_, problems = server.Narrow(r)
		return Problems(problems).Error() + "\n"
	}
	_, err := Parse(name, data, testEnv, true)
	return fmt.Sprintln(err)
}

func TestMissingFileErrorNamesTheRemedy(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yml"), testEnv)
	if err == nil || !strings.Contains(err.Error(), "none.yml") || !strings.Contains(err.Error(), "pawl setup") {
		t.Errorf("error is %v, want the file and pawl setup", err)
	}
}

func TestVariablesAreReplacedAfterParsing(t *testing.T) {
	got, err := Parse("pawl.yml", []byte(minimal+`
server: {public_url: "https://$${x}.example.com"}
database: postgres://pawl:${DB_PASSWORD}@db/pawl
data_dir: ${YAML}
`), testEnv, true)
	if got.Workers == 99 {
		t.Fatal("a variable added a key")
	}
	if err == nil || !strings.Contains(err.Error(), "server.public_url") {
		t.Fatalf("error is %v, want a refused public_url", err)
	}
	got, err = Parse("pawl.yml", []byte(minimal+`
database: postgres://pawl:${DB_PASSWORD}@db/pawl
data_dir: /srv/$${x}/$HOME/${EMPTY}y
`), testEnv, true)
	if err != nil {
		t.Fatal(err)
	}
	if got.DataDir != "/srv/${x}/$HOME/y" {
		t.Errorf("data_dir is %q, want /srv/${x}/$HOME/y", got.DataDir)
	}
	if got.Database.Driver != Postgres || got.Database.URL.Reveal() != "postgres://pawl:swordfish@db/pawl" {
		t.Errorf("database is %s %q", got.Database.Driver, got.Database.URL.Reveal())
	}
}

func TestIdleAndStartupTimeoutsFollowAShortTimeout(t *testing.T) {
	got, err := Parse("pawl.yml", []byte(strings.Replace(minimal, "kind: codex", "kind: codex, timeout: 90s", 1)), testEnv, true)
	if err != nil {
		t.Fatal(err)
	}
	if b := got.Backends[0]; b.IdleTimeout != 90*time.Second || b.StartupTimeout != 90*time.Second {
		t.Errorf("timeouts are %s and %s, want 90s", b.IdleTimeout, b.StartupTimeout)
	}
}

func TestTheEscalatedEffortIsOneStepAboveTheBackendsOwn(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{"kind: codex", "high"}, {"kind: codex, effort: none", "minimal"}, {"kind: codex, effort: high", "xhigh"}, {"kind: codex, effort: max", ""},
		{"kind: claude", "xhigh"}, {"kind: claude, effort: medium", "high"}, {"kind: claude, effort: max", ""},
		{"kind: gemini", "high"}, {"kind: gemini, effort: high", ""}, {"kind: opencode, model: openai/gpt-5", "high"},
		{"kind: command, argv: [/bin/agent]", ""}, {"kind: command, argv: [/bin/agent], effort: low", ""}, {"kind: command, argv: [/bin/agent], escalated_effort: much", "much"},
		{"kind: codex, effort: low, escalated_effort: max", "max"}, {`kind: codex, escalated_effort: ""`, ""}, {"kind: codex, effort: no-such", ""},
	} {
		s, err := Parse("pawl.yml", []byte(strings.Replace(minimal, "kind: codex", c.fields, 1)), testEnv, true)
		if err != nil || s.Backends[0].EscalatedEffort != c.want {
			t.Errorf("%s: %v, want %q; %v", c.fields, s.Backends, c.want, err)
		}
	}
	if got := NewBackend("a", Codex).EscalatedEffort; got != "high" {
		t.Errorf("the effort without a file is %q, want high", got)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	const value = "hunter2-hunter2-hunter2"
	secret := NewSecret(value)
	c, err := Parse("pawl.yml", []byte(strings.Replace(minimal, "0123456789abcdef", value, 1)), testEnv, true)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb, secret)
		fmt.Fprintf(&out, verb, &secret)
		fmt.Fprintf(&out, verb, c)
	}
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", secret, "config", c)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", secret, "config", c)
	logger := zerolog.New(&out)
	logger.Info().Stringer("a", secret).Interface("b", secret).Any("config", c).Msg("x")
	fmt.Fprint(&out, secret.String())
	if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), fmt.Sprintf("%x", value)) {
		t.Errorf("the secret is shown in %s", out.String())
	}
	if !secret.Equal(NewSecret(value)) || secret.Reveal() != value {
		t.Error("the secret lost its value")
	}
}

func TestSecretsAreNamedByTheirKeys(t *testing.T) {
	c, err := Parse("pawl.yml", []byte(minimal+"notify: {url: \"https://chat.example.org/hook\"}\nproviders:\n  - {name: a, protocol: openai, base_url: \"https://a.example.org\", key: key-of-a}\n"), testEnv, true)
	if err != nil {
		t.Fatal(err)
	}
	all := c.Secrets()
	for key, value := range map[string]string{"github.app.webhook_secret": "0123456789abcdef", "providers[0].key": "key-of-a", "notify.url": "https://chat.example.org/hook"} {
		if all[key].Reveal() != value {
			t.Errorf("%s is %q, want %q", key, all[key].Reveal(), value)
		}
	}
	if len(all) != 3 {
		t.Errorf("the secrets are %v, want 3", slices.Sorted(maps.Keys(all)))
	}
}

func TestKeyIsReadFromTheFileAndChecked(t *testing.T) {
	folder := t.TempDir()
	good, bad := filepath.Join(folder, "good.pem"), filepath.Join(folder, "bad.pem")
	const pem = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"
	for file, text := range map[string]string{good: pem, bad: "hunter2"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if key, err := (App{PrivateKeyFile: good}).Key(); err != nil || key.Reveal() != pem {
		t.Errorf("key from the file: %v", err)
	}
	if key, err := (App{PrivateKey: NewSecret(pem)}).Key(); err != nil || key.Reveal() != pem {
		t.Errorf("inline key: %v", err)
	}
	if _, err := (App{PrivateKeyFile: bad}).Key(); err == nil || !strings.Contains(err.Error(), bad) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error for a file without a key: %v", err)
	}
	if _, err := (App{PrivateKeyFile: filepath.Join(folder, "none.pem")}).Key(); err == nil || !strings.Contains(err.Error(), "private_key_file") {
		t.Errorf("error for a missing file: %v", err)
	}
}
