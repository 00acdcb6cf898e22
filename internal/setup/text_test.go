package setup

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
)

func TestTheAPIsOfEveryGitHubAreFound(t *testing.T) {
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

// app.yml is what people read, and what the release carries.
func TestTheManifestIsThatOfAppYML(t *testing.T) {
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
	if diff := cmp.Diff(file, made); diff != "" {
		t.Errorf("the manifest (-app.yml +made):\n%s", diff)
	}
}

func TestSecretsOfAnyFormAreWrittenSoThatTheyAreRead(t *testing.T) {
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
			c, err := config.Parse("pawl.yml", []byte(text), environment(&unset))
			if err != nil || c.GitHub.App.WebhookSecret.Reveal() != secret || c.HTTP.PublicURL != "https://pages.example.com/pawl" || c.GitHub.App.ClientSecret.Reveal() != secret || c.Backends[0].Kind != backend {
				t.Errorf("%s: %q is read as %q, %v", backend, secret, c.GitHub.App.WebhookSecret.Reveal(), err)
			}
		}
	}
}
