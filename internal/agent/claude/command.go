// Package claude knows how Claude Code 2.1.197 is started (command.go), and what its output
// tells (stream.go).
package claude

import (
	"encoding/json"
	"maps"
	"path"
	"strconv"

	"github.com/pawlbot/pawl/internal/agent"
)

// retries is how often claude may repeat a failed request; its default of
// ten takes three minutes.
const retries = "2"

// How long claude waits for a provider that says nothing, in milliseconds, where
// that is Pawl's gateway. It holds an answer back until that calls a tool, and
// passes pings on meanwhile: those are bytes to claude 2.1.197, which gives up
// after five minutes without, but no events.
const (
	eventIdle = "3600000"
	byteIdle  = "300000"
)

// Adapter is what Pawl knows of Claude Code.
func Adapter() agent.Adapter {
	return agent.Adapter{
		Name: "claude", Stream: agent.StreamClaude, Parse: parseLine,
		Command: agent.Start{
			Program: "claude", Protocols: []string{agent.ProtocolAnthropic}, Efforts: []string{"low", "medium", "high", "xhigh", "max"},
			Sessions: agent.SafeSession, Build: build,
		}.Command,
		Version:    agent.Version{Checked: "2.1.197", Package: "@anthropic-ai/claude-code"},
		Credential: ".claude/.credentials.json",
	}
}

// build makes `claude -p` as the recorded runs of 2.1.197 want it: no questions,
// since Pawl's sandbox is around it; settings of the user only and no MCP servers
// but Pawl's, so that nothing in the repository is run unasked.
func build(r agent.Request) (agent.Launch, error) {
	args := []string{"-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions",
		"--setting-sources", "user", "--strict-mcp-config"}
	if r.Session != "" {
		args = append(args, "--resume", r.Session)
	}
	if r.Model != "" {
		args = append(args, "--model="+r.Model)
	}
	if r.Effort != "" {
		args = append(args, "--effort="+r.Effort)
	}
	files := map[string]string{}
	if len(r.TestTool) > 0 {
		config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{
			agent.ToolServer: map[string]any{"command": r.TestTool[0], "args": r.TestTool[1:], "timeout": agent.ToolTimeout.Milliseconds()},
		}}) // never fails for strings and numbers
		files[".claude/pawl-mcp.json"] = string(config)
		args = append(args, "--mcp-config="+path.Join(r.Home, ".claude/pawl-mcp.json"))
	}
	env := r.Endpoint.Variables()
	maps.Copy(env, map[string]string{
		"CLAUDE_CONFIG_DIR":       path.Join(r.Home, ".claude"),
		"CLAUDE_CODE_MAX_RETRIES": retries,
		// claude refuses to skip permissions as root unless it is told that a sandbox is around it.
		"IS_SANDBOX": "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"DISABLE_TELEMETRY":                        "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		"MCP_TIMEOUT":                              strconv.FormatInt(agent.ToolStartup.Milliseconds(), 10),
		"MCP_TOOL_TIMEOUT":                         strconv.FormatInt(agent.ToolTimeout.Milliseconds(), 10),
		// It would give up on a tool that is silent for long, too.
		"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": strconv.FormatInt(agent.ToolTimeout.Milliseconds(), 10),
	})
	if r.Endpoint != (agent.Endpoint{}) {
		env["CLAUDE_STREAM_IDLE_TIMEOUT_MS"] = eventIdle
		env["CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS"] = byteIdle
	}
	return agent.Launch{Args: args, Env: env, Files: files}, nil
}
