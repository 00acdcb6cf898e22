package fakeprovider

import (
	"encoding/json"
	"time"
)

// chat is OpenAI's chat completions (OpenCode).
type chat struct{}

func (chat) read(_ string, body []byte) turn {
	var request struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Effort string `json:"reasoning_effort"`
		Tools  []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Messages []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
		Format struct {
			Schema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	t := turn{protocol: "chat"}
	if json.Unmarshal(body, &request) != nil {
		return t
	}
	t.model, t.streamed, t.effort = request.Model, request.Stream, request.Effort
	t.schema = request.Format.Schema.Schema
	for _, offered := range request.Tools {
		t.tools = append(t.tools, tool{name: offered.Function.Name})
	}
	var messages []entry
	for _, m := range request.Messages {
		switch m.Role {
		case "user":
			messages = append(messages, entry{person, prompt(m.Content.texts())})
		case "tool":
			messages = append(messages, entry{result, m.Content.text()})
		default:
			messages = append(messages, entry{model, ""})
		}
	}
	t.follow(messages)
	return t
}

func (chat) usage() object {
	return object{"prompt_tokens": usageInput, "completion_tokens": usageOutput, "total_tokens": usageInput + usageOutput,
		"prompt_tokens_details":     object{"cached_tokens": usageCached},
		"completion_tokens_details": object{"reasoning_tokens": usageReasoning}}
}

func (chat) calls(t turn, a answer, set settings) []any {
	var out []any
	for index, o := range a.calls {
		i := t.invoke(o, set)
		out = append(out, object{"index": index, "id": id("call_"), "type": "function",
			"function": object{"name": i.tool.name, "arguments": i.text()}})
	}
	return out
}

func (chat) finish(a answer) string {
	switch {
	case a.kind == call:
		return "tool_calls"
	case a.kind == refuse:
		return "content_filter"
	case a.length:
		return "length"
	}
	return "stop"
}

func (p chat) whole(t turn, a answer, set settings, now time.Time) object {
	message := object{"role": "assistant", "content": a.text}
	if a.thinking != "" {
		message["reasoning_content"] = a.thinking
	}
	if calls := p.calls(t, a, set); calls != nil {
		message["tool_calls"] = calls
	}
	return object{"id": id("chatcmpl-"), "object": "chat.completion", "created": now.Unix(), "model": t.model, "usage": p.usage(),
		"choices": []any{object{"index": 0, "message": message, "finish_reason": p.finish(a)}}}
}

func (p chat) stream(s *stream, t turn, a answer, set settings, now time.Time) {
	head := object{"id": id("chatcmpl-"), "object": "chat.completion.chunk", "created": now.Unix(), "model": t.model}
	chunk := func(delta object, finish any) {
		head["choices"] = []any{object{"index": 0, "delta": delta, "finish_reason": finish}}
		s.event("", head)
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	switch a.kind {
	case cutEOF, cutRST:
		chunk(object{"content": partial}, nil)
		s.cut(a.kind)
		return
	case hangStream:
		chunk(object{"content": partial}, nil)
		s.hang()
	case broken:
		chunk(object{"content": partial}, nil)
		s.event("", object{"error": openAIStreamError(a.name)})
		return
	}
	if a.thinking != "" {
		for _, piece := range a.pieces(a.thinking) {
			chunk(object{"reasoning_content": piece}, nil)
			s.pause(a.delay)
		}
	}
	for _, piece := range a.pieces(a.text) {
		chunk(object{"content": piece}, nil)
		s.pause(a.delay)
	}
	for _, c := range p.calls(t, a, set) {
		chunk(object{"tool_calls": []any{c}}, nil)
	}
	chunk(object{}, p.finish(a))
	head["choices"], head["usage"] = []any{}, p.usage()
	s.event("", head)
	s.write("data: [DONE]\n\n")
}
