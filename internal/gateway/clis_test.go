package gateway

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/policy"
)

// cli is a real agent: its command line, environment and files of its home.
type cli struct {
	protocol string
	argv     []string
	env      []string
	files    map[string]string
}

// clisFor points the agents at a gateway.
func clisFor(url, token string) map[string]cli {
	const prompt = "Create hello.txt with a short greeting."
	return map[string]cli{
		"codex": {OpenAI, []string{"codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", prompt}, []string{"PAWL_KEY=" + token},
			map[string]string{".codex/config.toml": "model = \"gpt-5.5\"\nmodel_provider = \"pawl\"\n[model_providers.pawl]\nname = \"pawl\"\nbase_url = \"" + url + "/v1\"\nwire_api = \"responses\"\nenv_key = \"PAWL_KEY\"\n"}},
		"claude": {Anthropic, []string{"claude", "-p", prompt, "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"},
			[]string{"IS_SANDBOX=1", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=" + token, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}, nil},
		"opencode": {OpenAI, []string{"opencode", "run", "--format", "json", prompt},
			[]string{"OPENCODE_CONFIG=%HOME%/opencode.json", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
			map[string]string{"opencode.json": fmt.Sprintf(`{"model": "pawl/mock-model", "small_model": "pawl/mock-model", "autoupdate": false, "permission": {"*": "allow"},
"provider": {"pawl": {"npm": "@ai-sdk/openai-compatible", "name": "pawl", "options": {"baseURL": %q, "apiKey": %q},
"models": {"mock-model": {"name": "mock", "reasoning": true, "tool_call": true, "limit": {"context": 128000, "output": 8000}}}}}}`, url+"/v1", token)}},
		"gemini": {Gemini, []string{"gemini", "-m", "gemini-2.5-flash", "-p", prompt, "--output-format", "stream-json", "--yolo"},
			[]string{"GEMINI_API_KEY=" + token, "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_CLI_TRUST_WORKSPACE=true"},
			map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false}, "general": {"disableAutoUpdate": true}, "privacy": {"usageStatisticsEnabled": false}}`}},
	}
}

// runCLI runs an agent in a repository of its own and gives what it printed, its
// exit code and the repository.
func runCLI(t *testing.T, name string, s *stand) (printed string, code int, tree string) {
	t.Helper()
	bin, err := filepath.Abs("../../testdata/clis/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	home, tree := t.TempDir(), t.TempDir()
	agent := clisFor(s.url, s.Token())[name]
	for path, text := range agent.files {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", tree).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, agent.argv[0]), agent.argv[1:]...)
	var out strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = tree, &out, &out, 5*time.Second
	cmd.Env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "TERM=dumb"}
	for _, e := range agent.env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(e, "%HOME%", home))
	}
	began := time.Now()
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Error("the agent did not end by itself")
	}
	t.Logf("%s: exit code %d after %s", name, cmd.ProcessState.ExitCode(), time.Since(began).Round(100*time.Millisecond))
	return out.String(), cmd.ProcessState.ExitCode(), tree
}

// TestRealAgentsLeaveWhenTheGatewayRefuses has the installed CLIs meet each refusal
// of the gateway, after which they must leave instead of trying again. What they do
// where it refuses nothing is tested in cmd/pawl.
func TestRealAgentsLeaveWhenTheGatewayRefuses(t *testing.T) {
	p, err := fakeprovider.Start(fakeprovider.Options{Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	closed := func(l policy.Limit) func(*Grant) {
		return func(g *Grant) { g.Limited = func(context.Context) (policy.Limit, bool) { return l, true } }
	}
	const mostRefused = 4 // calls that are made in vain
	cases := map[string]func(*Grant){
		"budget":        func(g *Grant) { g.MaxTokens = 1 },
		"limit":         closed(policy.Limit{Kind: policy.UsageLimit, Message: "the plan is used up", ResetsAt: testNow().Add(time.Hour)}),
		"unknown reset": closed(policy.Limit{Kind: policy.UsageLimit, Message: "the plan is used up"}),
	}
	if testing.Short() {
		t.Skip("needs the agent CLIs, which make check does without")
	}
	for _, name := range []string{"codex", "claude", "opencode", "gemini"} {
		if _, err := os.Stat("../../testdata/clis/node_modules/.bin/" + name); err != nil {
			t.Run(name, func(t *testing.T) { t.Skipf("%s is not installed; .ci/setup installs it", name) })
			continue
		}
		for what, grant := range cases {
			if what == "unknown reset" && name != "claude" {
				continue // the others are told the same as for the budget
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				base := p.URL("edit-success~" + name + strings.ReplaceAll(what, " ", "-"))
				s := open(t, clisFor("", "")[name].protocol, base, grant)
				printed, code, tree := runCLI(t, name, s)
				u := s.settled()
				t.Logf("%+v", u)
				_, err := os.Stat(filepath.Join(tree, "hello.txt"))
				edited := err == nil
				if u.Refused > mostRefused || strings.Contains(printed, testKey) {
					t.Errorf("exit code %d, %+v\n%s", code, u, printed)
				}
				stopped := !edited && u.Requests == 0 && u.Refused > 0
				if what == "budget" { // its first call is answered
					stopped = u.BudgetStopped != ""
				}
				if !stopped {
					t.Errorf("the file is there: %t, %+v", edited, u)
				}
			})
		}
	}
}
