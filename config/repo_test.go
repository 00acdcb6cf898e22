package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

func server(names ...string) Server {
	c := Default()
	for _, name := range names {
		c.Backends = append(c.Backends, Backend{Name: name})
	}
	return c
}

func TestRepositoryExampleNarrowsTheServer(t *testing.T) {
	data, err := os.ReadFile("repo-example.yml")
	if err != nil {
		t.Fatal(err)
	}
	r, problems := ParseRepo(RepoFile, data)
	if len(problems) > 0 {
		t.Fatal(Problems(problems))
	}
	got, problems := server("claude", "codex").Narrow(r)
	if len(problems) > 0 {
		t.Fatal(Problems(problems))
	}
	want := Effective{
		Policy:         Default().Policy,
		Backends:       []Backend{{Name: "codex"}},
		Environment:    Environment{Setup: []string{"go mod download"}, Paths: []string{"build/cache"}, Env: map[string]string{"CGO_ENABLED": "0"}, Timeout: DefaultSetupTime},
		Verify:         []string{"go vet ./...", "go test ./..."},
		Reports:        []string{"build/test-results/**/*.xml"},
		Triggers:       []string{"command", "label", "review", "check_run"},
		ProtectedPaths: []string{".github/pawl.yml", "deploy", "**/*.sql"},
	}
	want.Policy.Restarts.Max = 10
	want.Network = Default().Network
	want.Network.Agent = []policy.HostRule{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("effective configuration (-want +got):\n%s", diff)
	}
}

func TestARepositoryWithoutAFileGetsTheServersConfiguration(t *testing.T) {
	got, problems := server("codex").Narrow(Repo{})
	if len(problems) > 0 {
		t.Fatal(Problems(problems))
	}
	if diff := cmp.Diff(Default().Policy, got.Policy); diff != "" || len(got.Backends) != 1 || len(got.Triggers) != len(Triggers()) {
		t.Errorf("got %+v", got)
	}
	empty, problems := ParseRepo(RepoFile, nil)
	if len(problems) > 0 {
		t.Fatal(Problems(problems))
	}
	again, _ := server("codex").Narrow(empty)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("an empty file differs from none:\n%s", diff)
	}
}

func TestVerifyCommandsKeepTheirShellVariables(t *testing.T) {
	r, problems := ParseRepo(RepoFile, []byte(`verify: ["test -n \"${HOME}\" && echo $${x}"]`))
	if len(problems) > 0 {
		t.Fatal(Problems(problems))
	}
	if want := `test -n "${HOME}" && echo $${x}`; r.Verify[0] != want {
		t.Errorf("command is %q, want %q", r.Verify[0], want)
	}
}

func TestARepositoryNeverWidensTheServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := server("codex", "claude")
		c.Policy.Restarts.Max = rapid.IntRange(0, 60).Draw(t, "server max")
		c.Policy.UsageLimit.AutoContinue = rapid.Bool().Draw(t, "server auto")
		most, auto := rapid.IntRange(0, 100).Draw(t, "max"), rapid.Bool().Draw(t, "auto")
		r := Repo{
			Backends:       rapid.SliceOf(rapid.SampledFrom([]string{"codex", "Claude", "gemini"})).Draw(t, "backends"),
			Triggers:       rapid.SliceOf(rapid.SampledFrom(Triggers())).Draw(t, "triggers"),
			ProtectedPaths: rapid.SliceOf(rapid.StringMatching(`[a-z*]{1,8}(/[a-z*]{1,8})?`)).Draw(t, "paths"),
			AutoContinue:   &auto,
			Restarts:       RepoRestarts{Max: &most},
		}
		e, problems := c.Narrow(r)
		if e.Policy.Restarts.Max > c.Policy.Restarts.Max || e.Policy.Restarts.Max > most {
			t.Errorf("restarts.max is %d", e.Policy.Restarts.Max)
		}
		if e.Policy.UsageLimit.AutoContinue && !(auto && c.Policy.UsageLimit.AutoContinue) {
			t.Error("auto-continue was widened")
		}
		if len(e.Backends) > len(c.Backends) || (len(e.Backends) == 0 && len(problems) == 0) {
			t.Errorf("backends are %v", e.Backends)
		}
		for _, path := range []string{".github/workflows/ci.yml", ".GitHub/Workflows", ".github/pawl.yml"} {
			if !e.Protects(path) {
				t.Errorf("%s is not protected", path)
			}
		}
		wider := most > c.Policy.Restarts.Max || auto && !c.Policy.UsageLimit.AutoContinue
		if wider && len(problems) == 0 {
			t.Error("widening was not reported")
		}
	})
}

func TestProtectedPathsMatchFromTheRoot(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"go.mod", "go.mod", true},
		{"go.mod", "sub/go.mod", false},
		{"deploy", "deploy/prod/x.yml", true},
		{"deploy/", "deploy/x", true},
		{"deploy", "deployment", false},
		{"*.sql", "a.sql", true},
		{"*.sql", "db/a.sql", false},
		{"**/*.sql", "a.sql", true},
		{"**/*.sql", "db/x/a.sql", true},
		{"a/**/b/**/c", "a/x/b/y/b/z/c", true},
		{"a/**/b/**/c", "a/x/b/y/d", false},
		{"a/**", "a", true},
		{"a/b", "a", false},
		{"DOCS/**", "docs/README.md", true},
		{"a[bc]", "ac", true},
		{"docs", "./docs/x", true},
	} {
		e := Effective{ProtectedPaths: []string{test.pattern}}
		if got := e.Protects(test.path); got != test.want {
			t.Errorf("pattern %q, path %q: protected %v, want %v", test.pattern, test.path, got, test.want)
		}
	}
}

func TestARepositoryAllowsWhatIsProtectedByDefault(t *testing.T) {
	r, problems := ParseRepo(RepoFile, []byte("allow_paths: [.github/workflows, \"**/.npmrc\", .github/pawl.yml, deploy]\nprotected_paths: [deploy]\n"))
	if len(problems) > 0 {
		t.Fatal(Problems(problems))
	}
	closed, _ := server("codex").Narrow(Repo{})
	open, _ := server("codex").Narrow(r)
	for path, want := range map[string][2]bool{
		".github/workflows/ci.yml": {true, false}, ".GitHub/Workflows/ci.yml": {true, false}, "web/.npmrc": {true, false},
		".github/pawl.yml": {true, true}, "deploy/x": {false, true}, "main.go": {false, false}, ".github/CODEOWNERS": {true, true},
		"sub/.claude/settings.json": {true, true}, ".codex/config.toml": {true, true}, ".husky/pre-commit": {true, true}, ".gitmodules": {true, true},
		"sub/.gitattributes": {true, true}, ".github/actions/x/action.yml": {true, true}, ".vscode/tasks.json": {true, true}, ".vscode/settings.json": {false, false},
		".lfsconfig": {true, true}, ".devcontainer/devcontainer.json": {true, true}, "docs/npmrc.md": {false, false},
	} {
		if got := [2]bool{closed.Protects(path), open.Protects(path)}; got != want {
			t.Errorf("%s: protected %v without the file and with it, want %v", path, got, want)
		}
	}
}

func TestAHostilePatternIsMatchedInReasonableTime(t *testing.T) {
	e := Effective{ProtectedPaths: []string{strings.Repeat("**/a*a*a*/", 40) + "x"}}
	path := strings.Repeat("aaaaaaaaaa/", 300) + "y"
	done := make(chan bool)
	go func() { done <- e.Protects(path) }()
	select {
	case ok := <-done:
		if ok {
			t.Error("the pattern must not match")
		}
	case <-time.After(30 * time.Second):
		t.Error("matching takes exponential time")
	}
}
