package gateway

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// tokens holds one answer's counts. input includes cached tokens and cache writes. forHour is the part of written that
// went to the one-hour cache. output includes reasoning. estimated is the part that the provider did not report.
type tokens struct {
	input, cached, written, forHour, output, estimated int64
	costKnown                                          bool    // the provider reported usd
	usd                                                float64 // cost in USD
}

type answer struct {
	tokens      tokens
	inputKnown  bool           // reported by the provider
	outputKnown bool           // the final output was reported
	prose       int            // bytes of text, refusals included
	thought     int            // bytes of reasoning
	other       int            // bytes of tool arguments and encrypted reasoning
	piece       int            // bytes of the current item counted in other
	sure        sureness       // confidence in the prose, if reported
	text        bool           // visible text exists
	tool        bool           // the model called a tool
	ended       bool           // the model ended its answer
	over        bool           // no event follows
	whole       bool           // read to the end of the provider's answer
	broken      bool           // reading ended, but not because the agent left
	replaced    bool           // the agent gets the other try's answer
	stop        stopReason     // empty before the end
	failure     []byte         // error within the answer as JSON, or nil
	messages    messagesTokens // counts of the Messages protocol
	windows     []byte         // usage windows as JSON, or nil
}

// nothing reports whether the model ended an answer without text or a tool call.
func (a *answer) nothing() bool {
	if a.useful() || a.failure != nil {
		return false
	}
	return a.ended && a.stop != stopFilter
}

func (a *answer) useful() bool { return a.text || a.tool }

// cut reports whether an answer began but did not end. The agent must see a lost connection: after an orderly end,
// OpenCode would repeat the step endlessly.
func (a *answer) cut() bool {
	finished := a.ended || a.over
	return a.good() && !finished
}

func (a *answer) begun() bool {
	if a.ended || a.useful() {
		return true
	}
	return a.prose > 0 || a.thought > 0
}

// good reports whether an answer has begun without an error; awaited, whether neither answer nor error has come.
func (a *answer) good() bool    { return a.begun() && a.failure == nil }
func (a *answer) awaited() bool { return !a.begun() && a.failure == nil }

func (a *answer) left() bool {
	if a.failure != nil {
		return false
	}
	return !a.whole && !a.broken
}

func (a *answer) complete() bool {
	if a.failure != nil {
		return false
	}
	return a.ended || a.whole
}

// settle estimates counts that the provider did not report, so that hanging up does not make tokens free.
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

// inputOf estimates a request's input tokens from its bytes. Pictures have many bytes per token, so the largest context
// caps the estimate.
func inputOf(request int) int64 { return min(int64(request/bytesPerToken), maxContext) }

const maxContext = 1 << 20

// bytesPerToken is a rule of thumb for English and code.
const bytesPerToken = 4

func (a *answer) addText(text string) {
	a.prose += len(text)
	a.shows(text)
}

func (a *answer) shows(text string) {
	if strings.TrimSpace(text) != "" {
		a.text = true
	}
}

// stopReason says why a model ended its answer. After a filter or unknown reason a second try does not help.
type stopReason string

const (
	stopped    stopReason = "stop"
	stopLength stopReason = "length"
	stopTool   stopReason = "tool"
	stopFilter stopReason = "filter"
)

// stops maps the protocols' words, in lower case (references of 2025-11): Messages, Chat Completions, Responses
// (status and incomplete_details.reason), Gemini. Other words mean a filter.
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

// ends records why the model ended its answer, if it did.
func (a *answer) ends(why string) {
	if why != "" {
		a.ended, a.stop = true, cmp.Or(stops[strings.ToLower(why)], stopFilter)
	}
}

// maxReported exceeds any call's tokens. Larger counts are ignored.
const maxReported = 1 << 24

// usage records counts whose input includes cached tokens and cache writes.
func (a *answer) usage(t tokens, final bool) {
	t.costKnown, t.usd = a.tokens.costKnown, a.tokens.usd
	a.inputKnown, a.outputKnown = t.input <= maxReported, (a.outputKnown || final) && t.output <= maxReported
	if !a.inputKnown {
		t.input, t.cached, t.written, t.forHour = 0, 0, 0, 0
	}
	if t.output > maxReported {
		t.output = 0
	}
	a.tokens = t
}

// mostCost exceeds any call's cost in USD.
const mostCost = 1e4

// costs records the provider's cost in USD: OpenRouter's usage.cost, per the reference of 2025-11.
func (a *answer) costs(v gjson.Result) {
	if v.Type == gjson.Number {
		a.tokens.costKnown, a.tokens.usd = true, min(max(v.Num, 0), mostCost)
	}
}

func (a *answer) each(list gjson.Result, read func(gjson.Result, *answer)) {
	for v := range elements(list) {
		read(v, a)
	}
}
