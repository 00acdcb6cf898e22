package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADevcontainerGivesWhatTheRepositoryLeavesOut(t *testing.T) {
	file := `// For everybody's editor.
{
	"image": "node:22", /* of the hub */
	"onCreateCommand": ["npm", "ci", "it's // no comment"],
	"updateContentCommand": {"b": "make b", "a": ["make", "a, ]"],},
}`
	got, problems := Environment{}.WithDevcontainer([]byte(file))
	want := Environment{Image: "node:22", Setup: []string{`npm ci 'it'\''s // no comment'`, `make 'a, ]'`, "make b"}}
	if d := cmp.Diff(want, got); d != "" || len(problems) > 0 {
		t.Error(d, problems)
	}
	own := Environment{Image: "mine", Setup: []string{"make"}}
	if got, problems := own.WithDevcontainer([]byte(file)); cmp.Diff(own, got) != "" || len(problems) > 0 {
		t.Errorf("%+v %v, want the repository's own", got, problems)
	}
	for text, says := range map[string]string{
		`{"image": `:                             "cannot be read",
		`{"onCreateCommand": 3}`:                 "neither a command line",
		`{"onCreateCommand": {"a": {"b": "c"}}}`: "a group inside a group",
		`{"updateContentCommand": ""}`:           "is empty",
	} {
		if _, problems := (Environment{}).WithDevcontainer([]byte(text)); len(problems) == 0 || problems[0].File != DevcontainerFile || !strings.Contains(problems[0].Message, says) {
			t.Errorf("%s: %v, want %q", text, problems, says)
		}
	}
}

func TestSecretsOfSetupAreForTheRepositoriesThatAreNamed(t *testing.T) {
	s := Setup{Secrets: []SetupSecrets{{Env: []string{"A"}, Repositories: []string{"acme/*"}}, {Env: []string{"B"}, Repositories: []string{"Other/one"}}}}
	for repo, want := range map[string]string{"Acme/Widgets": "A", "acmeevil/x": "", "other/one": "B", "other/two": ""} {
		if got := strings.Join(s.Names(repo), " "); got != want {
			t.Errorf("%s gets %q, want %q", repo, got, want)
		}
	}
}

func TestWithoutASandboxNoFolderIsKeptOutsideOfHomeAndTheWorkTree(t *testing.T) {
	r, problems := ParseRepo(RepoFile, []byte("environment:\n  paths: [build, /opt/sdk]\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c := server("codex")
	if _, problems := c.Narrow(r); len(problems) > 0 {
		t.Error(problems)
	}
	c.Sandbox.Mode = SandboxNone
	if _, problems := c.Narrow(r); len(problems) != 1 || problems[0].Key != "environment.paths[1]" || problems[0].Line != 2 {
		t.Errorf("%+v, want one at the second path", problems)
	}
}
