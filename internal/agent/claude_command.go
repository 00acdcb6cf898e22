package agent

import (
	"encoding/json"
	"path"
	"strconv"
)

// claudeRetries is how often claude may repeat a failed request; its default of
// ten takes three minutes.
const claudeRetries = "2"

func claudeAdapter() Adapter {
	return Adapter{
		Name: "claude", Stream: StreamClaude, Command: claudeCommand, Parse: claudeLine,
		Version:    Version{Args: []string{"--version"}, Checked: "2.1.197", Package: "@anthropic-ai/claude-code"},
		Credential: ".claude/.credentials.json",
	}
}

// claudeCommand is `claude -p` as the recorded runs of 2.1.197 want it: the
// prompt on standard input; no questions, since Pawl's sandbox is around it;
// settings of the user only and no MCP servers but Pawl's, so that nothing in
// the repository is run unasked.
func claudeCommand(r Request) (Command, error) {
	if err := r.Endpoint.check("claude", ProtocolAnthropic); err != nil {
		return Command{}, err
	}
	if err := checkEffort("claude", r.Effort, "low", "medium", "high", "xhigh", "max"); err != nil {
		return Command{}, err
	}
	argv := append(program(r, "claude"), "-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions",
		"--setting-sources", "user", "--strict-mcp-config")
	if r.Session != "" {
		if !safeSession.MatchString(r.Session) {
			return Command{}, badSession("claude", r.Session)
		}
		argv = append(argv, "--resume", r.Session)
	}
	if r.Model != "" {
		argv = append(argv, "--model="+r.Model)
	}
	if r.Effort != "" {
		argv = append(argv, "--effort="+r.Effort)
	}
	files := map[string]string{}
	if len(r.TestTool) > 0 {
		config, err := claudeTools(r.TestTool)
		if err != nil {
			return Command{}, err
		}
		files[".claude/pawl-mcp.json"] = config
		argv = append(argv, "--mcp-config="+path.Join(r.Home, ".claude/pawl-mcp.json"))
	}
	own := map[string]string{
		"HOME":                    r.Home,
		"CLAUDE_CONFIG_DIR":       path.Join(r.Home, ".claude"),
		"CLAUDE_CODE_MAX_RETRIES": claudeRetries,
		// claude refuses to skip permissions as root unless it is told that a sandbox is around it.
		"IS_SANDBOX": "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"DISABLE_TELEMETRY":                        "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		"MCP_TIMEOUT":                              strconv.FormatInt(toolStartup.Milliseconds(), 10),
		"MCP_TOOL_TIMEOUT":                         strconv.FormatInt(toolTimeout.Milliseconds(), 10),
		// It would give up on a tool that is silent for long, too.
		"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": strconv.FormatInt(toolTimeout.Milliseconds(), 10),
	}
	return Command{Argv: argv, Env: environ(usual, r.allowed(), r.Endpoint.variables(), own), Stdin: r.Prompt, Files: files}, nil
}

// claudeTools is the file of --mcp-config.
func claudeTools(server []string) (string, error) {
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		toolServer: map[string]any{"command": server[0], "args": server[1:], "timeout": toolTimeout.Milliseconds()},
	}})
	return string(config), err
}
