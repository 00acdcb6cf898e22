// Package codex starts Codex and parses its output (codex.go) and session file (session.go).
package codex

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// requestRetries and streamRetries limit codex's retries. The defaults (4 and 5) spend 25 s and 30 requests on a dead
// provider. Pawl has its own breaker and backoff.
const (
	requestRetries = 2
	streamRetries  = 3
)

// openaiBaseURL is the default server for OPENAI_API_KEY.
const openaiBaseURL = "https://api.openai.com/v1"

var Adapter = agent.Adapter{
	Sessions:    agent.SafeSession,
	Build:       build,
	Parse:       parseLine,
	Wrote:       wrote,
	OpenSession: openSession,
	FoldSession: FoldSession,
	Credential:  ".codex/auth.json",
}

func wrote(line gjson.Result) bool {
	switch line.Get("type").Str {
	case "thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.completed",
		"session_meta", "event_msg", "response_item":
		return true
	}
	return false
}

// build returns `codex exec` as in the recorded runs of 0.169.0. It needs no sandbox and asks no questions, since
// Pawl's sandbox contains it. It takes no rules or trust from the repository. The dash means standard input.
func build(r agent.Request) (agent.Launch, error) {
	args := []string{"exec"}
	if r.Session != "" {
		args = append(args, "resume", r.Session)
	}
	args = append(args,
		"--json",
		"--dangerously-bypass-approvals-and-sandbox",
		"--skip-git-repo-check",
		"--ignore-rules",
	)
	args = agent.With(args, "--model=", r.Model)
	if r.Effort != "" {
		args = append(args, "-c", "model_reasoning_effort="+tomlString(r.Effort))
	}
	args = agent.With(args, "--image=", r.Pictures...)
	env := r.Endpoint.OnlyToken()
	env["CODEX_HOME"] = path.Join(r.Home, ".codex")
	return agent.Launch{
		Args:  append(args, "-"),
		Env:   env,
		Files: map[string]string{".codex/config.toml": configOf(r)},
	}, nil
}

// configOf returns the whole configuration file. The built-in provider ignores retry limits, OPENAI_API_KEY and
// OPENAI_BASE_URL. These variables or an endpoint therefore get a separate provider. Otherwise codex signs in with
// auth.json or CODEX_API_KEY.
func configOf(r agent.Request) string {
	var b strings.Builder
	b.WriteString("check_for_update_on_startup = false\n")
	b.WriteString("approval_policy = \"never\"\n")
	b.WriteString("cli_auth_credentials_store = \"file\"\n")
	provider := providerOf(r)
	if provider != "" {
		b.WriteString("model_provider = \"pawl\"\n")
	}
	b.WriteString("\n[analytics]\nenabled = false\n")
	b.WriteString("\n[feedback]\nenabled = false\n")
	b.WriteString("\n[features]\napps = false\nplugins = false\n") // both call OpenAI and GitHub at each start
	b.WriteString("\n[history]\npersistence = \"none\"\n")
	fmt.Fprintf(&b, "\n[shell_environment_policy]\nexclude = [\"OPENAI_API_KEY\", \"CODEX_API_KEY\", %s]\n", tomlString(agent.TokenVariable))
	fmt.Fprintf(&b, "\n[projects.%s]\ntrust_level = \"untrusted\"\n", tomlString(r.Dir))
	b.WriteString(provider)
	if len(r.TestTool) > 0 {
		// Otherwise 0.169.0 hides servers' tools behind a search or in its code mode.
		fmt.Fprintf(&b, "\n[features.code_mode]\ndirect_only_tool_namespaces = [\"mcp__%s\"]\n", agent.ToolServer)
		args := make([]string, 0, len(r.TestTool))
		for _, arg := range r.TestTool[1:] {
			args = append(args, tomlString(arg))
		}
		fmt.Fprintf(&b, "\n[mcp_servers.%s]\n", agent.ToolServer)
		fmt.Fprintf(&b, "command = %s\n", tomlString(r.TestTool[0]))
		fmt.Fprintf(&b, "args = [%s]\n", strings.Join(args, ", "))
		fmt.Fprintf(&b, "startup_timeout_sec = %d\n", int(agent.ToolStartup.Seconds()))
		fmt.Fprintf(&b, "tool_timeout_sec = %d\n", int(agent.ToolTimeout.Seconds()))
	}
	return b.String()
}

func providerOf(r agent.Request) string {
	env := r.Allowed()
	base, variable := env["OPENAI_BASE_URL"], ""
	if env["OPENAI_API_KEY"] != "" {
		variable = "OPENAI_API_KEY"
	}
	switch {
	case r.Endpoint != agent.Endpoint{}:
		base, variable = r.Endpoint.URL+"/v1", agent.TokenVariable
	case base == "" && variable == "":
		return ""
	case base == "":
		base = openaiBaseURL
	}
	var b strings.Builder
	b.WriteString("\n[model_providers.pawl]\nname = \"pawl\"\n")
	fmt.Fprintf(&b, "base_url = %s\nwire_api = \"responses\"\n", tomlString(base))
	if variable != "" {
		fmt.Fprintf(&b, "env_key = %s\n", tomlString(variable))
	}
	fmt.Fprintf(&b, "request_max_retries = %d\nstream_max_retries = %d\n", requestRetries, streamRetries)
	return b.String()
}

// tomlString quotes s as a TOML basic string: a JSON string, except for one control character.
func tomlString(s string) string {
	quoted, _ := json.Marshal(s) // never fails
	return strings.ReplaceAll(string(quoted), "\x7f", `\u007f`)
}

// parseLine parses a line of `codex exec --json` or of a session file.
func parseLine(raw []byte, emit func(agent.Event)) {
	line := agent.Line(raw)
	switch line.Get("type").Str {
	case "thread.started":
		emit(agent.Event{Kind: agent.SessionStarted, ID: line.Get("thread_id").Str})
	case "turn.started":
		emit(agent.Event{Kind: agent.TurnStarted})
	case "turn.completed":
		agent.EmitFinal(line, agent.Event{Kind: agent.Finished, Tokens: tokensOf(line.Get("usage"))}, emit)
	case "turn.failed":
		agent.EmitFinal(line, agent.Event{Kind: agent.Failed, Text: line.Get("error.message").Str}, emit)
	case "error":
		emit(agent.Event{Kind: agent.Notice, Text: line.Get("message").Str})
	case "item.started":
		emit(readItem(line.Get("item"), false))
	case "item.completed":
		emit(readItem(line.Get("item"), true))
	case "session_meta", "event_msg", "response_item":
		parseRecorded(line, emit)
	}
}

func tokensOf(usage gjson.Result) *policy.Tokens {
	return agent.Tokens(usage, "input_tokens", "cached_input_tokens", "output_tokens")
}

func readItem(item gjson.Result, done bool) agent.Event {
	e := agent.Event{
		Kind:     agent.ToolCall,
		ID:       item.Get("id").Str,
		Done:     done,
		Whole:    done,
		Rejected: rejected(item.Get("status").Str),
	}
	switch item.Get("type").Str {
	case "agent_message":
		text := item.Get("text")
		e.Kind = agent.Message
		e.Text = text.Str
		e.Authored = text.Str
		e.Quotes = limit.Mentioned(text.Raw)
	case "reasoning":
		e.Kind = agent.Thought
		e.Quotes = limit.Mentioned(item.Get("text").Raw)
	case "error":
		// A warning, such as missing model metadata.
		e.Kind = agent.Notice
		e.Quotes = limit.Mentioned(item.Get("message").Raw)
	case "file_change":
		e.Edits = changesOf(item.Get("changes"))
	case "command_execution":
		readCommand(item, &e)
	case "mcp_tool_call":
		readToolCall(item, &e)
	case "web_search":
		query := item.Get("query")
		e.Authored = query.Str
		e.Ran = true
		e.Does = agent.Does("web search", query)
		e.Quotes = limit.Mentioned(query.Raw)
	default:
		// Plans, todo lists and items of newer versions.
		e.Kind = agent.Thought
		e.Quotes = limit.Mentioned(item.Raw)
	}
	return e
}

func rejected(status string) bool {
	switch status {
	case "failed", "declined":
		return true
	}
	return false
}

func changesOf(changes gjson.Result) (edits []policy.Edit) {
	agent.Each(changes, func(change gjson.Result) {
		if len(edits) < edit.Max {
			edits = append(edits, policy.Edit{Path: change.Get("path").Str})
		}
	})
	return edits
}

func readCommand(item gjson.Result, e *agent.Event) {
	command := item.Get("command")
	output := item.Get("aggregated_output").Raw
	e.Authored = command.Str
	e.Ran = true
	e.Does = agent.Does("$", command)
	e.Quotes = limit.Mentioned(command.Raw, output)
	failed := e.Rejected || agent.Count(item.Get("exit_code")) != 0
	e.Answered(e.Done && failed, output)
}

func readToolCall(item gjson.Result, e *agent.Event) {
	arguments := item.Get("arguments").Raw
	result, failure := item.Get("result").Raw, item.Get("error").Raw
	tool := item.Get("server").Str + " " + item.Get("tool").Str
	e.Authored = tool + " " + arguments
	e.Does = agent.Does(tool, item.Get("arguments"))
	e.Ran = true
	e.Quotes = limit.Mentioned(arguments, result, failure)
	e.Answered(e.Rejected, result+failure)
}
