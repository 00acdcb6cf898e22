package config

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

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
		WatchPulls:     WatchCommanded,
		WatchRounds:    5,
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

func TestTheServerLimitsTheRoundsOfAWatch(t *testing.T) {
	for _, c := range []struct {
		server int
		file   string
		rounds int
		want   string
	}{
		{5, "", 5, ""},
		{3, "", 3, ""},
		{9, "", 5, ""},
		{9, "watch: {rounds: 8}", 8, ""},
		{5, "watch: {rounds: 2, pulls: own}", 2, ""},
		{5, "watch: {rounds: 6}", 5, "watch.rounds: 6 is above the server's 5"},
		{5, "watch: {rounds: 0}", 5, "watch.rounds: 0 is below 1"},
		{5, "watch: {pulls: all}", 5, `watch.pulls: "all" is not known`},
	} {
		s := server("codex")
		s.Policy.Unattended.MaxAttempts = c.server
		r, problems := ParseRepo(RepoFile, []byte(c.file))
		e, more := s.Narrow(r)
		got := Problems(append(problems, more...)).Error()
		clean := c.want != "" || got == ""
		if result := fmt.Sprint(e.WatchRounds, strings.Contains(got, c.want), clean); result != fmt.Sprint(c.rounds, true, true) {
			t.Errorf("%q on a server with %d: %d rounds, %q; want %d, %q", c.file, c.server, e.WatchRounds, got, c.rounds, c.want)
		}
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

// narrowing states how one key of a repository narrows the server.
type narrowing struct {
	values []any // values that a repository may write, including the widest
	// wider reports whether the effective configuration exceeds the server's or the repository's. Nil: the key does not
	// affect the server's policy, backends and network.
	wider func(c Server, r Repo, e Effective) bool
}

// hosts checks that a list of hosts is a subset of the server's.
func hosts(of func(Network) []policy.HostRule) narrowing {
	return narrowing{
		values: []any{[]string{}, []string{"deb.debian.org:443"}, []string{"*.example.com:443", "deb.debian.org:443"}},
		wider: func(c Server, _ Repo, e Effective) bool {
			return slices.ContainsFunc(of(e.Network), func(rule policy.HostRule) bool { return !rule.In(of(c.Network)) })
		},
	}
}

// narrowings covers each key of a repository.
var narrowings = map[string]narrowing{
	"environment.setup":        {values: []any{[]string{"make"}}},
	"environment.devcontainer": {values: []any{true}},
	"environment.image":        {values: []any{"docker.io/library/node:22"}}, // TestImagesNeedAListedRegistry
	"environment.paths":        {values: []any{[]string{"build/cache"}, []string{"/opt/sdk"}}},
	"environment.env":          {values: []any{map[string]string{"CGO_ENABLED": "0"}}},
	"environment.timeout":      {values: []any{"2h"}},
	"environment.runs_on":      {values: []any{[]any{"gpu"}}},
	"network.setup":            hosts(func(n Network) []policy.HostRule { return n.Setup }),
	"network.agent":            hosts(func(n Network) []policy.HostRule { return n.Agent }),
	"network.verify":           hosts(func(n Network) []policy.HostRule { return n.Verify }),
	"verify":                   {values: []any{[]string{"make test"}}},
	"reports":                  {values: []any{[]string{"**/*.xml"}}},
	"triggers": {
		values: []any{[]string{"command"}, []string{"label", "review"}, Triggers()},
		wider: func(_ Server, r Repo, e Effective) bool {
			return len(r.Triggers) > 0 && !slices.Equal(r.Triggers, e.Triggers)
		},
	},
	"backends": {
		values: []any{[]string{"codex"}, []string{"Claude", "codex"}, []string{"gemini"}},
		wider: func(c Server, _ Repo, e Effective) bool {
			return slices.ContainsFunc(e.Backends, func(b Backend) bool {
				return !slices.ContainsFunc(c.Backends, func(of Backend) bool { return of.Name == b.Name })
			})
		},
	},
	"auto_continue_on_limit_reset": {
		values: []any{false, true},
		wider: func(c Server, r Repo, e Effective) bool {
			refused := r.AutoContinue != nil && !*r.AutoContinue
			allowed := c.Policy.UsageLimit.AutoContinue && !refused
			return e.Policy.UsageLimit.AutoContinue && !allowed
		},
	},
	"protected_paths": {
		values: []any{[]string{"deploy"}, []string{"**/*.sql", "a/b"}},
		wider: func(_ Server, r Repo, e Effective) bool {
			return slices.ContainsFunc(r.ProtectedPaths, func(p string) bool { return !slices.Contains(e.ProtectedPaths, p) })
		},
	},
	"allow_paths":   {values: []any{[]string{".github/pawl.yml", "docs/**"}}}, // TestARepositoryAllowsWhatIsProtectedByDefault
	"allow_secrets": {values: []any{[]string{"0123456789abcdef"}}},
	"restarts.max": {
		values: []any{0, 10, 50, 100},
		wider: func(c Server, r Repo, e Effective) bool {
			most := c.Policy.Restarts.Max
			if r.Restarts.Max != nil {
				most = min(most, *r.Restarts.Max)
			}
			return e.Policy.Restarts.Max > most
		},
	},
	"checks.severity":                  {values: []any{ChecksAlways, ChecksNever}},
	"checks.stagnation":                {values: []any{ChecksAlways, ChecksNever}},
	"pull_request.ready_when_verified": {values: []any{true, false}},
	"pull_request.request_review":      {values: []any{true, false}},
	"watch.pulls":                      {values: []any{WatchCommanded, WatchLabelled, WatchOwn}},
	"watch.rounds": {
		values: []any{1, 5, 50},
		wider: func(c Server, _ Repo, e Effective) bool {
			return e.WatchRounds > c.Policy.Unattended.MaxAttempts
		},
	},
}

func TestEveryRepositoryKeyHasANarrowing(t *testing.T) {
	keys := leaves(reflect.TypeFor[Repo](), "")
	for _, key := range keys {
		if len(narrowings[key].values) == 0 {
			t.Errorf("%s is missing from narrowings", key)
		}
	}
	for key := range narrowings {
		if !slices.Contains(keys, key) {
			t.Errorf("%s is not a key of a repository", key)
		}
	}
}

// repository reads a file that sets some keys.
func repository(t *rapid.T, keys []string) Repo {
	file := map[string]any{}
	for _, key := range keys {
		group := file
		parts := strings.Split(key, ".")
		for _, part := range parts[:len(parts)-1] {
			if group[part] == nil {
				group[part] = map[string]any{}
			}
			group = group[part].(map[string]any)
		}
		group[parts[len(parts)-1]] = rapid.SampledFrom(narrowings[key].values).Draw(t, key)
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	r, problems := ParseRepo(RepoFile, text)
	if len(problems) > 0 {
		t.Fatalf("%s%v", text, Problems(problems))
	}
	return r
}

// drawServer returns a server whose policy a repository may try to widen.
func drawServer(t *rapid.T) Server {
	c := server("codex", "claude")
	c.Policy.Restarts.Max = rapid.IntRange(0, 60).Draw(t, "server max")
	c.Policy.UsageLimit.AutoContinue = rapid.Bool().Draw(t, "server auto")
	c.Policy.Unattended.MaxAttempts = rapid.IntRange(0, 8).Draw(t, "server rounds")
	debian := []policy.HostRule{{Name: "deb.debian.org", Port: "443"}}
	c.Network.Setup, c.Network.Verify = debian, debian
	return c
}

func TestARepositoryNeverWidensTheServer(t *testing.T) {
	keys := slices.Sorted(maps.Keys(narrowings))
	rapid.Check(t, func(t *rapid.T) {
		c := drawServer(t)
		r := repository(t, rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID[string]).Draw(t, "keys"))
		e, problems := c.Narrow(r)
		for key, n := range narrowings {
			if n.wider != nil && n.wider(c, r, e) {
				t.Errorf("%s widens the server: %+v", key, e)
			}
		}
		if len(e.Backends) > len(c.Backends) || (len(e.Backends) == 0 && len(problems) == 0) {
			t.Errorf("backends are %v", e.Backends)
		}
		for _, path := range []string{".github/workflows/ci.yml", ".GitHub/Workflows", ".github/pawl.yml"} {
			if !e.Protects(path) {
				t.Errorf("%s is not protected", path)
			}
		}
		more := r.Restarts.Max != nil && *r.Restarts.Max > c.Policy.Restarts.Max
		on := r.AutoContinue != nil && *r.AutoContinue && !c.Policy.UsageLimit.AutoContinue
		rounds := r.Watch.Rounds != nil && *r.Watch.Rounds > c.Policy.Unattended.MaxAttempts
		wider := slices.Contains([]bool{more, on, rounds}, true)
		if wider && len(problems) == 0 {
			t.Error("widening was not reported")
		}
		// Everything that wider does not check is unchanged.
		e.Policy.Restarts.Max, e.Policy.UsageLimit.AutoContinue = c.Policy.Restarts.Max, c.Policy.UsageLimit.AutoContinue
		if diff := cmp.Diff(c.Policy, e.Policy); diff != "" {
			t.Errorf("the policy changed (-server +repository):\n%s", diff)
		}
		e.Network.Setup, e.Network.Agent, e.Network.Verify = c.Network.Setup, c.Network.Agent, c.Network.Verify
		if diff := cmp.Diff(c.Network, e.Network, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("the network changed (-server +repository):\n%s", diff)
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
