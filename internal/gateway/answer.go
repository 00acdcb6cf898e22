package gateway

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// tokens are the figures of one answer. Input includes cached and written to a cache, of which forHour is kept
// for an hour; output includes reasoning; estimated is the part that the provider did not tell.
type tokens struct {
	input, cached, written, forHour, output, estimated int64
	told                                               bool    // the provider told the cost itself, as routers do:
	usd                                                float64 // this
}

type answer struct {
	tokens      tokens
	inputKnown  bool           // the provider told the input
	outputKnown bool           // and the final output
	prose       int            // bytes of text, a refusal's too
	thought     int            // bytes of reasoning
	other       int            // bytes of the arguments of tools and of sealed reasoning
	piece       int            // of other, those of the item that has begun
	sure        sureness       // of the prose, where the provider tells it
	text        bool           // of the prose, something that a person can read
	tool        bool           // a tool was called
	ended       bool           // the model has ended its answer
	over        bool           // nothing follows
	whole       bool           // it was read to the end of what the provider sent
	broken      bool           // reading it ended by no will of the agent
	replaced    bool           // the answer of the other try is the one that the agent sees
	stop        stopReason     // why the model ended; "" where it has not
	failure     []byte         // the error that came within the answer, as JSON; nil without
	messages    messagesTokens // as Messages parts the figures
}

// nothing reports whether an answer ended well and holds nothing for anybody.
func (a *answer) nothing() bool {
	switch {
	case a.tool, a.text, a.failure != nil, a.stop == stopFilter:
		return false
	}
	return a.ended
}

// cut reports whether an answer is begun and not ended. An agent must see a lost connection then: OpenCode
// takes an orderly end for a step that wants another, without end.
func (a *answer) cut() bool {
	switch {
	case a.ended, a.over, a.failure != nil:
		return false
	}
	return a.begun()
}

func (a *answer) begun() bool {
	switch {
	case a.prose > 0, a.thought > 0, a.text, a.tool, a.ended:
		return true
	}
	return false
}

// good reports whether an answer has begun and no error came within it, awaited whether neither has come.
func (a *answer) good() bool    { return a.begun() && a.failure == nil }
func (a *answer) awaited() bool { return !a.begun() && a.failure == nil }

// left reports whether it was the agent that ended the call.
func (a *answer) left() bool {
	switch {
	case a.whole, a.broken, a.failure != nil:
		return false
	}
	return true
}

// complete reports whether an answer came to its end without an error.
func (a *answer) complete() bool {
	if a.failure != nil {
		return false
	}
	return a.ended || a.whole
}

// settle completes the figures of an answer that began and ended before the provider told
// them: an agent must not get tokens for free by hanging up in the middle.
func (a *answer) settle(request int) {
	if !a.inputKnown {
		guess := inputOf(request)
		a.tokens.input = guess
		a.tokens.estimated += guess
		a.inputKnown = true
	}
	if !a.outputKnown {
		if guess := int64((a.prose + a.thought + a.other) / bytesPerToken); guess > a.tokens.output {
			a.tokens.estimated += guess - a.tokens.output
			a.tokens.output = guess
		}
		a.outputKnown = true
	}
}

// inputOf estimates the input of a request of so many bytes. Pictures weigh more
// than they count, so it is no more than the largest context there is.
func inputOf(request int) int64 { return min(int64(request/bytesPerToken), maxContext) }

// maxContext is in tokens.
const maxContext = 1 << 20

// bytesPerToken is the usual rule of thumb for English and code.
const bytesPerToken = 4

func (a *answer) says(text string) {
	a.prose += len(text)
	a.shows(text)
}

// shows notes a text that was counted before, or is counted elsewhere.
func (a *answer) shows(text string) {
	if strings.TrimSpace(text) != "" {
		a.text = true
	}
}

// stopReason is why a model ended its answer, the same in all protocols. After a filter, or a word that is not
// in stops, asking once more does not help.
type stopReason string

const (
	stopped    stopReason = "stop"
	stopLength stopReason = "length"
	stopTool   stopReason = "tool"
	stopFilter stopReason = "filter"
)

// stops are the words of the protocols, in lower case, by their references of 2025-11: Messages, Chat Completions,
// Responses (status and incomplete_details.reason), Gemini. Every other word is a filter's, of which Gemini has a dozen.
var stops = map[string]stopReason{
	"stop":          stopped,
	"end_turn":      stopped,
	"stop_sequence": stopped,
	"completed":     stopped,
	"pause_turn":    stopped,

	"length":                        stopLength,
	"max_tokens":                    stopLength,
	"max_output_tokens":             stopLength,
	"model_context_window_exceeded": stopLength,

	"tool_calls":    stopTool,
	"function_call": stopTool,
	"tool_use":      stopTool,
}

// ends notes why the model ended its answer, "" where it did not.
func (a *answer) ends(why string) {
	if why != "" {
		a.ended, a.stop = true, cmp.Or(stops[strings.ToLower(why)], stopFilter)
	}
}

// mostTold is more tokens than any model takes or gives in one call. Who tells more did not count, so an estimate stands.
const mostTold = 1 << 24

// usage takes down the figures of an answer whose input includes the cached and the written.
func (a *answer) usage(t tokens, final bool) {
	t.told, t.usd = a.tokens.told, a.tokens.usd
	a.inputKnown, a.outputKnown = t.input <= mostTold, (a.outputKnown || final) && t.output <= mostTold
	if !a.inputKnown {
		t.input, t.cached, t.written, t.forHour = 0, 0, 0, 0
	}
	if t.output > mostTold {
		t.output = 0
	}
	a.tokens = t
}

// mostCost is more than any call costs, in USD.
const mostCost = 1e4

// costs takes the provider's own figure, in USD: OpenRouter's usage.cost, by its reference of 2025-11.
func (a *answer) costs(v gjson.Result) {
	if v.Type == gjson.Number {
		a.tokens.told, a.tokens.usd = true, min(max(v.Num, 0), mostCost)
	}
}

func (a *answer) each(list gjson.Result, read func(gjson.Result, *answer)) {
	for v := range elements(list) {
		read(v, a)
	}
}

func readResponses(e gjson.Result, a *answer) {
	kind, delta := e.Get("type").Str, e.Get("delta").Str
	switch {
	case kind == "" && e.Get("object").Str == "response":
		readResponse(e, a)
	case kind == "error":
		a.failure = []byte(e.Raw)
	case kind == "response.failed":
		a.failure = []byte(e.Get("response").Raw)
		a.ended, a.over = true, true
		readResponse(e.Get("response"), a)
	case kind == "response.completed", kind == "response.incomplete":
		readResponse(e.Get("response"), a)
	case e.Get("item").IsObject():
		item := e.Get("item")
		readItem(item, a)
		if kind == "response.output_item.done" {
			a.closeItem(item)
		}
	case strings.HasSuffix(kind, "_call_arguments.delta"), strings.HasSuffix(kind, "_call_input.delta"):
		a.tool = true
		a.other += len(delta)
		a.piece += len(delta)
	case kind == "response.output_text.delta", kind == "response.refusal.delta":
		a.says(delta)
		a.sure.add(e.Get("logprobs.#.logprob"))
	case strings.HasSuffix(kind, ".delta"):
		a.thought += len(delta)
	}
}

// closeItem counts what of an item did not come in pieces: the arguments of a tool of each kind, and sealed reasoning.
func (a *answer) closeItem(item gjson.Result) {
	whole := len(item.Get("action").Raw)
	for _, name := range []string{"arguments", "input", "encrypted_content"} {
		whole += len(item.Get(name).Str)
	}
	a.other += max(whole-a.piece, 0)
	a.piece = 0
}

// readResponse reads the response as a whole, which ends the answer.
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

// readItem sees tool calls of every kind (function_call, custom_tool_call, local_shell_call, …) and visible
// text, whose length was counted when it came in pieces.
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
	if u := c.Get("usage"); u.IsObject() { // some servers count in every chunk
		a.costs(u.Get("cost"))
		a.usage(tokens{
			input:  count(u.Get("prompt_tokens")),
			cached: count(u.Get("prompt_tokens_details.cached_tokens")),
			output: count(u.Get("completion_tokens")),
		}, a.ended)
	}
}

func readChatMessage(m gjson.Result, a *answer) {
	a.says(m.Get("content").String() + m.Get("refusal").Str) // parts of another form are text, too
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

// onlyUsage reports whether a chunk of a chat completion carries nothing but usage.
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
	a.says(b.Get("text").Str)
	a.thought += len(b.Get("thinking").Str)
	// What nobody reads: the arguments of a tool, in pieces or whole, a signature, redacted reasoning.
	a.other += len(b.Get("partial_json").Str) + len(b.Get("input").Raw)
	a.other += len(b.Get("signature").Str) + len(b.Get("data").Str)
	kind := b.Get("type").Str
	switch {
	case strings.HasSuffix(kind, "tool_use"), kind == "input_json_delta": // also server_tool_use, mcp_tool_use
		a.tool = true
	}
}

// messagesTokens are the figures of Messages as that protocol parts them. Its
// input leaves out what was read from and written to the cache.
type messagesTokens struct {
	fresh, read, written, hour, output int64
	told                               bool // a kind of input
}

// readMessagesUsage adds the three kinds of input together, so that input means
// the same in all protocols. Fields that a later event lacks keep their value.
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
			m.told = true
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
	a.inputKnown = a.inputKnown && m.told
}

// readGemini reads a chunk, a whole body, or the array of chunks that a stream without alt=sse is.
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
	if u := c.Get("usageMetadata"); u.IsObject() { // each replaces the one before
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
		a.says(text)
	}
	a.other += len(call) + len(code) + len(part.Get("thoughtSignature").Str)
	if call+code != "" {
		a.tool = true
	}
}
