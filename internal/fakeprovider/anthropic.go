package fakeprovider

import (
	"encoding/json"
	"strconv"
	"time"
)

// anthropic is the Messages API (Claude Code).
type anthropic struct{}

func (anthropic) read(_ string, body []byte) turn {
	var request struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Thinking struct {
			Budget int `json:"budget_tokens"`
		} `json:"thinking"`
		Output struct {
			Effort string `json:"effort"`
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Messages []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
	}
	t := turn{protocol: "anthropic"}
	if json.Unmarshal(body, &request) != nil {
		return t
	}
	t.model, t.streamed, t.schema = request.Model, request.Stream, request.Output.Format.Schema
	t.effort = request.Output.Effort
	if t.effort == "" && request.Thinking.Budget > 0 {
		t.effort = strconv.Itoa(request.Thinking.Budget)
	}
	for _, offered := range request.Tools {
		t.tools = append(t.tools, tool{name: offered.Name})
	}
	var messages []entry
	called := map[string]string{} // tool names by call ID
	for _, m := range request.Messages {
		message := entry{model, ""}
		if m.Role == "user" {
			message = entry{person, prompt(m.Content.texts())}
		}
		for _, b := range m.Content {
			switch {
			case b.Type == "tool_use":
				called[b.ID] = b.Name
			case b.Type == "tool_result" && called[b.CallID] == waiting:
				message = entry{search, ""}
			case b.Type == "tool_result":
				message = entry{result, b.Content.text()}
			}
		}
		messages = append(messages, message)
	}
	t.follow(messages)
	return t
}

func (anthropic) usage() object {
	return object{"input_tokens": usageInput - usageCached, "cache_creation_input_tokens": 0,
		"cache_read_input_tokens": usageCached, "output_tokens": usageOutput}
}

func (anthropic) blocks(t turn, a answer, set settings) []object {
	out := []object{}
	if a.thinking != "" {
		out = append(out, object{"type": "thinking", "thinking": a.thinking, "signature": "bW9jaw=="})
	}
	if a.text != "" {
		out = append(out, object{"type": "text", "text": a.text})
	}
	for _, o := range a.calls {
		i := t.invoke(o, set)
		out = append(out, object{"type": "tool_use", "id": id("toolu_"), "name": i.tool.name, "input": i.arguments})
	}
	return out
}

func (anthropic) stop(a answer) string {
	switch {
	case a.kind == call:
		return "tool_use"
	case a.kind == refuse:
		return "refusal"
	case a.length:
		return "max_tokens"
	}
	return "end_turn"
}

func (p anthropic) whole(t turn, a answer, set settings, _ time.Time) object {
	return object{"id": id("msg_"), "type": "message", "role": "assistant", "model": t.model, "content": p.blocks(t, a, set),
		"stop_reason": p.stop(a), "stop_sequence": nil, "usage": p.usage()}
}

func (p anthropic) stream(s *stream, t turn, a answer, set settings, _ time.Time) {
	event := func(name string, fields object) {
		fields["type"] = name
		s.event(name, fields)
	}
	usage := p.usage()
	usage["output_tokens"] = 1
	event("message_start", object{"message": object{"id": id("msg_"), "type": "message", "role": "assistant", "model": t.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}})
	event("ping", object{})
	switch a.kind {
	case cutEOF, cutRST, hangStream, broken:
		event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
		event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": partial}})
	}
	switch a.kind {
	case cutEOF, cutRST:
		s.cut(a.kind)
		return
	case hangStream:
		s.hang()
	case broken:
		event("error", object{"error": anthropicStreamError(a.name)})
		return
	}
	for index, b := range p.blocks(t, a, set) {
		p.block(s, event, a, b, index)
	}
	event("message_delta", object{"delta": object{"stop_reason": p.stop(a), "stop_sequence": nil}, "usage": p.usage()})
	event("message_stop", object{})
}

func (anthropic) block(s *stream, event func(string, object), a answer, b object, index int) {
	start := func(block object) { event("content_block_start", object{"index": index, "content_block": block}) }
	delta := func(fields object) { event("content_block_delta", object{"index": index, "delta": fields}) }
	switch b["type"] {
	case "thinking":
		start(object{"type": "thinking", "thinking": "", "signature": ""})
		for _, piece := range a.pieces(a.thinking) {
			delta(object{"type": "thinking_delta", "thinking": piece})
			s.pause(a.delay)
		}
		delta(object{"type": "signature_delta", "signature": b["signature"]})
	case "text":
		start(object{"type": "text", "text": ""})
		for _, piece := range a.pieces(a.text) {
			delta(object{"type": "text_delta", "text": piece})
			s.pause(a.delay)
		}
	default:
		start(object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}})
		delta(object{"type": "input_json_delta", "partial_json": invocation{arguments: b["input"].(object)}.text()})
	}
	event("content_block_stop", object{"index": index})
}
