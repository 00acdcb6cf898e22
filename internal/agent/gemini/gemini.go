// Package gemini starts Gemini CLI and parses its output.
package gemini

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// attempts is how often gemini may ask for one answer; its default of ten takes minutes.
const attempts = 3

var Adapter = agent.Adapter{
	Sessions:   agent.SafeSession,
	Build:      build,
	Parse:      parseLine,
	Wrote:      wrote,
	Exit:       exitEnding,
	ReadTry:    agent.Tries(tries, time.Millisecond),
	SideModels: []string{"flash", "flash-lite"}, // the choice of a model, summaries, its search
	Credential: ".gemini/oauth_creds.json",
	// Gemini reads it when it changes the model during a run.
	Unguarded: []string{".gemini/.env"},
}

// own are the fields that distinguish its events from other CLIs' of the same type.
var own = map[string]string{
	"init":     "session_id",
	"message":  "role",
	"tool_use": "tool_name",
	"error":    "severity",
}

func wrote(line gjson.Result) bool {
	field, known := own[line.Get("type").Str]
	return known && line.Get(field).Exists()
}

// build makes a headless `gemini` as in the recorded runs of 0.61.0: every tool allowed, since Pawl's sandbox
// contains it; the model named, since a request to a router comes first otherwise.
//
// The folder is untrusted when the settings are read, so the repository's are left out, and trusted from
// --skip-trust on, without which gemini would start neither headless nor Pawl's MCP server.
func build(r agent.Request) (agent.Launch, error) {
	if r.Model == "" {
		return agent.Launch{}, fmt.Errorf("gemini needs a model: set the backend's model, such as gemini-2.5-pro")
	}
	server := "none"
	if len(r.TestTool) > 0 {
		server = agent.ToolServer
	}
	args := []string{
		"--output-format", "stream-json",
		"--approval-mode", "yolo",
		"--skip-trust",
		"--extensions=none",
		"--model=" + r.Model,
		"--allowed-mcp-server-names=" + server,
	}
	args = agent.With(args, "--resume=", r.Session)
	env := r.Endpoint.Variables()
	// A second process would read the settings again, and by then trust the folder.
	env["GEMINI_CLI_NO_RELAUNCH"] = "true"
	env["GEMINI_SANDBOX"] = "false"
	env["NO_BROWSER"] = "true"
	return agent.Launch{
		Args:  args,
		Env:   env,
		Files: map[string]string{".gemini/settings.json": settingsOf(r)},
	}, nil
}

func settingsOf(r agent.Request) string {
	settings := map[string]any{
		"security": map[string]any{
			// With useExternal gemini does not look for a key itself, and so does not read .gemini/.env of a folder
			// that it trusts by then.
			"auth":        map[string]any{"selectedType": authOf(r), "useExternal": true},
			"folderTrust": map[string]any{"enabled": true},
		},
		"general": map[string]any{
			"maxAttempts":                  attempts,
			"enableAutoUpdate":             false,
			"enableAutoUpdateNotification": false,
			"sessionRetention":             map[string]any{"enabled": false},
		},
		"privacy":      map[string]any{"usageStatisticsEnabled": false},
		"telemetry":    map[string]any{"enabled": false},
		"hooksConfig":  map[string]any{"enabled": false},
		"experimental": map[string]any{"enableAgents": false},
		"skills":       map[string]any{"enabled": false},
		"advanced":     map[string]any{"ignoreLocalEnv": true},
		"mcpServers":   r.Servers(map[string]any{"trust": true}),
	}
	if r.Effort != "" {
		generate := map[string]any{"thinkingConfig": thinkingOf(r.Model, r.Effort)}
		override := map[string]any{
			"match":       map[string]any{"isChatModel": true},
			"modelConfig": map[string]any{"generateContentConfig": generate},
		}
		settings["modelConfigs"] = map[string]any{"customOverrides": []any{override}}
	}
	return agent.Settings(settings)
}

// authOf is how gemini signs in: by the endpoint's or the environment's key, else by the account in HOME.
func authOf(r agent.Request) string {
	env := r.Allowed()
	switch {
	case r.Endpoint != agent.Endpoint{}, env["GEMINI_API_KEY"] != "":
		return "gemini-api-key"
	case env["GOOGLE_GENAI_USE_VERTEXAI"] != "", env["GOOGLE_API_KEY"] != "":
		return "vertex-ai"
	}
	return "oauth-personal"
}

// thinkingOf is an effort's thinkingConfig. The second generation takes a budget of tokens (from Google's page on
// OpenAI compatibility), later ones a level.
func thinkingOf(model, effort string) map[string]any {
	if strings.Contains(model, "gemini-2") {
		return map[string]any{"thinkingBudget": budgets[effort]}
	}
	return map[string]any{"thinkingLevel": strings.ToUpper(effort)}
}

var budgets = map[string]int{
	"low":    1024,
	"medium": 8192,
	"high":   24576,
}

// parseLine reads one line of `gemini --output-format stream-json`.
func parseLine(raw []byte, emit func(agent.Event)) {
	line := agent.Line(raw)
	switch line.Get("type").Str {
	case "init":
		emit(agent.Event{Kind: agent.SessionStarted, ID: line.Get("session_id").Str})
	case "message":
		if line.Get("role").Str != "assistant" {
			emit(agent.Event{Kind: agent.TurnStarted})
			return
		}
		text := line.Get("content")
		emit(agent.Event{
			Kind:     agent.Message,
			Text:     text.Str,
			Authored: text.Str,
			Quotes:   limit.Mentioned(text.Raw),
			Delta:    line.Get("delta").Bool(),
		})
	case "tool_use":
		name, input := line.Get("tool_name").Str, line.Get("parameters")
		emit(agent.Event{
			Kind:     agent.ToolCall,
			ID:       line.Get("tool_id").Str,
			Authored: name + " " + input.Raw,
			Ran:      true,
			Does:     agent.Does(name, input),
			Quotes:   limit.Mentioned(input.Raw),
			Edits:    editTools.Edits(name, input),
		})
	case "tool_result":
		output := line.Get("output").Raw
		e := agent.Event{
			Kind:     agent.ToolCall,
			ID:       line.Get("tool_id").Str,
			Done:     true,
			Rejected: line.Get("status").Str == "error",
			Quotes:   limit.Mentioned(output),
		}
		e.Answered(e.Rejected, output)
		emit(e)
	case "error":
		readNotice(line, emit)
	case "result":
		if line.Get("status").Exists() || line.Get("error").Exists() { // otherwise it does not say how the run ended
			agent.EmitFinal(line, readResult(line), emit)
		}
	}
}

var editTools = agent.EditTools{
	Write:   []string{"write_file"},
	Replace: []string{"replace", "edit"},
	Path:    "file_path",
	Before:  "old_string",
	After:   "new_string",
}

// readNotice reads an error event, which the result does not repeat. Warnings matter only with an ending.
func readNotice(line gjson.Result, emit func(agent.Event)) {
	e := agent.Event{Kind: agent.Notice, Text: line.Get("message").Str}
	warning := line.Get("severity").Str == "warning"
	if warning && limit.Read(limit.Evidence{Message: e.Text}).Kind == "" {
		return
	}
	emit(e)
}

// endings maps the types of errors; most errors have the type "unknown".
var endings = map[string]policy.Ending{
	"FatalAuthenticationError": policy.Auth,
	"FatalInputError":          policy.Misconfigured,
	"FatalConfigError":         policy.Misconfigured,
	"FatalSandboxError":        policy.Misconfigured,
	"FatalTurnLimitedError":    policy.TurnLimit,
	"FatalCancellationError":   policy.Killed,
}

func readResult(line gjson.Result) agent.Event {
	failure := line.Get("error")
	e := agent.Event{
		Kind:   agent.Finished,
		Tokens: agent.Tokens(line.Get("stats"), "input_tokens", "cached", "output_tokens"),
	}
	if failure.Exists() || line.Get("status").Str != "success" {
		e.Kind = agent.Failed
		e.Text = failure.Get("message").Str
		e.Ending = endings[failure.Get("type").Str]
	}
	return e
}

// Exits maps the CLI's own exit codes, which its forks have kept.
var Exits = map[int]policy.Ending{
	41: policy.Auth,
	42: policy.Misconfigured,
	44: policy.Misconfigured,
	52: policy.Misconfigured,
	53: policy.TurnLimit,
	55: policy.TurnLimit,
}

// exitEnding is the ending of the CLI's own exit codes, or of the API's HTTP status modulo 256.
func exitEnding(code int) policy.Ending {
	switch {
	case code == 529%256:
		return limit.Read(limit.Evidence{Status: 529}).Kind
	case code >= 400%256 && code <= 504%256:
		return limit.Read(limit.Evidence{Status: code + 256}).Kind
	}
	return Exits[code]
}

// tries matches a failed try and the wait before the next, jitter included, in milliseconds. During the wait, as
// long as the provider asks, the CLI prints nothing else.
var tries = regexp.MustCompile(`(?:^|\n)(?P<said>Attempt \d+ failed\b.*?(?:\nSuggested retry after .*?)?(?: Retrying after (?P<wait>\d{1,12})ms\.{3})?)$`)
