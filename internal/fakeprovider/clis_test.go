package fakeprovider_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakeprovider"
)

// serveTests in the environment turns the test binary into an MCP server with
// one tool, run_tests, that passes once hello.txt is in the work tree.
const serveTests = "FAKEPROVIDER_TEST_TOOL"

func TestMain(m *testing.M) {
	if tree := os.Getenv(serveTests); tree != "" {
		toolServer(tree, os.Stdin, os.Stdout)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func toolServer(tree string, in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version string `json:"protocolVersion"`
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil || request.ID == nil {
			continue
		}
		var result any = map[string]any{}
		switch request.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": request.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "tests", "version": "1"}}
		case "tools/list":
			result = map[string]any{"tools": []any{map[string]any{"name": "run_tests", "description": "Runs the tests.",
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{}}, "annotations": map[string]any{"readOnlyHint": true}}}}
		case "tools/call":
			text := "1 passed, 1 failed: TestHello"
			if _, err := os.Stat(filepath.Join(tree, "hello.txt")); err == nil {
				text = "2 passed, 0 failed"
			}
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
		}
		encoded, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result})
		fmt.Fprintf(out, "%s\n", encoded)
	}
}

// ran is what is left of a run of a real CLI.
type ran struct {
	out, err string
	code     int
	tree     string
}

// agents are the real CLIs, each as arguments, environment and files of its
// home for a base URL. %TREE% is the work tree.
func agents(url, self string) map[string]struct {
	args  []string
	env   []string
	files map[string]string
} {
	type agent = struct {
		args  []string
		env   []string
		files map[string]string
	}
	const prompt = "Create hello.txt with a short greeting."
	server := fmt.Sprintf(`{"command": %q, "args": [], "env": {%q: "%%TREE%%"}, "trust": true}`, self, serveTests)
	codex := func(model string) agent {
		return agent{
			args: []string{"codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", prompt},
			env:  []string{"MOCK_KEY=sk-mock"},
			files: map[string]string{".codex/config.toml": fmt.Sprintf(`model = %q
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = %q
wire_api = "responses"
env_key = "MOCK_KEY"
[mcp_servers.ci]
command = %q
env = { %s = "%%TREE%%" }
`, model, url+"/v1", self, serveTests)},
		}
	}
	return map[string]agent{
		"codex":              codex("gpt-5.5"),
		"codex in code mode": codex("gpt-6-sol"),
		"codex, new model":   codex("made-up"),
		"claude": {
			args: []string{"claude", "-p", prompt, "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions",
				"--mcp-config", `{"mcpServers": {"ci": ` + server + `}}`, "--strict-mcp-config"},
			env: []string{"IS_SANDBOX=1", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sk-mock", "CLAUDE_CODE_MAX_RETRIES=1",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"},
		},
		"opencode": {
			args: []string{"opencode", "run", "--format", "json", prompt},
			env: []string{"OPENCODE_CONFIG=%HOME%/opencode.json", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1",
				"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
			files: map[string]string{"opencode.json": fmt.Sprintf(`{"model": "mock/mock-model", "small_model": "mock/mock-model", "autoupdate": false,
"permission": {"*": "allow"},
"provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": %q, "apiKey": "sk-mock"},
  "models": {"mock-model": {"name": "mock", "reasoning": true, "tool_call": true, "limit": {"context": 128000, "output": 8000}}}}},
"mcp": {"ci": {"type": "local", "command": [%q], "environment": {%q: "%%TREE%%"}, "enabled": true}}}`, url+"/v1", self, serveTests)},
		},
		"gemini": {
			args: []string{"gemini", "-m", "gemini-2.5-pro", "-p", prompt, "--output-format", "stream-json", "--yolo"},
			env:  []string{"GEMINI_API_KEY=sk-mock", "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_CLI_TRUST_WORKSPACE=true"},
			files: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false},
"general": {"disableAutoUpdate": true}, "privacy": {"usageStatisticsEnabled": false}, "mcpServers": {"ci": ` + server + `}}`},
		},
	}
}

// runAgent runs a real CLI against a base URL, in a repository of its own.
func runAgent(t *testing.T, name, url string) ran {
	t.Helper()
	bin, err := filepath.Abs("../../testdata/clis/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := agents(url, self)[name]
	if testing.Short() {
		t.Skip("needs the agent CLIs, which make check does without")
	}
	if _, err := os.Stat(filepath.Join(bin, agent.args[0])); err != nil {
		t.Skipf("%s is not installed; .ci/setup installs it", agent.args[0])
	}
	home, tree := t.TempDir(), t.TempDir()
	fill := strings.NewReplacer("%TREE%", tree, "%HOME%", home)
	for path, text := range agent.files {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(fill.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", tree).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var out, errs strings.Builder
	argv := make([]string, len(agent.args))
	for i, a := range agent.args {
		argv[i] = fill.Replace(a)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, argv[0]), argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = tree, &out, &errs, 5*time.Second
	cmd.Env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "TERM=dumb"}
	for _, e := range agent.env {
		cmd.Env = append(cmd.Env, fill.Replace(e))
	}
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return ran{out: out.String(), err: errs.String(), code: cmd.ProcessState.ExitCode(), tree: tree}
}

func start(t *testing.T, o fakeprovider.Options) *fakeprovider.Server {
	t.Helper()
	s, err := fakeprovider.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestRealAgentsEditAndRunTests has each real CLI write a file and edit it by
// its own tools, and call a tool of an MCP server under the name that it gives
// it.
func TestRealAgentsEditAndRunTests(t *testing.T) {
	s := start(t, fakeprovider.Options{Key: "sk-mock"})
	s.Set("edits", "3")
	for _, name := range []string{"codex", "codex in code mode", "codex, new model", "claude", "opencode", "gemini"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for scenario, want := range map[string]struct{ file, text, said string }{
				"edit-loop": {"counter.txt", "counter: 2\n", "Done. I edited counter.txt 3 times."},
				"mcp":       {"hello.txt", "hello from the mock model\n", "The test run tool answered that tests fail"},
			} {
				r := runAgent(t, name, s.URL(scenario))
				text, err := os.ReadFile(filepath.Join(r.tree, want.file))
				// Gemini prints the text in the pieces that it came in.
				said := strings.Contains(r.out, want.said) || strings.Contains(r.out, want.said[:20])
				if err != nil || string(text) != want.text || r.code != 0 || !said {
					t.Errorf("%s: exit code %d, %s is %q (%v)\n%s\n%s", scenario, r.code, want.file, text, err, r.out, r.err)
				}
			}
		})
	}
}
