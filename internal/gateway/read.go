package gateway

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

func readResponses(e gjson.Result, a *answer) {
	response := e.Get("response")
	switch kind := e.Get("type").Str; kind {
	case "error":
		a.failure = []byte(e.Raw)
	case "response.failed":
		a.failure = []byte(response.Raw)
		a.ended, a.over = true, true
		readResponse(response, a)
	case "response.completed", "response.incomplete":
		readResponse(response, a)
	case "codex.rate_limits":
		a.windows = []byte(e.Get("rate_limits").Raw)
	default:
		readOutput(kind, e, a)
	}
}

// readOutput reads a whole response, a stream's item, or a piece of an item.
func readOutput(kind string, e gjson.Result, a *answer) {
	item := e.Get("item")
	switch {
	case kind == "" && e.Get("object").Str == "response":
		readResponse(e, a)
	case !item.IsObject():
		readDelta(kind, e, a)
	default:
		readItem(item, a)
		if kind == "response.output_item.done" {
			a.closeItem(item)
		}
	}
}

func readDelta(kind string, e gjson.Result, a *answer) {
	delta := e.Get("delta").Str
	switch {
	case strings.HasSuffix(kind, "_call_arguments.delta"), strings.HasSuffix(kind, "_call_input.delta"):
		a.tool = true
		a.other += len(delta)
		a.piece += len(delta)
	case kind == "response.output_text.delta", kind == "response.refusal.delta":
		a.addText(delta)
		a.sure.add(e.Get("logprobs.#.logprob"))
	case strings.HasSuffix(kind, ".delta"):
		a.thought += len(delta)
	}
}

// closeItem counts parts that did not come in pieces: tool arguments and encrypted reasoning.
func (a *answer) closeItem(item gjson.Result) {
	whole := len(item.Get("action").Raw)
	for _, name := range []string{"arguments", "input", "encrypted_content"} {
		whole += len(item.Get(name).Str)
	}
	a.other += max(whole-a.piece, 0)
	a.piece = 0
}

func readResponse(r gjson.Result, a *answer) {
	if !r.IsObject() {
		return
	}
	a.over = true
	a.ends(cmp.Or(r.Get("incomplete_details.reason").Str, r.Get("status").Str, "incomplete"))
	a.each(r.Get("output"), readItem)
	if u := r.Get("usage"); u.IsObject() {
		a.costs(u.Get("cost"))
		a.usage(tokens{
			input:  count(u.Get("input_tokens")),
			cached: count(u.Get("input_tokens_details.cached_tokens")),
			output: count(u.Get("output_tokens")),
		}, true)
	}
}

// readItem records tool calls of every kind, and whether text is visible. The deltas' bytes are already counted.
func readItem(item gjson.Result, a *answer) {
	kind := item.Get("type").Str
	if strings.HasSuffix(kind, "_call") {
		a.tool = true
	}
	if kind == "message" {
		a.each(item.Get("content"), func(c gjson.Result, a *answer) {
			a.shows(c.Get("text").Str + c.Get("refusal").Str)
		})
	}
}

func readChat(c gjson.Result, a *answer) {
	if c.Get("error").Type != gjson.Null {
		a.failure = []byte(c.Raw)
	}
	a.each(c.Get("choices"), func(choice gjson.Result, a *answer) {
		readChatMessage(choice.Get("delta"), a)
		readChatMessage(choice.Get("message"), a)
		a.sure.add(choice.Get("logprobs.content.#.logprob"))
		a.ends(choice.Get("finish_reason").Str)
	})
	if u := c.Get("usage"); u.IsObject() { // some servers report in every chunk
		a.costs(u.Get("cost"))
		a.usage(tokens{
			input:  count(u.Get("prompt_tokens")),
			cached: count(u.Get("prompt_tokens_details.cached_tokens")),
			output: count(u.Get("completion_tokens")),
		}, a.ended)
	}
}

func readChatMessage(m gjson.Result, a *answer) {
	a.addText(m.Get("content").String() + m.Get("refusal").Str) // content in other forms counts as text
	a.thought += len(m.Get("reasoning_content").Str) + len(m.Get("reasoning").Str)
	a.each(m.Get("tool_calls"), readCall)
	if call := m.Get("function_call"); call.Type != gjson.Null {
		readCall(call, a)
	}
}

func readCall(call gjson.Result, a *answer) {
	a.tool = true
	a.other += len(call.Get("arguments").Str) + len(call.Get("function.name").Str) + len(call.Get("function.arguments").Str)
}

func onlyUsage(c gjson.Result) bool {
	return c.Get("usage").Type != gjson.Null && len(c.Get("choices").Array()) == 0
}

func readMessages(e gjson.Result, a *answer) {
	switch e.Get("type").Str {
	case "error":
		a.failure = []byte(e.Raw)
	case "message":
		a.each(e.Get("content"), readBlock)
		a.ends(e.Get("stop_reason").Str)
		readMessagesUsage(e.Get("usage"), a, true)
		a.over = true
	case "message_start":
		readMessagesUsage(e.Get("message.usage"), a, false)
	case "content_block_start":
		readBlock(e.Get("content_block"), a)
	case "content_block_delta":
		readBlock(e.Get("delta"), a)
	case "message_delta":
		a.ends(e.Get("delta.stop_reason").Str)
		readMessagesUsage(e.Get("usage"), a, true)
	case "message_stop":
		a.over = true
	}
}

func readBlock(b gjson.Result, a *answer) {
	a.addText(b.Get("text").Str)
	a.thought += len(b.Get("thinking").Str)
	// Invisible parts: tool arguments, signatures, redacted reasoning.
	a.other += len(b.Get("partial_json").Str) + len(b.Get("input").Raw)
	a.other += len(b.Get("signature").Str) + len(b.Get("data").Str)
	kind := b.Get("type").Str
	if strings.HasSuffix(kind, "tool_use") || kind == "input_json_delta" { // also server_tool_use, mcp_tool_use
		a.tool = true
	}
}

// messagesTokens holds the Messages counts. Its input excludes cache reads and writes.
type messagesTokens struct {
	fresh, read, written, hour, output int64
	inputKnown                         bool // at least one kind of input
}

// readMessagesUsage adds the three kinds of input, as other protocols do. Missing fields keep their values.
func readMessagesUsage(u gjson.Result, a *answer, final bool) {
	if !u.IsObject() {
		return
	}
	m := &a.messages
	for name, to := range map[string]*int64{
		"input_tokens":                &m.fresh,
		"cache_read_input_tokens":     &m.read,
		"cache_creation_input_tokens": &m.written,
	} {
		if v := u.Get(name); v.Type != gjson.Null {
			*to = count(v)
			m.inputKnown = true
		}
	}
	if v := u.Get("output_tokens"); v.Type != gjson.Null {
		m.output = count(v)
	}
	if kept := u.Get("cache_creation"); kept.IsObject() {
		m.hour = count(kept.Get("ephemeral_1h_input_tokens"))
	}
	a.costs(u.Get("cost"))
	a.usage(tokens{
		input:   m.fresh + m.read + m.written,
		cached:  m.read,
		written: m.written,
		forHour: min(m.hour, m.written),
		output:  m.output,
	}, final)
	a.inputKnown = a.inputKnown && m.inputKnown
}

// readGemini reads a chunk, a body, or the array of a stream without alt=sse.
func readGemini(c gjson.Result, a *answer) {
	if c.IsArray() {
		a.each(c, func(chunk gjson.Result, a *answer) {
			if !chunk.IsArray() {
				readGemini(chunk, a)
			}
		})
		return
	}
	if c.Get("error").Type != gjson.Null && !a.over {
		a.failure = []byte(c.Raw)
	}
	a.each(c.Get("candidates"), func(candidate gjson.Result, a *answer) {
		a.each(candidate.Get("content.parts"), readPart)
		a.sure.add(candidate.Get("logprobsResult.chosenCandidates.#.logProbability"))
		if finish := candidate.Get("finishReason").Str; finish != "" {
			a.ends(finish)
			a.over = true
		}
	})
	if c.Get("promptFeedback.blockReason").Str != "" {
		a.ends("blocked")
		a.over = true
	}
	if u := c.Get("usageMetadata"); u.IsObject() { // replaces the previous one
		a.usage(tokens{
			input:  count(u.Get("promptTokenCount")) + count(u.Get("toolUsePromptTokenCount")),
			cached: count(u.Get("cachedContentTokenCount")),
			output: count(u.Get("candidatesTokenCount")) + count(u.Get("thoughtsTokenCount")),
		}, a.ended)
	}
}

func readPart(part gjson.Result, a *answer) {
	text, call, code := part.Get("text").Str, part.Get("functionCall").Raw, part.Get("executableCode").Raw
	if part.Get("thought").Type == gjson.True {
		a.thought += len(text)
	} else {
		a.addText(text)
	}
	a.other += len(call) + len(code) + len(part.Get("thoughtSignature").Str)
	if call != "" || code != "" {
		a.tool = true
	}
}
