// Package claude starts Claude Code and parses its output.
package claude

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// retries limits claude's retries of a request. The default of ten takes three minutes.
const retries = "2"

// eventIdle and byteIdle limit claude's wait for a silent gateway, in milliseconds. The gateway holds an answer back
// until a tool call. claude 2.1.197 gives up after five minutes without bytes. Pings count as bytes, but not as events.
const (
	eventIdle = "3600000"
	byteIdle  = "300000"
)

var Adapter = agent.Adapter{
	Sessions:   agent.SafeSession,
	Build:      build,
	Parse:      Lines(editTools),
	Wrote:      wrote,
	SideModels: []string{"haiku"}, // for titles and summaries
	Credential: ".claude/.credentials.json",
}

func wrote(line gjson.Result) bool {
	switch line.Get("type").Str {
	case "assistant", "rate_limit_event":
		return true
	case "system", "result":
		return line.Get("subtype").Str != ""
	}
	return false
}

// build returns `claude -p` as in the recorded runs of 2.1.197. It asks no questions, since Pawl's sandbox contains it.
// It uses only the user's settings and Pawl's MCP servers, so it runs nothing from the repository.
func build(r agent.Request) (agent.Launch, error) {
	args := []string{
		"-p",
		"--output-format", "stream-json", "--verbose",
		"--dangerously-skip-permissions",
		"--setting-sources", "user",
		"--strict-mcp-config",
	}
	if r.Session != "" {
		args = append(args, "--resume", r.Session)
	}
	args = agent.With(agent.With(args, "--model=", r.Model), "--effort=", r.Effort)
	files := map[string]string{}
	if len(r.TestTool) > 0 {
		files[".claude/pawl-mcp.json"] = agent.Settings(map[string]any{"mcpServers": r.Servers(nil)})
		args = append(args, "--mcp-config="+path.Join(r.Home, ".claude/pawl-mcp.json"))
	}
	env := r.Endpoint.Variables()
	maps.Copy(env, map[string]string{
		"CLAUDE_CONFIG_DIR":       path.Join(r.Home, ".claude"),
		"CLAUDE_CODE_MAX_RETRIES": retries,
		// As root, claude needs a sandbox to skip permissions.
		"IS_SANDBOX": "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"DISABLE_TELEMETRY":                        "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		"MCP_TIMEOUT":                              strconv.FormatInt(agent.ToolStartup.Milliseconds(), 10),
		"MCP_TOOL_TIMEOUT":                         strconv.FormatInt(agent.ToolTimeout.Milliseconds(), 10),
		// Otherwise claude may hide a server's tools behind a search, and begin before the server has started.
		"ENABLE_TOOL_SEARCH":         "false",
		"MCP_CONNECTION_NONBLOCKING": "false",
		// By default, claude gives up on a silent tool earlier.
		"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": strconv.FormatInt(agent.ToolTimeout.Milliseconds(), 10),
	})
	if r.Endpoint != (agent.Endpoint{}) {
		env["CLAUDE_STREAM_IDLE_TIMEOUT_MS"] = eventIdle
		env["CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS"] = byteIdle
	}
	return agent.Launch{Args: args, Env: env, Files: files}, nil
}

var editTools = agent.EditTools{
	Write:   []string{"Write"},
	Replace: []string{"Edit"},
	Several: []string{"MultiEdit"},
	Path:    "file_path",
	Before:  "old_string",
	After:   "new_string",
}

// Lines returns a parser for lines of `claude -p --output-format stream-json` and of Claude Code's session files. Forks
// pass other tool names.
func Lines(tools agent.EditTools) func(raw []byte, emit func(agent.Event)) {
	return func(raw []byte, emit func(agent.Event)) { parseLine(agent.Line(raw), tools, emit) }
}

func parseLine(line gjson.Result, tools agent.EditTools, emit func(agent.Event)) {
	session := cmp.Or(line.Get("session_id").Str, line.Get("sessionId").Str)
	within := line.Get("parent_tool_use_id").Str
	say := func(e agent.Event) {
		e.Session, e.Within = session, within
		emit(e)
	}
	switch line.Get("type").Str {
	case "system":
		readSystem(line, say)
	case "assistant":
		readAssistant(line, tools, say)
	case "user":
		readUser(line.Get("message.content"), say)
	case "rate_limit_event":
		readLimit(line.Get("rate_limit_info"), say)
	case "result":
		readResult(line, say)
	}
}

func readSystem(line gjson.Result, emit func(agent.Event)) {
	switch line.Get("subtype").Str {
	case "init":
		emit(agent.Event{
			Kind: agent.SessionStarted,
			ID:   line.Get("session_id").Str,
			Dir:  line.Get("cwd").Str,
		})
		emit(agent.Event{Kind: agent.TurnStarted})
	case "api_retry":
		name, status := line.Get("error").Str, int(agent.Count(line.Get("error_status")))
		attempt, most := agent.Count(line.Get("attempt")), agent.Count(line.Get("max_retries"))
		e := agent.Event{
			Kind:   agent.Notice,
			Status: status,
			Names:  []string{name},
			Text:   fmt.Sprintf("API retry %d of %d: %s", attempt, most, name),
		}
		switch {
		case status != 0:
			e.Text += fmt.Sprintf(" (HTTP status %d)", status)
		case limit.Read(limit.Evidence{Names: e.Names}).Kind == "":
			e.Ending = policy.Disconnected // no answer from the server
		}
		emit(e)
	case "task_started":
		if line.Get("is_backgrounded").Bool() {
			emit(agent.Event{Task: line.Get("task_id").Str})
		}
	case "task_notification":
		emit(agent.Event{Task: line.Get("task_id").Str, TaskEnd: cmp.Or(line.Get("status").Str, "ended")})
	}
}

// readLimit parses a plan's window. A refusal without a window or reset is a transient 429 from the API.
func readLimit(info gjson.Result, emit func(agent.Event)) {
	if w, known := limit.ClaudeWindow(info); known {
		emit(agent.Event{Windows: []policy.Window{w}})
	}
	if info.Get("status").Str != "rejected" {
		return
	}
	e := agent.Event{
		Kind:   agent.Notice,
		Ending: policy.RateLimited,
		Text:   "the provider rejected the request",
	}
	if window := info.Get("rateLimitType").Str; window != "" {
		e.Ending = policy.UsageLimit
		e.Text += ": the limit of the window " + agent.Shorten(window, 80)
	}
	if at := agent.Count(info.Get("resetsAt")); at > 0 {
		e.Ending = policy.UsageLimit
		e.ResetsAt = time.Unix(at, 0).UTC()
	}
	emit(e)
}

// readAssistant parses the model's message, or the error that replaces it.
func readAssistant(line gjson.Result, tools agent.EditTools, emit func(agent.Event)) {
	message := line.Get("message")
	content, name := message.Get("content"), line.Get("error").Str
	synthetic := message.Get("model").Str == "<synthetic>" || line.Get("isApiErrorMessage").Bool()
	if synthetic || name != "" {
		readSynthetic(content, name, emit)
		return
	}
	sub := line.Get("parent_tool_use_id").Str != ""
	places := placesOf(message.Get("id").Str)
	agent.Each(content, func(part gjson.Result) {
		switch part.Get("type").Str {
		case "text":
			e := textOf(part.Get("text"))
			if sub {
				e.Kind = agent.Thought // a subagent's text is for the agent
			}
			emit(e)
		case "thinking":
			emit(agent.Event{Kind: agent.Thought, Quotes: limit.Mentioned(part.Get("thinking").Raw)})
		case "tool_use", "server_tool_use", "mcp_tool_use":
			e := callOf(part, tools)
			e.Place = places(e.ID)
			emit(e)
		default:
			readAnswer(part, emit)
		}
	})
	// Only session files have the stop reason in messages. The stream has it in the result.
	switch reason := message.Get("stop_reason").Str; {
	case sub:
	case reason == "end_turn":
		emit(agent.Event{Kind: agent.StepEnded, Ending: policy.Completed})
	case reason == "max_tokens":
		emit(agent.Event{Kind: agent.StepEnded, Ending: policy.CutOff})
	}
}

// placesOf numbers a message's calls that share an id. Several lines may repeat a message's parts.
func placesOf(message string) func(id string) string {
	calls := map[string]int{}
	return func(id string) string {
		n := calls[id]
		calls[id]++
		if n == 0 {
			return message
		}
		return fmt.Sprintf("%s %d", message, n)
	}
}

func textOf(text gjson.Result) agent.Event {
	return agent.Event{
		Kind:     agent.Message,
		Text:     text.Str,
		Authored: text.Str,
		Quotes:   limit.Mentioned(text.Raw),
	}
}

func callOf(part gjson.Result, tools agent.EditTools) agent.Event {
	name, input := part.Get("name").Str, part.Get("input")
	return agent.Event{
		Kind:     agent.ToolCall,
		ID:       part.Get("id").Str,
		Edits:    editsOf(tools, name, input),
		Authored: name + " " + input.Raw,
		Ran:      true,
		Does:     agent.Does(name, input),
		Quotes:   limit.Mentioned(input.Raw),
	}
}

func readSynthetic(content gjson.Result, name string, emit func(agent.Event)) {
	var texts []string
	agent.Each(content, func(part gjson.Result) {
		if s := part.Get("text").Str; s != "" {
			texts = append(texts, s)
		}
	})
	text := strings.Join(texts, "\n")
	refused := limit.Read(limit.Evidence{Seen: limit.Plain, Message: text})
	if name == "" && refused.Kind == "" && !strings.HasPrefix(text, "API Error") {
		return
	}
	e := agent.Event{Kind: agent.Notice, Text: text}
	if name != "" {
		e.Names = []string{name}
	}
	emit(e)
}

func editsOf(tools agent.EditTools, tool string, input gjson.Result) []policy.Edit {
	if path := input.Get("notebook_path").Str; tool == "NotebookEdit" && path != "" {
		e := edit.Replaced(path, "", input.Get("new_source").Str)
		e.Key = policy.Mix(e.Key, policy.Hash(input.Get("cell_id").Raw+input.Get("edit_mode").Raw))
		return []policy.Edit{e}
	}
	return tools.Edits(tool, input)
}

func readUser(content gjson.Result, emit func(agent.Event)) {
	agent.Each(content, func(part gjson.Result) {
		text := part.Get("text").Str
		if strings.HasPrefix(text, "[Request interrupted by user") {
			emit(agent.Event{Kind: agent.Notice, Text: text, Ending: policy.Killed})
			return
		}
		readAnswer(part, emit)
	})
}

// readAnswer parses a call's answer. Answers of the provider's own tools, such as web_search_tool_result, are in the
// model's messages.
func readAnswer(part gjson.Result, emit func(agent.Event)) {
	if !strings.HasSuffix(part.Get("type").Str, "tool_result") {
		return
	}
	content := part.Get("content").Raw
	e := agent.Event{
		Kind:     agent.ToolCall,
		ID:       part.Get("tool_use_id").Str,
		Done:     true,
		Rejected: part.Get("is_error").Bool(),
		Quotes:   limit.Mentioned(content),
	}
	e.Answered(e.Rejected, content)
	emit(e)
}

// readResult parses the final event. After an API refusal, is_error is set but the subtype is "success".
func readResult(line gjson.Result, emit func(agent.Event)) {
	subtype, answer := line.Get("subtype").Str, line.Get("result")
	e := agent.Event{
		Kind: agent.Finished,
		Text: answer.Str,
		// A missing answer does not count as empty.
		Wordless: answer.Exists() && strings.TrimSpace(answer.Str) == "",
		Turns:    int(agent.Count(line.Get("num_turns"))),
		Cost:     agent.Dollars(line.Get("total_cost_usd")),
		Tokens:   cmp.Or(totalOf(line.Get("modelUsage")), tokensOf(line.Get("usage"))),
		Ending:   stopOf(line.Get("terminal_reason").Str, subtype, line.Get("stop_reason").Str),
	}
	failed, turns := line.Get("is_error"), line.Get("num_turns")
	e.Idle = turns.Exists() && turns.Num == 0 && e.Status == 0
	refused := failed.Bool() || strings.HasPrefix(subtype, "error")
	if !refused && !failed.Exists() {
		return // the run's end is unknown
	}
	if refused {
		var all []string
		agent.Each(line.Get("errors"), func(v gjson.Result) { all = append(all, v.Str) })
		e.Text = cmp.Or(e.Text, strings.Join(all, "\n"), line.Get("error.message").Str)
		e.Status = int(agent.Count(line.Get("api_error_status")))
		e.Text = cmp.Or(e.Text, subtype)
	}
	if refused || e.Ending != "" {
		e.Kind = agent.Failed
	}
	agent.EmitFinal(line, e, emit)
}

func stopOf(terminal, subtype, stopped string) policy.Ending {
	switch {
	case strings.HasPrefix(terminal, "aborted"):
		return policy.Killed
	case terminal == "prompt_too_long", stopped == "model_context_window_exceeded":
		return policy.ContextOverflow
	case terminal == "max_turns",
		strings.HasPrefix(subtype, "error_max_turns"),
		strings.HasPrefix(subtype, "error_max_budget"):
		return policy.TurnLimit
	case stopped == "refusal":
		return policy.NoAnswer
	case stopped == "max_tokens":
		return policy.CutOff
	}
	return ""
}

// totalOf sums the tokens of all models in a session; nil if unknown.
func totalOf(models gjson.Result) *policy.Tokens {
	var total policy.Tokens
	models.ForEach(func(_, used gjson.Result) bool {
		total = total.Plus(inputApart(used, "inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens"))
		return true
	})
	return agent.Reported(total)
}

// tokensOf returns the usage since the last prompt; nil if unknown.
func tokensOf(usage gjson.Result) *policy.Tokens {
	return agent.Reported(inputApart(usage, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"))
}

// inputApart sums the tokens of an API with separate fields for fresh, cached and newly cached input.
func inputApart(usage gjson.Result, fresh, cached, written, output string) policy.Tokens {
	read := agent.Count(usage.Get(cached))
	return policy.Tokens{
		Input:       agent.Count(usage.Get(fresh)) + read + agent.Count(usage.Get(written)),
		CachedInput: read,
		Output:      agent.Count(usage.Get(output)),
	}
}
