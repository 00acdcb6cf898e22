package agent

import (
	"fmt"
	"strings"
	"time"
)

// claudeLine reads one line of `claude -p --output-format stream-json`, or of a
// session file of Claude Code. Lines that are not events give nothing.
func claudeLine(line []byte, emit func(Event)) {
	var kind, session []byte
	members(line, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "session_id", "sessionId":
			session = value
		}
	})
	name := stringOf(session)
	say := func(e Event) {
		e.Session = name
		emit(e)
	}
	switch string(bare(kind)) {
	case "system":
		claudeSystem(line, say)
	case "assistant":
		claudeAssistant(line, say)
	case "user":
		claudeUser(member(member(line, "message"), "content"), say)
	case "rate_limit_event":
		claudeLimit(member(line, "rate_limit_info"), say)
	case "result":
		claudeResult(line, say)
	}
}

func claudeSystem(line []byte, emit func(Event)) {
	switch string(bare(member(line, "subtype"))) {
	case "init":
		emit(Event{Kind: SessionStarted, ID: stringOf(member(line, "session_id")), Dir: stringOf(member(line, "cwd"))})
		emit(Event{Kind: TurnStarted})
	case "api_retry":
		name, status := stringOf(member(line, "error")), int(intOf(member(line, "error_status")))
		e := Event{Kind: Notice, Ending: claudeEnding(name, status, ""), Text: fmt.Sprintf("API retry %d of %d: %s",
			intOf(member(line, "attempt")), intOf(member(line, "max_retries")), name)}
		if status != 0 {
			e.Text += fmt.Sprintf(" (HTTP status %d)", status)
		} else if e.Ending == "" {
			e.Ending = Disconnected // no answer of the server at all
		}
		emit(e)
	}
}

// claudeLimit reads the state of a plan's window. A refusal that names no
// window and no reset is the transient 429 of the API and not the plan's limit.
func claudeLimit(info []byte, emit func(Event)) {
	if string(bare(member(info, "status"))) != "rejected" {
		return
	}
	e := Event{Kind: Notice, Ending: RateLimited, Text: "the provider rejected the request"}
	if window := stringOf(member(info, "rateLimitType")); window != "" {
		e.Ending, e.Text = UsageLimit, e.Text+": the limit of the window "+shorten(window, 80)
	}
	if at := intOf(member(info, "resetsAt")); at > 0 {
		t := time.Unix(at, 0).UTC()
		e.Ending, e.ResetsAt = UsageLimit, &t
	}
	emit(e)
}

// claudeAssistant reads a message of the model, or one that the CLI wrote in
// its place to show an error.
func claudeAssistant(line []byte, emit func(Event)) {
	message := member(line, "message")
	content, name := member(message, "content"), stringOf(member(line, "error"))
	if name != "" || string(bare(member(message, "model"))) == "<synthetic>" || string(member(line, "isApiErrorMessage")) == "true" {
		claudeSynthetic(content, name, emit)
		return
	}
	sub := stringOf(member(line, "parent_tool_use_id")) != ""
	elements(content, func(part []byte) {
		switch string(bare(member(part, "type"))) {
		case "text":
			raw := member(part, "text")
			e := Event{Kind: Message, Text: stringOf(raw), Quotes: quotesLimit(raw)}
			if e.Wrote = e.Text; sub {
				e.Kind = Thought // a helper of the agent talks to the agent
			}
			emit(e)
		case "thinking":
			emit(Event{Kind: Thought, Quotes: quotesLimit(member(part, "thinking"))})
		case "tool_use", "server_tool_use", "mcp_tool_use":
			name, input := stringOf(member(part, "name")), member(part, "input")
			emit(Event{Kind: ToolCall, ID: stringOf(member(part, "id")), Edits: claudeEdits(name, input),
				Wrote: name + " " + string(input), Ran: true, Quotes: quotesLimit(input)})
		}
	})
	// Only session files name the reason here; the stream leaves it to the result.
	switch reason := string(bare(member(message, "stop_reason"))); {
	case sub:
	case reason == "end_turn":
		emit(Event{Kind: StepEnded, Ending: Completed})
	case reason == "max_tokens":
		emit(Event{Kind: StepEnded, Ending: CutOff})
	}
}

func claudeSynthetic(content []byte, name string, emit func(Event)) {
	var texts []string
	elements(content, func(part []byte) {
		if s := stringOf(member(part, "text")); s != "" {
			texts = append(texts, s)
		}
	})
	text := strings.Join(texts, "\n")
	ending, known := isLimitMessage(text)
	if !known && (name != "" || strings.HasPrefix(text, "API Error")) {
		ending, known = claudeEnding(name, 0, text), true
	}
	if known {
		emit(Event{Kind: Notice, Text: text, Ending: ending})
	}
}

// claudeEdits are the edits that a tool call makes.
func claudeEdits(tool string, input []byte) []Edit {
	path := stringOf(member(input, "file_path"))
	switch tool {
	case "NotebookEdit":
		path = stringOf(member(input, "notebook_path"))
	case "Edit", "MultiEdit", "Write":
	default:
		return nil
	}
	if path == "" {
		return nil
	}
	switch tool {
	case "Write":
		return []Edit{written(path, stringOf(member(input, "content")))}
	case "MultiEdit":
		return []Edit{severalEdits(path, member(input, "edits"), "old_string", "new_string")}
	case "NotebookEdit":
		e := replaced(path, "", stringOf(member(input, "new_source")))
		e.Key = mixKeys(e.Key, hashOf(string(member(input, "cell_id"))+string(member(input, "edit_mode"))))
		return []Edit{e}
	}
	return []Edit{replaced(path, stringOf(member(input, "old_string")), stringOf(member(input, "new_string")))}
}

// severalEdits reads a list of replacements in one file.
func severalEdits(path string, list []byte, before, after string) Edit {
	var parts []Edit
	elements(list, func(part []byte) {
		if len(parts) < maxEdits {
			parts = append(parts, replaced(path, stringOf(member(part, before)), stringOf(member(part, after))))
		}
	})
	return joined(path, parts)
}

// claudeUser reads what tools answered.
func claudeUser(content []byte, emit func(Event)) {
	elements(content, func(part []byte) {
		switch string(bare(member(part, "type"))) {
		case "tool_result", "mcp_tool_result":
			content := member(part, "content")
			e := Event{Kind: ToolCall, ID: stringOf(member(part, "tool_use_id")), Done: true,
				Rejected: string(member(part, "is_error")) == "true", Quotes: quotesLimit(content)}
			e.fail(e.Rejected, content)
			emit(e)
		case "text":
			if text := stringOf(member(part, "text")); strings.HasPrefix(text, "[Request interrupted by user") {
				emit(Event{Kind: Notice, Text: text, Ending: Killed})
			}
		}
	})
}

// claudeResult reads the final event. Its subtype stays "success" when the API
// refused; is_error tells.
func claudeResult(line []byte, emit func(Event)) {
	subtype := stringOf(member(line, "subtype"))
	e := Event{Kind: Finished, Text: stringOf(member(line, "result")), Turns: int(intOf(member(line, "num_turns"))),
		Cost: floatOf(member(line, "total_cost_usd")), Tokens: claudeUsage(member(line, "usage"))}
	e.Ending = claudeStop(stringOf(member(line, "terminal_reason")), subtype, stringOf(member(line, "stop_reason")))
	refused := string(member(line, "is_error")) == "true" || strings.HasPrefix(subtype, "error")
	if refused && e.Text == "" {
		var all []string
		elements(member(line, "errors"), func(v []byte) { all = append(all, stringOf(v)) })
		e.Text = strings.Join(all, "\n")
	}
	if refused && e.Ending == "" {
		e.Ending = claudeEnding("", int(intOf(member(line, "api_error_status"))), e.Text)
	}
	if refused && e.Text == "" {
		e.Text = subtype
	}
	if refused || e.Ending != "" {
		e.Kind = Failed
	}
	emit(e)
}

// claudeStop names the ending that the reasons of a result stand for.
func claudeStop(terminal, subtype, stopped string) Ending {
	switch {
	case strings.HasPrefix(terminal, "aborted"):
		return Killed
	case terminal == "prompt_too_long", stopped == "model_context_window_exceeded":
		return ContextOverflow
	case strings.HasPrefix(subtype, "error_max_turns"), strings.HasPrefix(subtype, "error_max_budget"), terminal == "max_turns":
		return TurnLimit
	case stopped == "refusal":
		return NoAnswer
	case stopped == "max_tokens":
		return CutOff
	}
	return ""
}

// claudeEnding names the ending of an error by its name, where that is clear,
// else by its text, else by the HTTP status; "" where nothing tells.
func claudeEnding(name string, status int, text string) Ending {
	switch name {
	case "authentication_failed", "oauth_org_not_allowed":
		return Auth
	case "billing_error":
		return UsageLimit
	case "model_not_found":
		return Misconfigured
	case "max_output_tokens":
		return CutOff
	case "overloaded":
		return Overloaded
	}
	if ending, known := classifyFailure(text); known {
		return ending
	}
	if ending := statusEnding(status); ending != "" {
		return ending
	}
	switch name {
	case "rate_limit":
		return RateLimited
	case "server_error":
		return Overloaded
	}
	return ""
}

// claudeUsage sums the input, which the API counts apart by how it was cached.
func claudeUsage(raw []byte) *Tokens {
	if raw == nil {
		return nil
	}
	cached := intOf(member(raw, "cache_read_input_tokens"))
	return &Tokens{
		Input:       intOf(member(raw, "input_tokens")) + intOf(member(raw, "cache_creation_input_tokens")) + cached,
		CachedInput: cached,
		Output:      intOf(member(raw, "output_tokens")),
	}
}
