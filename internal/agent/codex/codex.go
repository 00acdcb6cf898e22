// Package codex knows how codex 0.169.0 is started and what its output tells (codex.go), and what its
// session file does (session.go).
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

// Retries of codex before it reports a failure. Its defaults (4 and 5) keep a dead provider busy for 25 s and
// 30 requests; Pawl has its own breaker and backoff.
const (
	requestRetries = 2
	streamRetries  = 3
)

// openaiBaseURL is where an OPENAI_API_KEY is used unless OPENAI_BASE_URL says otherwise.
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

// wrote knows the lines of its output and of the sessions in its HOME.
func wrote(line gjson.Result) bool {
	switch line.Get("type").Str {
	case "thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.completed",
		"session_meta", "event_msg", "response_item":
		return true
	}
	return false
}

// build makes `codex exec` as the recorded runs of 0.169.0 want it: no sandbox and questions of its own, since
// Pawl's is around it; no rules or trust from the repository. The dash has it read standard input.
func build(r agent.Request) (agent.Launch, error) {
	args := []string{"exec"}
	if r.Session != "" {
		args = append(args, "resume", r.Session)
	}
	args = append(args, "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ignore-rules")
	args = agent.With(args, "--model=", r.Model)
	if r.Effort != "" {
		args = append(args, "-c", "model_reasoning_effort="+tomlString(r.Effort))
	}
	args = agent.With(args, "--image=", r.Pictures...)
	env := r.Endpoint.OnlyToken()
	env["CODEX_HOME"] = path.Join(r.Home, ".codex")
	return agent.Launch{Args: append(args, "-"), Env: env, Files: map[string]string{".codex/config.toml": configOf(r)}}, nil
}

// configOf is the whole configuration file. The built-in provider has no bound of its retries and ignores
// OPENAI_API_KEY and OPENAI_BASE_URL, so either, or an endpoint, gets a provider of its own. Else codex signs
// in as HOME says (auth.json, CODEX_API_KEY).
func configOf(r agent.Request) string {
	var b strings.Builder
	b.WriteString("check_for_update_on_startup = false\napproval_policy = \"never\"\ncli_auth_credentials_store = \"file\"\n")
	provider := providerOf(r)
	if provider != "" {
		b.WriteString("model_provider = \"pawl\"\n")
	}
	b.WriteString("\n[analytics]\nenabled = false\n\n[feedback]\nenabled = false\n\n[history]\npersistence = \"none\"\n")
	fmt.Fprintf(&b, "\n[shell_environment_policy]\nexclude = [\"OPENAI_API_KEY\", \"CODEX_API_KEY\", %s]\n", tomlString(agent.TokenVariable))
	fmt.Fprintf(&b, "\n[projects.%s]\ntrust_level = \"untrusted\"\n", tomlString(r.Dir))
	b.WriteString(provider)
	if len(r.TestTool) > 0 {
		// Else 0.169.0 hides the tools of servers behind a search, or in its code mode.
		fmt.Fprintf(&b, "\n[features.code_mode]\ndirect_only_tool_namespaces = [\"mcp__%s\"]\n", agent.ToolServer)
		args := make([]string, 0, len(r.TestTool))
		for _, arg := range r.TestTool[1:] {
			args = append(args, tomlString(arg))
		}
		fmt.Fprintf(&b, "\n[mcp_servers.%s]\ncommand = %s\nargs = [%s]\nstartup_timeout_sec = %d\ntool_timeout_sec = %d\n", agent.ToolServer,
			tomlString(r.TestTool[0]), strings.Join(args, ", "), int(agent.ToolStartup.Seconds()), int(agent.ToolTimeout.Seconds()))
	}
	return b.String()
}

// providerOf is the configuration of the provider, empty for the built-in one.
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
	fmt.Fprintf(&b, "\n[model_providers.pawl]\nname = \"pawl\"\nbase_url = %s\nwire_api = \"responses\"\n", tomlString(base))
	if variable != "" {
		fmt.Fprintf(&b, "env_key = %s\n", tomlString(variable))
	}
	fmt.Fprintf(&b, "request_max_retries = %d\nstream_max_retries = %d\n", requestRetries, streamRetries)
	return b.String()
}

// tomlString quotes s as a TOML basic string: JSON's, save one control character.
func tomlString(s string) string {
	quoted, _ := json.Marshal(s) // never fails for a string
	return strings.ReplaceAll(string(quoted), "\x7f", `\u007f`)
}

// parseLine reads one line of `codex exec --json`, or of a session file; others give nothing.
func parseLine(raw []byte, emit func(agent.Event)) {
	line := agent.Line(raw)
	switch line.Get("type").Str {
	case "thread.started":
		emit(agent.Event{Kind: agent.SessionStarted, ID: line.Get("thread_id").Str})
	case "turn.started":
		emit(agent.Event{Kind: agent.TurnStarted})
	case "turn.completed":
		emit(agent.Event{Kind: agent.Finished, Tokens: tokensOf(line.Get("usage"))})
	case "turn.failed":
		emit(agent.Event{Kind: agent.Failed, Text: line.Get("error.message").Str})
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
	status := item.Get("status").Str
	e := agent.Event{ID: item.Get("id").Str, Done: done, Kind: agent.ToolCall, Rejected: status == "failed" || status == "declined"}
	switch item.Get("type").Str {
	case "agent_message":
		text := item.Get("text")
		e.Kind, e.Text, e.Authored, e.Quotes = agent.Message, text.Str, text.Str, limit.Mentioned(text.Raw)
	case "reasoning":
		e.Kind, e.Quotes = agent.Thought, limit.Mentioned(item.Get("text").Raw)
	case "error":
		// A warning about the session, such as missing model metadata.
		e.Kind, e.Quotes = agent.Notice, limit.Mentioned(item.Get("message").Raw)
	case "file_change":
		agent.Each(item.Get("changes"), func(change gjson.Result) {
			if len(e.Edits) < edit.Max {
				e.Edits = append(e.Edits, policy.Edit{Path: change.Get("path").Str})
			}
		})
	case "command_execution":
		command, output := item.Get("command"), item.Get("aggregated_output").Raw
		e.Authored, e.Ran = command.Str, true
		e.Quotes = limit.Mentioned(command.Raw) || limit.Mentioned(output)
		e.Answered(done && (e.Rejected || agent.Count(item.Get("exit_code")) != 0), output)
	case "mcp_tool_call":
		arguments := item.Get("arguments").Raw
		e.Authored, e.Ran = item.Get("server").Str+" "+item.Get("tool").Str+" "+arguments, true
		e.Quotes = limit.Mentioned(arguments) || limit.Mentioned(item.Get("result").Raw) || limit.Mentioned(item.Get("error").Raw)
		e.Answered(e.Rejected, item.Get("result").Raw+item.Get("error").Raw)
	case "web_search":
		query := item.Get("query")
		e.Authored, e.Ran, e.Quotes = query.Str, true, limit.Mentioned(query.Raw)
	default:
		// Plans, todo lists and items of later versions.
		e.Kind, e.Quotes = agent.Thought, limit.Mentioned(item.Raw)
	}
	return e
}
