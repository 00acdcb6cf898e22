package gateway

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// tokens are one answer's counts. Input includes cached and written to a cache, with forHour kept for an hour;
// output includes reasoning; estimated is the part that the provider did not report.
type tokens struct {
	input, cached, written, forHour, output, estimated int64
	told                                               bool    // the provider reported the cost, as routers do:
	usd                                                float64 // in usd
}

type answer struct {
	tokens      tokens
	inputKnown  bool           // the provider reported the input
	outputKnown bool           // and the final output
	prose       int            // bytes of text, including refusals
	thought     int            // bytes of reasoning
	other       int            // bytes of tool arguments and sealed reasoning
	piece       int            // the part of other in the current item
	sure        sureness       // of the prose, if the provider reports it
	text        bool           // part of the prose is visible text
	tool        bool           // a tool was called
	ended       bool           // the model has ended its answer
	over        bool           // nothing follows
	whole       bool           // read to the provider's end
	broken      bool           // reading ended without the agent's doing
	replaced    bool           // the agent sees the other try's answer
	stop        stopReason     // "" before the end
	failure     []byte         // an error within the answer, as JSON; nil for none
	messages    messagesTokens // the counts as Messages splits them
}

// nothing reports whether an answer ended well and is empty.
func (a *answer) nothing() bool {
	if a.useful() || a.failure != nil {
		return false
	}
	return a.ended && a.stop != stopFilter
}

func (a *answer) useful() bool { return a.text || a.tool }

// cut reports whether an answer has begun and not ended. An agent must then see a lost connection: OpenCode takes
// an orderly end for a step that wants another, endlessly.
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

// good reports whether an answer has begun without an error, awaited whether neither has come.
func (a *answer) good() bool    { return a.begun() && a.failure == nil }
func (a *answer) awaited() bool { return !a.begun() && a.failure == nil }

// left reports whether the agent ended the call.
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

// settle completes the counts of an answer that ended before the provider reported them: hanging up must not make
// tokens free.
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

// inputOf estimates a request's input from its bytes. Pictures have more bytes than tokens, so it is capped at the
// largest context.
func inputOf(request int) int64 { return min(int64(request/bytesPerToken), maxContext) }

// maxContext is in tokens.
const maxContext = 1 << 20

// bytesPerToken is the rule of thumb for English and code.
const bytesPerToken = 4

func (a *answer) says(text string) {
	a.prose += len(text)
	a.shows(text)
}

// shows notes visible text that is counted elsewhere.
func (a *answer) shows(text string) {
	if strings.TrimSpace(text) != "" {
		a.text = true
	}
}

// stopReason is why a model ended its answer, in all protocols. After a filter, or a word that is not in stops,
// asking again does not help.
type stopReason string

const (
	stopped    stopReason = "stop"
	stopLength stopReason = "length"
	stopTool   stopReason = "tool"
	stopFilter stopReason = "filter"
)

// stops are the protocols' words, in lower case, by their references of 2025-11: Messages, Chat Completions,
// Responses (status and incomplete_details.reason), Gemini. Every other word is a filter's; Gemini has a dozen.
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

// ends notes why the model ended its answer, "" if it did not.
func (a *answer) ends(why string) {
	if why != "" {
		a.ended, a.stop = true, cmp.Or(stops[strings.ToLower(why)], stopFilter)
	}
}

// mostTold is more tokens than any model handles in one call. A larger count is wrong, so the estimate stays.
const mostTold = 1 << 24

// usage records counts whose input includes the cached and the written.
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

// costs records the provider's own cost in USD: OpenRouter's usage.cost, by its reference of 2025-11.
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
