package setup

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
)

func TestAPIAddresses(t *testing.T) {
	for web, want := range map[string]hub{
		"https://github.com":           {"https://github.com", "https://api.github.com", "https://api.github.com/graphql"},
		"https://GitHub.com/":          {"https://GitHub.com", "https://api.github.com", "https://api.github.com/graphql"},
		"https://octo.ghe.com":         {"https://octo.ghe.com", "https://api.octo.ghe.com", "https://api.octo.ghe.com/graphql"},
		"https://git.example.com:8443": {"https://git.example.com:8443", "https://git.example.com:8443/api/v3", "https://git.example.com:8443/api/graphql"},
	} {
		if got, err := hubOf(web); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", web, got, err, want)
		}
	}
}

// Users read app.yml, and the release contains it.
func TestManifestEqualsAppYML(t *testing.T) {
	data, err := os.ReadFile("../../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	s, err := New(Flags{URL: "https://pawl.example.com", GitHub: "https://github.com", Name: "pawl", Config: "pawl.yml", Backend: "codex"}, "test")
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(s.manifest("http://127.0.0.1:1/created"))
	if err != nil {
		t.Fatal(err)
	}
	var made map[string]any
	if err := yaml.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	delete(made, "redirect_url")
	if d := diff.Diff(file, made); d != "" {
		t.Errorf("the manifest (-app.yml +made):\n%s", d)
	}
}

func TestSecretsSurviveWritingAndReading(t *testing.T) {
	for _, backend := range config.CLIs() {
		for _, secret := range []string{`a "quoted" secret \ of length`, "a secret with ${HOME} in it", "a secret with $${ in it, é", "tab\tand\nline # no comment"} {
			s, err := New(Flags{URL: "https://pawl.example.com", Pages: "https://pages.example.com/pawl/", GitHub: "https://github.com", Name: "pawl", Config: "pawl.yml", Backend: backend}, "test")
			if err != nil {
				t.Fatal(err)
			}
			text, err := s.configuration(forge.NewApp{ID: 7, Slug: "pawl", WebhookSecret: secret, ClientID: "Iv1.x", ClientSecret: secret})
			if err != nil {
				t.Fatal(err)
			}
			var unset []string
			c, err := config.Parse("pawl.yml", []byte(text), environment(&unset), true)
			if err != nil || c.GitHub.App.WebhookSecret.Reveal() != secret || c.HTTP.PublicURL != "https://pages.example.com/pawl" || c.GitHub.App.ClientSecret.Reveal() != secret || c.Backends[0].Kind != backend {
				t.Errorf("%s: %q is read as %q, %v", backend, secret, c.GitHub.App.WebhookSecret.Reveal(), err)
			}
		}
	}
}

// Removing the # enables an optional part of a new file.
func TestNewFileIsShortAndUncommentable(t *testing.T) {
	for _, backend := range config.CLIs() {
		for _, f := range []Flags{{}, {URL: "https://pawl.example.com", Pages: "https://pages.example.com"}, {GitHub: "https://git.example.com"}} {
			f.Name, f.Config, f.Backend, f.GitHub = "pawl", "pawl.yml", backend, cmp.Or(f.GitHub, "https://github.com")
			s, err := New(f, "test")
			if err != nil {
				t.Fatal(err)
			}
			text, err := s.configuration(forge.NewApp{ID: 7, Slug: "pawl", WebhookSecret: "a secret of some length", ClientID: "Iv1.x", ClientSecret: "another"})
			if err != nil {
				t.Fatal(err)
			}
			editors, text, _ := strings.Cut(text, "\n")
			if example, err := os.ReadFile("../../config/example.yml"); err != nil || !strings.HasPrefix(string(example), editors+"\n") || !strings.HasPrefix(editors, "# yaml-language-server: $schema=https://") {
				t.Errorf("the first line is %q (%v)", editors, err)
			}
			takesEachPart(t, text)
			var active int
			var whole []string
			for line := range strings.Lines(text) {
				bare := strings.TrimSpace(line)
				if bare != "" && !strings.HasPrefix(bare, "#") {
					active++
				}
				if !strings.HasPrefix(bare, "##") {
					line = strings.Replace(line, "# ", "", min(1, strings.Count(line[:strings.Index(line, bare)+min(len(bare), 2)], "# ")))
				}
				whole = append(whole, line)
			}
			if active > 12 || f.GitHub == "https://github.com" && active > 9 {
				t.Errorf("a new file has %d lines:\n%s", active, text)
			}
			var unset []string
			c, err := config.Parse("pawl.yml", []byte(strings.Replace(strings.Join(whole, ""), "YOUR-LOGIN", "ada", 1)), environment(&unset), true)
			if err != nil || len(c.Backends) != len(config.CLIs()) || len(c.Providers) != len(config.Vendors()) || len(c.HTTP.Operators) != 1 || c.HTTP.PublicURL == "" {
				t.Errorf("with all optional parts enabled: %v\n%s", err, strings.Join(whole, ""))
			}
		}
	}
}

// takesEachPart enables each part of a new file on its own: a section with its keys, a key, a provider, and a backend
// with its provider.
func takesEachPart(t *testing.T, text string) {
	t.Helper()
	taken := func(line string) string { return strings.Replace(line, "# ", "", 1) }
	loads := func(what string, lines []string) {
		t.Helper()
		var unset []string
		file := filepath.Join(t.TempDir(), "pawl.yml")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(file, environment(&unset)); err != nil {
			t.Errorf("with only %s enabled: %v\n%s", what, err, strings.Join(lines, "\n"))
		}
	}
	lines := strings.Split(text, "\n")
	part := func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "# ") }
	loads("nothing", lines)
	for i := 0; i < len(lines); i++ {
		if !part(lines[i]) {
			continue
		}
		with := slices.Clone(lines)
		with[i] = taken(with[i])
		if what := with[i]; strings.HasSuffix(what, ":") {
			for ; i+1 < len(lines) && part(lines[i+1]); i++ {
				with[i+1] = strings.Replace(lines[i+1], "#", "", 1)
			}
		} else if _, provider, backend := strings.Cut(what, "provider: "); backend {
			for k, line := range with {
				if part(line) && strings.Contains(line, "- {name: "+strings.TrimSuffix(provider, "}")+", protocol:") {
					with[k] = taken(line)
				}
			}
		}
		loads(lines[i], with)
	}
}
