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
	"github.com/pawlbot/pawl/internal/needs"
)

// serveTests is an environment variable that turns the test binary into an MCP server with one tool, run_tests. The tests
// pass if hello.txt is in the work tree.
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

// ran is the result of a Codex run.
type ran struct {
	out, err string
	code     int
	tree     string
}

// runCodex runs the real CLI with a model against a base URL in a new repository.
func runCodex(t *testing.T, model, url string) ran {
	t.Helper()
	needs.All(t, "the agent CLIs")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	bin, err := filepath.Abs("../../testdata/clis/node_modules/.bin")
	must(err)
	if _, err := os.Stat(filepath.Join(bin, "codex")); err != nil {
		t.Skip("codex is not installed; .ci/setup installs it")
	}
	self, err := os.Executable()
	must(err)
	home, tree := t.TempDir(), t.TempDir()
	must(os.Mkdir(filepath.Join(home, ".codex"), 0o700))
	must(os.WriteFile(filepath.Join(home, ".codex", "config.toml"), fmt.Appendf(nil, `model = %q
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = %q
wire_api = "responses"
env_key = "MOCK_KEY"
[mcp_servers.ci]
command = %q
env = { %s = %q }
`, model, url+"/v1", self, serveTests, tree), 0o600))
	if out, err := exec.Command("git", "init", "-q", tree).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "codex"), "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "Create hello.txt with a short greeting.")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = tree, &out, &errs, 5*time.Second
	cmd.Env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "TERM=dumb", "MOCK_KEY=sk-mock"}
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

// Codex writes and edits a file with its own tools and calls an MCP tool. Its set of tools depends on the model. The other
// CLIs have one set each, which TestRealAgents in cmd/pawl covers.
func TestCodexEditsAndRunsTests(t *testing.T) {
	s := start(t, fakeprovider.Options{Key: "sk-mock"})
	s.Set("edits", "3")
	for name, model := range map[string]string{"a known model": "gpt-5.5", "code mode": "gpt-6-sol", "a new model": "made-up"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for scenario, want := range map[string]struct{ file, text, message string }{
				"edit-loop": {"counter.txt", "counter: 2\n", "Done. I edited counter.txt 3 times."},
				"mcp":       {"hello.txt", "hello from the mock model\n", "The test run tool answered that tests fail"},
			} {
				r := runCodex(t, model, s.URL(scenario))
				text, err := os.ReadFile(filepath.Join(r.tree, want.file))
				if err != nil || string(text) != want.text {
					t.Errorf("%s: %s is %q (%v)", scenario, want.file, text, err)
				}
				if r.code != 0 || !strings.Contains(r.out, want.message) {
					t.Errorf("%s: exit code %d, want 0 and %q\n%s\n%s", scenario, r.code, want.message, r.out, r.err)
				}
			}
		})
	}
}
