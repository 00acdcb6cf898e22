package fakeprovider

import (
	"encoding/json"
	"strings"
	"time"
)

// responses is the OpenAI Responses API (Codex).
type responses struct{}

type responsesTool struct {
	Type  string          `json:"type"`
	Name  string          `json:"name"`
	Tools []responsesTool `json:"tools"`
}

func (responses) read(_ string, body []byte) turn {
	var request struct {
		Model     string          `json:"model"`
		Stream    bool            `json:"stream"`
		Tools     []responsesTool `json:"tools"`
		Input     json.RawMessage `json:"input"`
		Reasoning struct {
			Effort string `json:"effort"`
		} `json:"reasoning"`
		Text struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"text"`
	}
	t := turn{protocol: "responses", streamed: true}
	if json.Unmarshal(body, &request) != nil {
		return t
	}
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content content         `json:"content"`
		Output  content         `json:"output"`
		Tools   []responsesTool `json:"tools"`
	}
	offered, messages := request.Tools, []entry(nil)
	var words string
	if json.Unmarshal(request.Input, &words) == nil {
		messages = append(messages, entry{person, words})
	} else if json.Unmarshal(request.Input, &items) != nil {
		return t
	}
	for _, item := range items {
		switch {
		case item.Type == "tool_search_output":
			messages = append(messages, entry{search, ""})
			offered = append(offered, item.Tools...)
		case item.Type == "additional_tools":
			offered = append(offered, item.Tools...)
		case strings.HasSuffix(item.Type, "_output"):
			messages = append(messages, entry{result, item.Output.text()})
		case item.Role == "user":
			messages = append(messages, entry{person, prompt(item.Content.texts())})
		default:
			messages = append(messages, entry{model, ""})
		}
	}
	t.model, t.streamed, t.effort = request.Model, request.Stream, request.Reasoning.Effort
	t.schema = request.Text.Format.Schema
	t.tools = responsesTools(offered, "")
	t.follow(messages)
	return t
}

func responsesTools(offered []responsesTool, namespace string) []tool {
	var out []tool
	for _, o := range offered {
		switch {
		case o.Type == "namespace":
			out = append(out, responsesTools(o.Tools, o.Name)...)
		case o.Name != "":
			out = append(out, tool{name: o.Name, namespace: namespace, custom: o.Type == "custom"})
		default:
			out = append(out, tool{name: o.Type})
		}
	}
	return out
}

// items returns the output items of an unbroken answer.
func (responses) items(t turn, a answer, set settings) []object {
	var out []object
	if a.thinking != "" {
		out = append(out, object{"type": "reasoning", "id": id("rs_"), "encrypted_content": nil,
			"summary": []any{object{"type": "summary_text", "text": a.thinking}}})
	}
	message := func(part object) object {
		return object{"type": "message", "id": id("msg_"), "role": "assistant", "status": "completed", "content": []any{part}}
	}
	if a.text != "" {
		out = append(out, message(object{"type": "output_text", "text": a.text, "annotations": []any{}}))
	}
	if a.kind == refuse {
		out = append(out, message(object{"type": "refusal", "refusal": "I cannot help with that."}))
	}
	for _, o := range a.calls {
		i := t.invoke(o, set)
		item := object{"call_id": id("call_"), "name": i.tool.name, "status": "completed"}
		switch {
		case i.search:
			item = object{"type": "tool_search_call", "id": id("ts_"), "call_id": item["call_id"], "execution": "client", "arguments": i.arguments, "status": "completed"}
		case i.tool.custom:
			item["type"], item["id"], item["input"] = "custom_tool_call", id("ctc_"), i.input
		default:
			item["type"], item["id"], item["arguments"] = "function_call", id("fc_"), i.text()
			if i.tool.namespace != "" {
				item["namespace"] = i.tool.namespace
			}
		}
		out = append(out, item)
	}
	return out
}

func (p responses) whole(t turn, a answer, set settings, now time.Time) object {
	return p.end(p.start(t, now), p.items(t, a, set), a)
}

func (responses) start(t turn, now time.Time) object {
	return object{"id": id("resp_"), "object": "response", "created_at": now.Unix(), "status": "in_progress", "model": t.model, "output": []any{}}
}

func (responses) end(response object, items []object, a answer) object {
	response["status"], response["output"] = "completed", items
	if items == nil {
		response["output"] = []any{}
	}
	if a.length {
		response["status"], response["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
		return response
	}
	response["usage"] = object{"input_tokens": usageInput, "input_tokens_details": object{"cached_tokens": usageCached},
		"output_tokens": usageOutput, "output_tokens_details": object{"reasoning_tokens": usageReasoning}, "total_tokens": usageInput + usageOutput}
	return response
}

func (p responses) stream(s *stream, t turn, a answer, set settings, now time.Time) {
	sequence := 0
	event := func(name string, fields object) {
		fields["type"], fields["sequence_number"] = name, sequence
		sequence++
		s.event(name, fields)
	}
	response := p.start(t, now)
	event("response.created", object{"response": response})
	items := p.items(t, a, set)
	switch a.kind {
	case cutEOF, cutRST, hangStream, broken:
		items = []object{{"type": "message", "id": id("msg_"), "role": "assistant", "status": "in_progress",
			"content": []any{object{"type": "output_text", "text": partial, "annotations": []any{}}}}}
	}
	for index, item := range items {
		p.item(s, event, a, item, index)
	}
	switch a.kind {
	case cutEOF, cutRST:
		s.cut(a.kind)
	case hangStream:
		s.hang()
	case broken:
		response["status"], response["error"] = "failed", openAIStreamError(a.name)
		event("response.failed", object{"response": response})
	default:
		last := p.end(response, items, a)
		event("response."+last["status"].(string), object{"response": last})
	}
}

// item streams one output item. An item in progress gets no done event.
func (responses) item(s *stream, event func(string, object), a answer, item object, index int) {
	begun := object{}
	for key, value := range item {
		begun[key] = value
	}
	begun["status"] = "in_progress"
	at := func(fields object) object {
		fields["item_id"], fields["output_index"] = item["id"], index
		return fields
	}
	switch item["type"] {
	case "reasoning":
		begun["summary"] = []any{}
		event("response.output_item.added", object{"output_index": index, "item": begun})
		event("response.reasoning_summary_part.added", at(object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}}))
		for _, piece := range a.pieces(a.thinking) {
			event("response.reasoning_summary_text.delta", at(object{"summary_index": 0, "delta": piece}))
			s.pause(a.delay)
		}
		event("response.reasoning_summary_text.done", at(object{"summary_index": 0, "text": a.thinking}))
	case "message":
		part := item["content"].([]any)[0].(object)
		begun["content"] = []any{}
		event("response.output_item.added", object{"output_index": index, "item": begun})
		text, ok := part["text"].(string)
		if !ok {
			break // a refusal is not split
		}
		event("response.content_part.added", at(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
		for _, piece := range a.pieces(text) {
			event("response.output_text.delta", at(object{"content_index": 0, "delta": piece}))
			s.pause(a.delay)
		}
		if item["status"] == "in_progress" {
			return
		}
		event("response.output_text.done", at(object{"content_index": 0, "text": text}))
	case "custom_tool_call":
		begun["input"] = ""
		event("response.output_item.added", object{"output_index": index, "item": begun})
	case "function_call":
		begun["arguments"] = ""
		event("response.output_item.added", object{"output_index": index, "item": begun})
		event("response.function_call_arguments.delta", at(object{"delta": item["arguments"]}))
	}
	event("response.output_item.done", object{"output_index": index, "item": item})
}
