package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
)

// responsesUsage is the usage of Responses; its input includes the cached.
type responsesUsage struct {
	Input   count `json:"input_tokens"`
	Details struct {
		Cached count `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output count `json:"output_tokens"`
}

// responsesItem is one item of the output.
type responsesItem struct {
	Type    string `json:"type"`
	Content []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Action    json.RawMessage `json:"action"`
	Sealed    string          `json:"encrypted_content"`
}

type responsesBody struct {
	Object     string          `json:"object"`
	Status     string          `json:"status"`
	Output     []responsesItem `json:"output"`
	Usage      *responsesUsage `json:"usage"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// readResponses reads an event or a whole body of the Responses API.
func readResponses(data []byte, a *answer) {
	var e struct {
		Type     string          `json:"type"`
		Delta    string          `json:"delta"`
		Item     *responsesItem  `json:"item"`
		Response json.RawMessage `json:"response"`
		responsesBody
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch {
	case e.Type == "" && e.Object == "response":
		readResponse(&e.responsesBody, a)
	case e.Type == "error":
		a.failure = bytes.Clone(data)
	case e.Type == "response.failed":
		a.failure = bytes.Clone(e.Response)
		a.ended, a.over = true, true
		readResponseUsage(e.Response, a)
	case e.Type == "response.completed" || e.Type == "response.incomplete":
		readResponseUsage(e.Response, a)
	case e.Item != nil:
		readResponsesItem(*e.Item, a)
		if e.Type == "response.output_item.done" {
			endItem(*e.Item, a)
		}
	case strings.HasSuffix(e.Type, "_call_arguments.delta") || strings.HasSuffix(e.Type, "_call_input.delta"):
		a.tool = true
		a.other += len(e.Delta)
		a.piece += len(e.Delta)
	case strings.HasSuffix(e.Type, ".delta"):
		a.prose += len(e.Delta)
		if e.Type == "response.output_text.delta" || e.Type == "response.refusal.delta" {
			a.text = a.text || strings.TrimSpace(e.Delta) != ""
		}
	}
}

func readResponseUsage(response []byte, a *answer) {
	var b responsesBody
	if json.Unmarshal(response, &b) == nil {
		readResponse(&b, a)
	}
}

func readResponse(b *responsesBody, a *answer) {
	a.ended, a.over = true, true
	a.plainEnd = b.Status == "completed" || b.Incomplete != nil && b.Incomplete.Reason == "max_output_tokens"
	for _, item := range b.Output {
		readResponsesItem(item, a)
	}
	if b.Usage != nil {
		a.tokens = tokens{input: int64(b.Usage.Input), cached: int64(b.Usage.Details.Cached), output: int64(b.Usage.Output)}
		a.inputTold, a.outTold = true, true
	}
}

// readResponsesItem sees tool calls of every kind (function_call,
// custom_tool_call, local_shell_call, tool_search_call, …) and visible text.
func readResponsesItem(item responsesItem, a *answer) {
	a.tool = a.tool || strings.HasSuffix(item.Type, "_call")
	if item.Type != "message" {
		return
	}
	for _, c := range item.Content {
		a.text = a.text || strings.TrimSpace(c.Text+c.Refusal) != ""
	}
}

// endItem counts what of an item did not come in pieces.
func endItem(item responsesItem, a *answer) {
	whole := len(item.Arguments) + len(item.Input) + len(item.Action) + len(item.Sealed)
	a.other += max(whole-a.piece, 0)
	a.piece = 0
}

// chatMessage is a delta of a stream or a whole message.
type chatMessage struct {
	Content          json.RawMessage   `json:"content"`
	Refusal          string            `json:"refusal"`
	ReasoningContent string            `json:"reasoning_content"`
	Reasoning        string            `json:"reasoning"`
	ToolCalls        []json.RawMessage `json:"tool_calls"`
	FunctionCall     json.RawMessage   `json:"function_call"`
}

type chatChunk struct {
	Choices []struct {
		Delta   chatMessage `json:"delta"`
		Message chatMessage `json:"message"`
		Finish  string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt  count `json:"prompt_tokens"`
		Details struct {
			Cached count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Completion count `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// readChat reads a chunk or a whole body of chat completions.
func readChat(data []byte, a *answer) {
	if string(data) == "[DONE]" {
		a.over = true
		return
	}
	var c chatChunk
	if json.Unmarshal(data, &c) != nil {
		return
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		a.failure = bytes.Clone(data)
	}
	for _, choice := range c.Choices {
		for _, m := range []*chatMessage{&choice.Delta, &choice.Message} {
			readChatMessage(m, a)
		}
		if choice.Finish != "" {
			a.ended = true
			a.plainEnd = choice.Finish == "stop" || choice.Finish == "length"
		}
	}
	if u := c.Usage; u != nil {
		a.tokens = tokens{input: int64(u.Prompt), cached: int64(u.Details.Cached), output: int64(u.Completion)}
		a.inputTold = true
		a.outTold = a.outTold || a.ended // some servers count in every chunk
	}
}

func readChatMessage(m *chatMessage, a *answer) {
	var text string
	if json.Unmarshal(m.Content, &text) != nil {
		text = string(m.Content) // parts of another form are text, too
		if text == "null" {
			text = ""
		}
	}
	text += m.Refusal
	a.prose += len(text) + len(m.ReasoningContent) + len(m.Reasoning)
	a.text = a.text || strings.TrimSpace(text) != ""
	for _, c := range m.ToolCalls {
		a.other += callSize(c)
	}
	a.other += callSize(m.FunctionCall)
	a.tool = a.tool || len(m.ToolCalls) > 0 || len(m.FunctionCall) > 0 && string(m.FunctionCall) != "null"
}

// callSize is how much of a tool's call the model has written, in bytes.
func callSize(call json.RawMessage) int {
	var c struct {
		Arguments string `json:"arguments"`
		Function  struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	if len(call) == 0 || json.Unmarshal(call, &c) != nil {
		return 0
	}
	return len(c.Arguments) + len(c.Function.Name) + len(c.Function.Arguments)
}
