package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
)

// messagesUsage is the usage of Messages. Its input leaves out what was read
// from and written to the cache; fields that a later event lacks keep their value.
type messagesUsage struct {
	Input   *count `json:"input_tokens"`
	Read    *count `json:"cache_read_input_tokens"`
	Written *count `json:"cache_creation_input_tokens"`
	Kept    *struct {
		Hour count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output *count `json:"output_tokens"`
}

type messagesBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Thinking string `json:"thinking"`
	// What agents and people do not read: a piece of a tool's arguments, a
	// signature, redacted reasoning.
	Partial   string          `json:"partial_json"`
	Input     json.RawMessage `json:"input"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
}

type messagesBody struct {
	Content []messagesBlock `json:"content"`
	Usage   *messagesUsage  `json:"usage"`
	Stop    string          `json:"stop_reason"`
}

// readMessages reads an event or a whole body of the Messages API.
func readMessages(data []byte, a *answer) {
	var e struct {
		Type    string         `json:"type"`
		Message *messagesBody  `json:"message"`
		Block   *messagesBlock `json:"content_block"`
		Delta   struct {
			messagesBlock
			Stop string `json:"stop_reason"`
		} `json:"delta"`
		messagesBody
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "error":
		a.failure = bytes.Clone(data)
	case "message":
		for _, b := range e.Content {
			readBlock(b, a)
		}
		endMessage(e.Stop, a)
		readMessagesUsage(e.Usage, a, true)
		a.over = true
	case "message_start":
		if e.Message != nil {
			readMessagesUsage(e.Message.Usage, a, false)
		}
	case "content_block_start":
		if e.Block != nil {
			readBlock(*e.Block, a)
		}
	case "content_block_delta":
		readBlock(e.Delta.messagesBlock, a)
	case "message_delta":
		endMessage(e.Delta.Stop, a)
		readMessagesUsage(e.Usage, a, true)
	case "message_stop":
		a.over = true
	}
}

func endMessage(stop string, a *answer) {
	if stop == "" {
		return
	}
	a.ended = true
	a.plainEnd = stop == "end_turn" || stop == "stop_sequence" || stop == "max_tokens"
}

func readBlock(b messagesBlock, a *answer) {
	a.prose += len(b.Text) + len(b.Thinking)
	a.other += len(b.Partial) + len(b.Input) + len(b.Signature) + len(b.Data)
	a.text = a.text || strings.TrimSpace(b.Text) != ""
	// tool_use, server_tool_use, mcp_tool_use
	a.tool = a.tool || strings.HasSuffix(b.Type, "tool_use") || b.Type == "input_json_delta"
}

// readMessagesUsage adds the three kinds of input together, so that input means
// the same in all protocols.
func readMessagesUsage(u *messagesUsage, a *answer, final bool) {
	if u == nil {
		return
	}
	m := &a.messages
	for _, f := range []struct {
		to   *int64
		from *count
	}{{&m.fresh, u.Input}, {&m.read, u.Read}, {&m.written, u.Written}, {&m.output, u.Output}} {
		if f.from != nil {
			*f.to = int64(*f.from)
			a.inputTold = true
		}
	}
	a.tokens.input = m.fresh + m.read + m.written
	if u.Kept != nil {
		m.hour = int64(u.Kept.Hour)
	}
	a.tokens.cached, a.tokens.written, a.tokens.forHour = m.read, m.written, min(m.hour, m.written)
	a.tokens.output = m.output
	a.outTold = a.outTold || final
}

// messagesTokens are the figures of Messages as that protocol parts them.
type messagesTokens struct {
	fresh, read, written, hour, output int64
}
