// Package qwen starts Qwen Code. Its output has Claude Code's format.
package qwen

import (
	"errors"
	"maps"
	"path"
	"regexp"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/claude"
	"github.com/pawlbot/pawl/internal/agent/gemini"
	"github.com/pawlbot/pawl/policy"
)

// retries limits qwen's retries of rate-limited requests. The default is ten, with a minute before each. qwen always
// tries a 5xx seven times, in about eighty seconds; each retry would repeat those tries.
const retries = 0

var Adapter = agent.Adapter{
	Sessions:   agent.SafeSession,
	Build:      build,
	Parse:      parseLine,
	Wrote:      wrote,
	Exit:       exitEnding,
	ReadTry:    agent.Tries(tries, time.Second),
	Credential: ".qwen/oauth_creds.json",
	// qwen reads some of its settings despite --safe-mode.
	Unguarded: []string{".qwen"},
}

// wrote recognises the first line of the output. The other lines have Claude Code's format.
func wrote(line gjson.Result) bool { return line.Get("qwen_code_version").Exists() }

// exitEnding uses Gemini CLI's exit codes, since qwen is a fork of Gemini CLI.
func exitEnding(code int) policy.Ending { return gemini.Exits[code] }

// build returns a headless `qwen` as in the recorded runs of 0.24.4. It allows every tool, since Pawl's sandbox
// contains it. Safe mode excludes hooks, extensions, skills and MCP servers other than Pawl's.
func build(r agent.Request) (agent.Launch, error) {
	if r.Model == "" {
		return agent.Launch{}, errors.New("qwen needs a model: set the backend's model, such as qwen3-coder-plus")
	}
	args := []string{
		"--output-format", "stream-json",
		"--approval-mode", "yolo",
		"--safe-mode",
		"--model=" + r.Model,
	}
	ownKey := r.Allowed()["OPENAI_API_KEY"] != ""
	if ownKey || r.Endpoint != (agent.Endpoint{}) {
		args = append(args, "--auth-type=openai")
	}
	args = agent.With(args, "--resume=", r.Session)
	files := map[string]string{".qwen/settings.json": settingsOf(r)}
	if len(r.TestTool) > 0 {
		servers := r.Servers(map[string]any{"trust": true})
		files[".qwen/pawl-mcp.json"] = agent.Settings(map[string]any{"mcpServers": servers})
		args = append(args, "--mcp-config="+path.Join(r.Home, ".qwen/pawl-mcp.json"))
	}
	env := r.Endpoint.Variables()
	maps.Copy(env, map[string]string{
		"QWEN_CODE_NO_RELAUNCH":           "true", // one process, which dies with its group
		"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
		"QWEN_SANDBOX":                    "false",
		"NO_BROWSER":                      "true",
	})
	return agent.Launch{
		Args:  args,
		Env:   env,
		Files: files,
	}, nil
}

func settingsOf(r agent.Request) string {
	generation := map[string]any{
		"maxRetries": retries,
		// Pawl detects silence itself.
		"streamIdleTimeoutMs": 0,
		"timeout":             agent.ToolTimeout.Milliseconds(),
	}
	// qwen's own setting would depend on the model's name.
	if r.Effort != "" {
		generation["samplingParams"] = map[string]any{"reasoning_effort": r.Effort}
	}
	return agent.Settings(map[string]any{
		"model": map[string]any{
			"generationConfig":    generation,
			"maxToolCallsPerTurn": 0, // no limit: Pawl detects circles
		},
		"general":   map[string]any{"enableAutoUpdate": false},
		"privacy":   map[string]any{"usageStatisticsEnabled": false},
		"telemetry": map[string]any{"enabled": false},
		// Tool search would hide a server's tools.
		"tools": map[string]any{"toolSearch": map[string]any{"enabled": false}},
	})
}

var editTools = agent.EditTools{
	Write:   []string{"write_file"},
	Replace: []string{"edit"},
	Path:    "file_path",
	Before:  "old_string",
	After:   "new_string",
}

// parseLine parses Claude Code's format. An error text that replaces qwen's answer is not a mention of a limit, since
// the result repeats it.
func parseLine(raw []byte, emit func(agent.Event)) {
	read(raw, func(e agent.Event) {
		if e.Kind == agent.Message && shown.MatchString(e.Text) {
			e.Quotes = false
		}
		if e.Tokens != nil { // the provider's input includes the cached part
			e.Tokens.Input -= e.Tokens.CachedInput
		}
		emit(e)
	})
}

var (
	read  = claude.Lines(editTools)
	shown = regexp.MustCompile(`(?s)\[API Error: .*\]`)
)

// tries matches a failed try on standard error before qwen's wait.
var tries = regexp.MustCompile(`(?:^|\n)Retrying in (?P<wait>\d{1,9})s \(attempt \d+/\d+\): (?P<said>.*)$`)
