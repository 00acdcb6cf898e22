package clis_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/agent/clis"
)

// throughAProxy returns a request with an endpoint. The operator's keys in its environment must not reach the CLI.
func throughAProxy(protocol, model string) agent.Request {
	return agent.Request{
		Prompt: "Fix it.", Dir: "/work/repo", Home: "/h", Model: model, Effort: "high",
		Env: map[string]string{"PATH": "/usr/bin", "OPENAI_API_KEY": "own-key", "ANTHROPIC_API_KEY": "own-key",
			"CLAUDE_CODE_OAUTH_TOKEN": "own-key", "GEMINI_API_KEY": "own-key", "GOOGLE_API_KEY": "own-key"},
		Endpoint: agent.Endpoint{Protocol: protocol, URL: "http://127.0.0.1:9", Token: "the-token"},
		TestTool: []string{"/bin/pawl", "mcp", `--say="x"`},
	}
}

// everyCLI has each adapter and a request that it accepts.
var everyCLI = map[string]func() (agent.Adapter, agent.Request){
	"codex": func() (agent.Adapter, agent.Request) {
		return cli("codex"), throughAProxy(config.OpenAI, "gpt-5")
	},
	"claude": func() (agent.Adapter, agent.Request) {
		return cli("claude"), throughAProxy(config.Anthropic, "claude-sonnet-4-5")
	},
	"gemini": func() (agent.Adapter, agent.Request) {
		return cli("gemini"), throughAProxy(config.Google, "gemini-2.5-pro")
	},
	"opencode": func() (agent.Adapter, agent.Request) {
		return cli("opencode"), throughAProxy(config.OpenAI, "vendor/m")
	},
	"qwen": func() (agent.Adapter, agent.Request) {
		return cli("qwen"), throughAProxy(config.OpenAI, "qwen3-coder-plus")
	},
}

// Each CLI of config's table needs a complete adapter, and a request in everyCLI.
func TestEveryConfiguredCLIIsTested(t *testing.T) {
	agenttest.EveryCLI(t, everyCLI)
	for _, kind := range config.CLIs() {
		if config.CLIOf(kind).Withheld == nil {
			t.Errorf("config/clis.go: the row of %s lacks Withheld", kind)
		}
		a, err := clis.For(kind, "")
		if err != nil {
			t.Fatalf("internal/agent/clis/clis.go: adapters lacks %s: %v", kind, err)
		}
		if a.Build == nil || a.Parse == nil || a.Wrote == nil || a.Sessions == nil || a.Version == (agent.Version{}) {
			t.Errorf("%s: the adapter is %+v", kind, a)
		}
		if s, err := clis.ForStream(kind); err != nil || s.Stream != kind {
			t.Errorf("the stream of %s: %q, %v", kind, s.Stream, err)
		}
	}
}

// cli returns the adapter of a known kind.
func cli(kind string) agent.Adapter {
	a, err := clis.For(kind, "")
	if err != nil {
		panic(err)
	}
	return a
}

func command(t *testing.T, a agent.Adapter, r agent.Request) agent.Command {
	t.Helper()
	c, err := a.Command(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCLIsStartWithSafeSettings(t *testing.T) {
	for name, want := range agenttest.EveryCLI(t, map[string]agent.Command{
		"codex": {
			Argv: []string{"codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ignore-rules",
				"--model=gpt-5", "-c", `model_reasoning_effort="high"`, "-"},
			Env: []string{"CODEX_HOME=/h/.codex", "HOME=/h", "LANG=C.UTF-8", "PATH=/usr/bin", "PAWL_ENDPOINT_TOKEN=the-token", "TERM=dumb", "TZ=UTC"},
		},
		"claude": {
			Argv: []string{"claude", "-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", "--setting-sources", "user",
				"--strict-mcp-config", "--model=claude-sonnet-4-5", "--effort=high", "--mcp-config=/h/.claude/pawl-mcp.json"},
			Env: []string{"ANTHROPIC_API_KEY=the-token", "ANTHROPIC_BASE_URL=http://127.0.0.1:9", "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=300000", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"CLAUDE_CODE_MAX_RETRIES=2", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=2100000", "CLAUDE_CONFIG_DIR=/h/.claude", "CLAUDE_STREAM_IDLE_TIMEOUT_MS=3600000",
				"DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_TELEMETRY=1", "ENABLE_TOOL_SEARCH=false", "HOME=/h", "IS_SANDBOX=1", "LANG=C.UTF-8",
				"MCP_CONNECTION_NONBLOCKING=false", "MCP_TIMEOUT=30000", "MCP_TOOL_TIMEOUT=2100000", "PATH=/usr/bin", "TERM=dumb", "TZ=UTC"},
		},
		"gemini": {
			Argv: []string{"gemini", "--output-format", "stream-json", "--approval-mode", "yolo", "--skip-trust", "--extensions=none",
				"--model=gemini-2.5-pro", "--allowed-mcp-server-names=pawl"},
			Env: []string{"GEMINI_API_KEY=the-token", "GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_SANDBOX=false", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:9",
				"HOME=/h", "LANG=C.UTF-8", "NO_BROWSER=true", "PATH=/usr/bin", "TERM=dumb", "TZ=UTC"},
		},
		"opencode": {
			Argv: []string{"opencode", "run", "--format", "json", "--pure", "--print-logs", "--log-level", "INFO", "--title", "pawl",
				"--model=pawl/vendor/m", "--variant=high"},
			Env: []string{"HOME=/h", "LANG=C.UTF-8", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_CLAUDE_CODE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
				"OPENCODE_DISABLE_EXTERNAL_SKILLS=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_PROJECT_CONFIG=1",
				"OPENCODE_DISABLE_SHARE=1", "PATH=/usr/bin", "PAWL_ENDPOINT_TOKEN=the-token", "TERM=dumb", "TZ=UTC", "XDG_CACHE_HOME=/h/.cache",
				"XDG_CONFIG_HOME=/h/.config", "XDG_DATA_HOME=/h/.local/share", "XDG_STATE_HOME=/h/.local/state"},
		},
		"qwen": {
			Argv: []string{"qwen", "--output-format", "stream-json", "--approval-mode", "yolo", "--safe-mode", "--model=qwen3-coder-plus", "--auth-type=openai",
				"--mcp-config=/h/.qwen/pawl-mcp.json"},
			Env: []string{"HOME=/h", "LANG=C.UTF-8", "NO_BROWSER=true", "OPENAI_API_KEY=the-token", "OPENAI_BASE_URL=http://127.0.0.1:9/v1", "PATH=/usr/bin",
				"QWEN_CODE_NO_RELAUNCH=true", "QWEN_CODE_SUPPRESS_YOLO_WARNING=1", "QWEN_SANDBOX=false", "TERM=dumb", "TZ=UTC"},
		},
	}) {
		a, r := everyCLI[name]()
		got := command(t, a, r)
		files := strings.Join(slices.Sorted(maps.Values(got.Files)), "\n")
		if strings.Contains(strings.Join(got.Argv, " ")+files, "the-token") || strings.Contains(strings.Join(got.Env, " "), "own-key") {
			t.Errorf("%s: the token is outside the environment, or the CLI gets a key of the operator's: %+v", name, got)
		}
		if got.Stdin != "Fix it." {
			t.Errorf("%s: standard input is %q", name, got.Stdin)
		}
		got.Stdin, got.Files = "", nil
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestEveryCLIIsConfiguredWithTestToolAndEndpoint(t *testing.T) {
	for name, want := range agenttest.EveryCLI(t, map[string][]string{
		"codex": {`model_provider = "pawl"`, `base_url = "http://127.0.0.1:9/v1"`, `env_key = "PAWL_ENDPOINT_TOKEN"`, `[mcp_servers.pawl]`, `direct_only_tool_namespaces = ["mcp__pawl"]`,
			`command = "/bin/pawl"`, `args = ["mcp", "--say=\"x\""]`, `tool_timeout_sec = 2100`, `trust_level = "untrusted"`},
		"claude": {`"mcpServers"`, `"pawl"`, `"--say=\"x\""`, `"command": "/bin/pawl"`, `"timeout": 2100000`},
		"gemini": {`"command": "/bin/pawl"`, `"timeout": 2100000`, `"selectedType": "gemini-api-key"`, `"thinkingBudget": 24576`, `"ignoreLocalEnv": true`},
		"opencode": {`"baseURL": "http://127.0.0.1:9/v1"`, `"npm": "@ai-sdk/openai-compatible"`, `"apiKey": "{env:PAWL_ENDPOINT_TOKEN}"`, `"vendor/m"`,
			`"reasoningEffort": "high"`, `"timeout": 2100000`, `"share": "disabled"`},
		"qwen": {`"command": "/bin/pawl"`, `"--say=\"x\""`, `"timeout": 2100000`, `"trust": true`, `"reasoning_effort": "high"`, `"streamIdleTimeoutMs": 0`},
	}) {
		a, r := everyCLI[name]()
		files := command(t, a, r).Files
		all := strings.Join(slices.Collect(maps.Values(files)), "\n")
		for _, part := range want {
			if !strings.Contains(all, part) {
				t.Errorf("%s: the files lack %s:\n%s", name, part, all)
			}
		}
		for path, text := range files {
			if strings.HasSuffix(path, ".json") && !json.Valid([]byte(text)) {
				t.Errorf("%s: %s is not JSON:\n%s", name, path, text)
			}
		}
		r.TestTool = nil
		for path, text := range command(t, a, r).Files {
			if strings.Contains(text, "/bin/pawl") {
				t.Errorf("%s: %s names a test tool that was not requested", name, path)
			}
		}
	}
}

// Pawl waits for a provider itself, so a CLI may retry only a few times. TestRealAgents counts the CLIs' requests.
func TestEveryCLIGetsARetryLimit(t *testing.T) {
	for name, want := range agenttest.EveryCLI(t, map[string]string{
		"codex": "request_max_retries = 2", "claude": "CLAUDE_CODE_MAX_RETRIES=2", "gemini": `"maxAttempts": 3`, "qwen": `"maxRetries": 0`,
		"opencode": "", // it has no such setting; its log reports the refusal, and Run kills it
	}) {
		a, r := everyCLI[name]()
		c := command(t, a, r)
		if all := strings.Join(c.Env, "\n") + strings.Join(slices.Collect(maps.Values(c.Files)), "\n"); !strings.Contains(all, want) {
			t.Errorf("%s lacks %s: %s", name, want, all)
		}
	}
}

func TestCLIsContinueASession(t *testing.T) {
	const id = "01a1fd2a-efb1-7451-8d0f-9bf2a7204a41"
	for name, c := range agenttest.EveryCLI(t, map[string]struct{ session, argument string }{
		"codex": {id, id}, "claude": {id, id}, "gemini": {id, "--resume=" + id},
		"qwen":     {id, "--resume=" + id},
		"opencode": {"ses_e02cd51d1ffeuSkOCwwLQqBUbS", "--session=ses_e02cd51d1ffeuSkOCwwLQqBUbS"},
	}) {
		a, r := everyCLI[name]()
		r.Session = c.session
		if got := command(t, a, r); !slices.Contains(got.Argv, c.argument) {
			t.Errorf("%s: %q", name, got.Argv)
		}
		for _, bad := range []string{"--last", "../../x", "latest --yolo", "ses_"} {
			r.Session = bad
			if got, err := a.Command(r); !errors.Is(err, agent.ErrSession) {
				t.Errorf("%s: the session %q gave %q, error %v", name, bad, got.Argv, err)
			}
		}
	}
}

// The table of config says which protocols and efforts a CLI supports, and whether it needs a model.
func TestUnknownKindIsRefusedWithAHint(t *testing.T) {
	for kind, example := range everyCLI {
		row := config.CLIOf(kind)
		refused := func(hint string, change func(*agent.Request)) {
			a, r := example()
			change(&r)
			if got, err := a.Command(r); err == nil || !strings.Contains(err.Error(), hint) {
				t.Errorf("%s: %q, error %v; want one with %q", kind, got.Argv, err, hint)
			}
		}
		for _, protocol := range []string{config.OpenAI, config.Anthropic, config.Google, "smtp"} {
			if !slices.Contains(row.Protocols, protocol) {
				refused("with the protocol "+strings.Join(row.Protocols, " or "), func(r *agent.Request) { r.Endpoint.Protocol = protocol })
			}
		}
		refused("effort", func(r *agent.Request) { r.Effort = "nosuch" })
		refused("lacks its URL or its token", func(r *agent.Request) { r.Endpoint.Token = "" })
		if row.Models != nil {
			refused("set the backend's model", func(r *agent.Request) { r.Model = "" })
		}
	}
}

func TestUnsupportedRequestIsRefusedWithAHint(t *testing.T) {
	for name, c := range map[string]struct {
		cli    string
		change func(*agent.Request)
		hint   string
	}{
		"codex's effort":      {"codex", func(r *agent.Request) { r.Effort = `high" -c x="y` }, "use none, minimal, low, medium, high, xhigh or max"},
		"claude's effort":     {"claude", func(r *agent.Request) { r.Effort = "minimal" }, "use low, medium, high, xhigh or max"},
		"gemini's effort":     {"gemini", func(r *agent.Request) { r.Effort = "max" }, "use low, medium or high"},
		"opencode's effort":   {"opencode", func(r *agent.Request) { r.Effort = "nosuch" }, "is not an effort of opencode"},
		"opencode's provider": {"opencode", func(r *agent.Request) { r.Endpoint, r.Model = agent.Endpoint{}, "m" }, "PROVIDER/m"},
	} {
		a, r := everyCLI[c.cli]()
		c.change(&r)
		if got, err := a.Command(r); err == nil || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%s: %q, error %v", name, got.Argv, err)
		}
	}
}

func TestCLIUsesItsOwnLoginWithoutAnEndpoint(t *testing.T) {
	for name, want := range map[string]string{"": "oauth-personal", "GEMINI_API_KEY": "gemini-api-key", "GOOGLE_API_KEY": "vertex-ai"} {
		got := command(t, cli("gemini"), agent.Request{Home: "/h", Model: "gemini-2.5-pro", Env: map[string]string{name: "k"}})
		if !strings.Contains(got.Files[".gemini/settings.json"], `"selectedType": "`+want+`"`) {
			t.Errorf("gemini with %q: %s", name, got.Files[".gemini/settings.json"])
		}
	}
	got := command(t, cli("claude"), agent.Request{Home: "/h", Env: map[string]string{"CLAUDE_CODE_OAUTH_TOKEN": "own"}})
	if !slices.Contains(got.Env, "CLAUDE_CODE_OAUTH_TOKEN=own") {
		t.Errorf("claude: %q", got.Env)
	}
	got = command(t, cli("opencode"), agent.Request{Home: "/h", Model: "zai/glm"})
	if strings.Contains(got.Files[".config/opencode/opencode.json"], "provider") || !slices.Contains(got.Argv, "--model=zai/glm") {
		t.Errorf("opencode: %+v", got)
	}
	for name, example := range everyCLI {
		a, _ := example()
		if order, _ := a.Version.Judge(a.Version.Checked); a.Credential == "" || strings.HasPrefix(a.Credential, "/") || order != 0 {
			t.Errorf("%s: credential %q, version %+v", name, a.Credential, a.Version)
		}
	}
}

func TestCommandGetsItsProtocolsEndpoint(t *testing.T) {
	a, err := clis.For("command", "")
	if err != nil {
		t.Fatal(err)
	}
	for protocol, want := range map[string]string{
		config.OpenAI: "OPENAI_BASE_URL=http://127.0.0.1:9/v1", config.Anthropic: "ANTHROPIC_BASE_URL=http://127.0.0.1:9",
		config.Google: "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:9",
	} {
		r := throughAProxy(protocol, "")
		r.Argv = []string{"/bin/agent"}
		if got := command(t, a, r); !slices.Contains(got.Env, want) || strings.Contains(strings.Join(got.Env, " "), "own-key") {
			t.Errorf("%s: %q", protocol, got.Env)
		}
	}
}

// An adapter passes the endpoint to its CLI in variables. The operator's values of the same variables would bypass the
// endpoint.
func TestVariablesThatBypassTheEndpointAreWithheld(t *testing.T) {
	for kind, example := range everyCLI {
		a, r := example()
		for _, e := range command(t, a, r).Env {
			name, value, _ := strings.Cut(e, "=")
			named := strings.Contains(value, r.Endpoint.Token) || strings.Contains(value, r.Endpoint.URL)
			if named && name != agent.TokenVariable && !slices.Contains(config.Withheld(), name) {
				t.Errorf("config/clis.go: Withheld of %s lacks %s", kind, name)
			}
		}
	}
}

// The operator's environment names other endpoints and credentials.
func TestOperatorsVariablesCannotBypassTheEndpoint(t *testing.T) {
	for name, make := range everyCLI {
		a, r := make()
		r.Env = map[string]string{"PATH_OF_TESTS": "elsewhere"}
		for _, v := range append(config.Withheld(), "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_BEDROCK_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GEMINI_CLI_CUSTOM_HEADERS") {
			r.Env[v] = "elsewhere"
		}
		passed := 0
		for _, e := range command(t, a, r).Env {
			if strings.HasSuffix(e, "=elsewhere") {
				passed++
			}
		}
		if passed != 1 {
			t.Errorf("%s: %d of the variables are set, want only the harmless one", name, passed)
		}
	}
}

func TestCodexStartsWithSafeSettings(t *testing.T) {
	r := agent.Request{
		Prompt: "Fix it.", Dir: `/work/a "b"\c`, Home: "/home/agent", Model: "gpt-5", Effort: "high",
		Env: map[string]string{"PATH": "/usr/bin", "OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
	}
	got, err := cli("codex").Command(r)
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Command{
		Argv: []string{"codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ignore-rules", "--model=gpt-5", "-c", `model_reasoning_effort="high"`, "-"},
		Env: []string{"CODEX_HOME=/home/agent/.codex", "HOME=/home/agent", "LANG=C.UTF-8", "OPENAI_API_KEY=sk-x",
			"OPENAI_BASE_URL=http://127.0.0.1:9/v1", "PATH=/usr/bin", "TERM=dumb", "TZ=UTC"},
		Stdin: "Fix it.",
		Files: map[string]string{".codex/config.toml": `check_for_update_on_startup = false
approval_policy = "never"
cli_auth_credentials_store = "file"
model_provider = "pawl"

[analytics]
enabled = false

[feedback]
enabled = false

[features]
apps = false
plugins = false

[history]
persistence = "none"

[shell_environment_policy]
exclude = ["OPENAI_API_KEY", "CODEX_API_KEY", "PAWL_ENDPOINT_TOKEN"]

[projects."/work/a \"b\"\\c"]
trust_level = "untrusted"

[model_providers.pawl]
name = "pawl"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 2
stream_max_retries = 3
`},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if strings.Contains(strings.Join(got.Argv, " ")+got.Files[".codex/config.toml"], "sk-x") {
		t.Error("the key is in the arguments or a file")
	}
}

func TestCodexContinuesASession(t *testing.T) {
	got, err := cli("codex").Command(agent.Request{Home: "/h", Session: "01a1fd2a-efb1-7451-8d0f-9bf2a7204a41", Argv: []string{"/opt/codex"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/opt/codex", "exec", "resume", "01a1fd2a-efb1-7451-8d0f-9bf2a7204a41"}; !slices.Equal(got.Argv[:4], want) {
		t.Errorf("%q, want %q first", got.Argv, want)
	}
	if strings.Contains(got.Files[".codex/config.toml"], "model_provider") {
		t.Error("codex gets a custom provider without a key or URL")
	}
}

func TestCommandGetsItsAttemptInTheEnvironment(t *testing.T) {
	a, err := clis.For("command", "codex")
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Command(agent.Request{
		Prompt: "Fix it.", Home: "/h", Argv: []string{"/bin/agent", "-x"}, Attempt: 3, Thread: "o/r#7", Rung: "retry", Effort: "high",
		Env: map[string]string{"MY_KEY": "k", "PAWL_THREAD": "forged"},
	})
	want := agent.Command{Argv: []string{"/bin/agent", "-x"}, Stdin: "Fix it.",
		Env: []string{"HOME=/h", "MY_KEY=k", "PAWL_ATTEMPT=3", "PAWL_EFFORT=high", "PAWL_RUNG=retry", "PAWL_THREAD=o/r#7"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(d, err)
	}
	got, err = a.Command(agent.Request{Argv: []string{"/bin/agent"}, TestTool: []string{"/opt/it's mine/pawl", "mcp", "--spec", "/h/tests.json"}})
	if want := `PAWL_TESTS='/opt/it'\''s mine/pawl' mcp --spec /h/tests.json --once`; err != nil || !slices.Contains(got.Env, want) {
		t.Errorf("%q, %v; want %s", got.Env, err, want)
	}
	if _, err := a.Command(agent.Request{}); err == nil {
		t.Error("a command without a program was accepted")
	}
}

func TestUnknownKindsAndStreamsAreRefusedWithAHint(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {"nope", ""}, {"command", "nope"}} {
		if _, err := clis.For(c[0], c[1]); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("For(%q, %q): error %v", c[0], c[1], err)
		}
	}
}
