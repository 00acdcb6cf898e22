package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDevcontainerFillsMissingKeys(t *testing.T) {
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
	for text, want := range map[string]string{
		`{"image": `:                             "cannot be read",
		`{"onCreateCommand": 3}`:                 "neither a command line",
		`{"onCreateCommand": {"a": {"b": "c"}}}`: "a group inside a group",
		`{"updateContentCommand": ""}`:           "is empty",
	} {
		if _, problems := (Environment{}).WithDevcontainer([]byte(text)); len(problems) == 0 || problems[0].File != DevcontainerFile || !strings.Contains(problems[0].Message, want) {
			t.Errorf("%s: %v, want %q", text, problems, want)
		}
	}
}

func TestSetupSecretsReachOnlyListedRepositories(t *testing.T) {
	s := Setup{Secrets: []SetupSecrets{{Env: []string{"A"}, Repositories: []string{"acme/*"}}, {Env: []string{"B"}, Repositories: []string{"Other/one"}}}}
	for repo, want := range map[string]string{"Acme/Widgets": "A", "acmeevil/x": "", "other/one": "B", "other/two": ""} {
		if got := strings.Join(s.Names(repo), " "); got != want {
			t.Errorf("%s gets %q, want %q", repo, got, want)
		}
	}
}

func TestAbsolutePathsNeedTheSandbox(t *testing.T) {
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
		t.Errorf("problems %+v, want one at the second path", problems)
	}
}

func TestImagesNeedAListedRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		registries []string
		mode       string
		image      string
		want       string
	}{
		"no registry is listed":      {nil, SandboxAuto, "node:22", `ask the operator to add "docker.io" to images.registries`},
		"another registry is listed": {[]string{"ghcr.io"}, SandboxAuto, "registry.example.com:5000/a/b", `add "registry.example.com:5000" to`},
		"another port":               {[]string{"localhost:5000"}, SandboxAuto, "localhost:5001/a", `add "localhost:5001" to`},
		"without a sandbox":          {[]string{"docker.io"}, SandboxNone, "node:22", "ask the operator to set sandbox.mode to auto"},
		"in a pod":                   {[]string{"docker.io"}, SandboxPod, "node:22", "ask the operator to set sandbox.mode to auto"},
		"no image name":              {[]string{"docker.io"}, SandboxAuto, "Node 22", "is not an image name"},
		"a short name":               {[]string{"docker.io"}, SandboxAuto, "node:22", ""},
		"a long name":                {[]string{"index.docker.io"}, SandboxAuto, "docker.io/library/node", ""},
		"one of several registries":  {[]string{"ghcr.io", "localhost:5000"}, SandboxAuto, "localhost:5000/a:1", ""},
		"no image":                   {nil, SandboxNone, `""`, ""},
	} {
		r, problems := ParseRepo(RepoFile, []byte("environment:\n  timeout: 1m\n  image: "+c.image+"\n"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		s := server("codex")
		s.Images.Registries, s.Sandbox.Mode = c.registries, c.mode
		_, problems = s.Narrow(r)
		if c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) != 1 || problems[0].Line != 3 || !strings.Contains(problems[0].String(), c.want)) {
			t.Errorf("%s: %v, want %q", name, problems, c.want)
		}
	}
}
