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

// attempts limits gemini's requests for one answer. The default of ten takes minutes.
const attempts = 3

var Adapter = agent.Adapter{
	Sessions:   agent.SafeSession,
	Build:      build,
	Parse:      parseLine,
	Wrote:      wrote,
	Exit:       exitEnding,
	ReadTry:    agent.Tries(tries, time.Millisecond),
	SideModels: []string{"flash", "flash-lite"}, // for the choice of a model, summaries, and search
	Credential: ".gemini/oauth_creds.json",
	// gemini reads this file when it changes the model during a run.
	Unguarded: []string{".gemini/.env"},
}

// own maps event types to fields that only gemini's events have.
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

// build returns a headless `gemini` as in the recorded runs of 0.61.0. It allows every tool, since Pawl's sandbox
// contains it. A named model avoids a router request.
//
// The folder is untrusted while gemini reads settings, so gemini ignores the repository's settings. --skip-trust
// then trusts the folder, which headless runs and Pawl's MCP server need.
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
	// A second process would read the settings again in a trusted folder.
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
			// With useExternal gemini does not search for a key in .gemini/.env of a trusted folder.
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

// authOf returns gemini's sign-in method: the endpoint's or environment's key, else the account in HOME.
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

// thinkingOf returns an effort's thinkingConfig. Generation 2 takes a token budget (from Google's page on OpenAI
// compatibility), newer generations take a level.
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

// parseLine parses a line of `gemini --output-format stream-json`.
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
		if line.Get("status").Exists() || line.Get("error").Exists() { // otherwise the run's end is unknown
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

// readNotice parses an error event. A warning counts only if its text implies an ending.
func readNotice(line gjson.Result, emit func(agent.Event)) {
	e := agent.Event{Kind: agent.Notice, Text: line.Get("message").Str}
	warning := line.Get("severity").Str == "warning"
	if warning && limit.Read(limit.Evidence{Message: e.Text}).Kind == "" {
		return
	}
	emit(e)
}

// endings maps error types; most errors have the type "unknown".
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

// Exits maps the CLI's exit codes, which its forks share.
var Exits = map[int]policy.Ending{
	41: policy.Auth,
	42: policy.Misconfigured,
	44: policy.Misconfigured,
	52: policy.Misconfigured,
	53: policy.TurnLimit,
	55: policy.TurnLimit,
}

// exitEnding returns the ending of the CLI's own exit codes, or of an HTTP status modulo 256.
func exitEnding(code int) policy.Ending {
	switch {
	case code == 529%256:
		return limit.Read(limit.Evidence{Status: 529}).Kind
	case code >= 400%256 && code <= 504%256:
		return limit.Read(limit.Evidence{Status: code + 256}).Kind
	}
	return Exits[code]
}

// tries matches a failed try and the wait in milliseconds. During the wait the CLI prints nothing else.
var tries = regexp.MustCompile(`(?:^|\n)(?P<said>Attempt \d+ failed\b.*?(?:\nSuggested retry after .*?)?(?: Retrying after (?P<wait>\d{1,12})ms\.{3})?)$`)
