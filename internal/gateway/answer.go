package gateway

import "encoding/json"

// tokens are the figures of one answer. Input includes cached and what was
// written to a cache, of which a part is kept for an hour; output includes
// reasoning; estimated is the part of both that the provider did not tell.
type tokens struct {
	input, cached, written, forHour, output, estimated int64
}

// answer is what was read of one answer so far.
type answer struct {
	tokens    tokens
	inputTold bool // the provider told the input
	outTold   bool // and the final output
	prose     int  // bytes of text and reasoning
	other     int  // bytes of the arguments of tools and of sealed reasoning
	piece     int  // of other, those of the item that has begun
	text      bool // something that a person can read, a refusal too
	tool      bool // a tool was called
	ended     bool // the model has ended its answer
	over      bool // nothing follows
	// plainEnd is true where the model ended by itself or at its length, so that
	// asking once more may help; not after a filter or an error.
	plainEnd bool
	failure  []byte         // the error that came within the answer, as JSON; nil without
	messages messagesTokens // as Messages parts the figures
}

// reader reads one event of a stream, or a whole answer that is not streamed.
// What it does not know it ignores.
type reader func(data []byte, a *answer)

// readerOf gives the reader of a kind of call, nil where nothing is to be read.
func readerOf(kind callKind) reader {
	switch kind {
	case responses:
		return readResponses
	case chat:
		return readChat
	case messages:
		return readMessages
	case generate:
		return readGemini
	}
	return nil
}

// nothing reports whether an answer that ended says and does nothing.
func (a *answer) nothing() bool {
	return a.ended && a.plainEnd && !a.tool && !a.text && a.failure == nil
}

// cut reports whether an answer is begun and not ended. An agent must see that
// as a lost connection when the stream ends in order: OpenCode takes it for a
// step that wants another, without end.
func (a *answer) cut() bool { return a.begun() && !a.ended && !a.over && a.failure == nil }

// begun reports whether the answer shows that the model is at work.
func (a *answer) begun() bool { return a.prose > 0 || a.text || a.tool || a.ended }

// settle completes the figures of an answer that ended before the provider told
// them: an agent must not get tokens for free by hanging up early.
func (a *answer) settle(request int) {
	if !a.inputTold {
		guess := inputOf(request)
		a.tokens.input = guess
		a.tokens.estimated += guess
		a.inputTold = true
	}
	if !a.outTold {
		if guess := int64((a.prose + a.other) / bytesPerToken); guess > a.tokens.output {
			a.tokens.estimated += guess - a.tokens.output
			a.tokens.output = guess
		}
		a.outTold = true
	}
}

// inputOf estimates the input of a request of so many bytes. Pictures weigh more
// than they count, so it is no more than the largest context there is.
func inputOf(request int) int64 { return min(int64(request/bytesPerToken), maxContext) }

// maxContext is in tokens.
const maxContext = 1 << 20

// bytesPerToken is the usual rule of thumb for English and code.
const bytesPerToken = 4

// count is a number of tokens from a provider. One that is negative or absurd is
// read as the nearest that is not, so that no answer lowers a total.
type count int64

// maxCount is more than any model takes in one call.
const maxCount = 1 << 40

func (c *count) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		*c = 0 // a field of another type tells nothing
		return nil
	}
	*c = count(min(max(f, 0), maxCount))
	return nil
}
