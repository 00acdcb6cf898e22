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
	if a.useful() || a.failure != nil {
		return false
	}
	return a.ended && a.stop != stopFilter
}

// useful reports whether an answer holds text for the user or a tool call.
func (a *answer) useful() bool { return a.text || a.tool }

// cut reports whether an answer is begun and not ended. An agent must see a lost connection then: OpenCode
// takes an orderly end for a step that wants another, without end.
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

// good reports whether an answer has begun and no error came within it, awaited whether neither has come.
func (a *answer) good() bool    { return a.begun() && a.failure == nil }
func (a *answer) awaited() bool { return !a.begun() && a.failure == nil }

// left reports whether it was the agent that ended the call.
func (a *answer) left() bool {
	if a.failure != nil {
		return false
	}
	return !a.whole && !a.broken
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
