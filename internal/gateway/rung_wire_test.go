package gateway

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// in splits a text into deltas of about ten bytes.
func in(text string) []string {
	var parts []string
	for text != "" {
		n := min(10, len(text))
		for n < len(text) && text[n]&0xC0 == 0x80 { // not within a rune
			n++
		}
		parts = append(parts, text[:n])
		text = text[n:]
	}
	return parts
}

func limitedAfter(asked *int) func(context.Context) (policy.Limit, bool) {
	return func(context.Context) (policy.Limit, bool) {
		*asked++
		return policy.Limit{Kind: policy.RateLimited}, *asked > 1
	}
}

func streamResponses(id string, s script) []string {
	var out []string
	output := []any{}
	emit := func(kind string, e object) {
		e["type"], e["sequence_number"] = kind, len(out)
		out = append(out, "event: "+kind+"\ndata: "+encoded(e)+"\n\n")
	}
	head := func(status string) object {
		return object{"id": "resp_" + id, "object": "response", "created_at": 1, "status": status, "output": []any{}}
	}
	emit("response.created", object{"response": head("in_progress")})
	done := func(item object) {
		emit("response.output_item.done", object{"output_index": len(output), "item": item})
		output = append(output, item)
	}
	if s.thinking != "" {
		item := object{"type": "reasoning", "id": fmt.Sprintf("rs_%d", len(output)), "summary": []any{}}
		emit("response.output_item.added", object{"output_index": 0, "item": item})
		emit("response.reasoning_summary_part.added", object{"item_id": item["id"], "output_index": 0, "summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
		for _, d := range in(s.thinking) {
			emit("response.reasoning_summary_text.delta", object{"item_id": item["id"], "output_index": 0, "summary_index": 0, "delta": d})
		}
		if !s.cut || s.text != "" {
			emit("response.reasoning_summary_text.done", object{"item_id": item["id"], "output_index": 0, "summary_index": 0, "text": s.thinking})
			emit("response.reasoning_summary_part.done", object{"item_id": item["id"], "output_index": 0, "summary_index": 0, "part": object{"type": "summary_text", "text": s.thinking}})
			done(object{"type": "reasoning", "id": item["id"], "summary": []any{object{"type": "summary_text", "text": s.thinking}}, "encrypted_content": "real"})
		}
	}
	if s.text != "" {
		n := len(output)
		item := object{"type": "message", "id": fmt.Sprintf("msg_%d", n), "role": "assistant", "status": "in_progress", "content": []any{}}
		emit("response.output_item.added", object{"output_index": n, "item": item})
		emit("response.content_part.added", object{"item_id": item["id"], "output_index": n, "content_index": 0, "part": object{"type": "output_text", "text": ""}})
		for _, d := range in(s.text) {
			emit("response.output_text.delta", object{"item_id": item["id"], "output_index": n, "content_index": 0, "delta": d})
		}
		if s.cut {
			return out
		}
		emit("response.output_text.done", object{"item_id": item["id"], "output_index": n, "content_index": 0, "text": s.text})
		emit("response.content_part.done", object{"item_id": item["id"], "output_index": n, "content_index": 0, "part": object{"type": "output_text", "text": s.text}})
		done(object{"type": "message", "id": item["id"], "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": s.text}}})
	}
	if s.cut {
		return out
	}
	if s.tool != "" {
		n := len(output)
		emit("response.output_item.added", object{"output_index": n, "item": object{"type": "function_call", "id": "fc_1", "name": s.tool, "arguments": ""}})
		emit("response.function_call_arguments.delta", object{"item_id": "fc_1", "output_index": n, "delta": "{}"})
		done(object{"type": "function_call", "id": "fc_1", "name": s.tool, "arguments": "{}"})
	}
	end := head("completed")
	end["output"] = output
	end["usage"] = object{"input_tokens": scriptInput, "output_tokens": scriptOutput, "total_tokens": scriptInput + scriptOutput}
	emit("response.completed", object{"response": end})
	return out
}

func checkResponses(events []string) (h reply, err error) {
	added, open, ids := 0.0, map[float64]string{}, map[string]bool{}
	done, id := []any{}, any(nil)
	for i, text := range events {
		e, err := decoded(text)
		if err != nil {
			return h, err
		}
		kind := e["type"].(string)
		if e["sequence_number"] != float64(i) {
			return h, fmt.Errorf("event %d has the sequence number %v", i, e["sequence_number"])
		}
		if (kind == "response.created") != (i == 0) || (kind == "response.completed") != (i == len(events)-1) {
			return h, fmt.Errorf("%s as event %d of %d", kind, i, len(events))
		}
		if r, ok := e["response"].(map[string]any); ok && i == 0 {
			id = r["id"]
		}
		index, _ := e["output_index"].(float64)
		if id, ok := e["item_id"].(string); ok && open[index] != id {
			return h, fmt.Errorf("%s names %s, but %v is open: %s", kind, id, open[index], text)
		}
		item, _ := e["item"].(map[string]any)
		switch kind {
		case "response.output_item.added":
			id := item["id"].(string)
			if index != added || ids[id] || len(open) > 0 {
				return h, fmt.Errorf("item %s added at %v, want %v; open %v", id, index, added, open)
			}
			added, ids[id], open[index] = added+1, true, id
			if item["type"] == "function_call" {
				h.tool = item["name"].(string)
			}
		case "response.output_item.done":
			if open[index] != item["id"] {
				return h, fmt.Errorf("done without added: %s", text)
			}
			delete(open, index)
			done = append(done, item)
			if err := wholeText(item, &h); err != nil {
				return h, err
			}
		case "response.completed":
			r := e["response"].(map[string]any)
			if r["id"] != id || len(open) > 0 || !reflect.DeepEqual(r["output"], any(done)) {
				return h, fmt.Errorf("the end does not fit: %v open, done %v: %s", open, done, text)
			}
			u := r["usage"].(map[string]any)
			h.input, h.output = int64(u["input_tokens"].(float64)), int64(u["output_tokens"].(float64))
			if h.input+h.output != int64(u["total_tokens"].(float64)) {
				return h, errors.New("the usage does not add up")
			}
		}
	}
	return h, nil
}

// wholeText appends a finished item's text to h. Reasoning must have a signature.
func wholeText(item map[string]any, h *reply) error {
	list, to := item["content"], &h.text
	if item["type"] == "reasoning" {
		list, to = item["summary"], &h.thinking
		if item["encrypted_content"] == nil {
			return errors.New("reasoning without a signature")
		}
	}
	parts, _ := list.([]any)
	for _, p := range parts {
		*to += p.(map[string]any)["text"].(string)
	}
	return nil
}

func streamChat(id string, s script) []string {
	chunk := func(delta object, finish any) string {
		return data(encoded(object{"id": "c-" + id, "created": 1, "model": "m", "choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}}))
	}
	out := []string{chunk(object{"role": "assistant", "content": ""}, nil)}
	for _, d := range in(s.thinking) {
		out = append(out, chunk(object{"reasoning_content": d}, nil))
	}
	for _, d := range in(s.text) {
		out = append(out, chunk(object{"content": d}, nil))
	}
	if s.cut {
		return out
	}
	finish := "stop"
	if s.tool != "" {
		finish = "tool_calls"
		out = append(out, chunk(object{"tool_calls": []any{object{"index": 0, "id": "call", "function": object{"name": s.tool, "arguments": "{}"}}}}, nil))
	}
	out = append(out, chunk(object{}, finish))
	out = append(out, data(encoded(object{"id": "c-" + id, "created": 1, "model": "m", "choices": []any{}, "usage": object{"prompt_tokens": scriptInput, "completion_tokens": scriptOutput, "total_tokens": scriptInput + scriptOutput}})))
	return append(out, data("[DONE]"))
}

func checkChat(events []string) (h reply, err error) {
	roles, ends, id := 0, 0, any(nil)
	for i, text := range events {
		if text == "[DONE]" {
			if i != len(events)-1 || ends != 1 || roles != 1 {
				return h, fmt.Errorf("[DONE] as event %d of %d, %d ends, %d roles", i, len(events), ends, roles)
			}
			return h, nil
		}
		e, err := decoded(text)
		if err != nil {
			return h, err
		}
		if id == nil {
			id = e["id"]
		}
		if e["id"] != id {
			return h, fmt.Errorf("another id: %s", text)
		}
		if u, ok := e["usage"].(map[string]any); ok {
			h.input, h.output = int64(u["prompt_tokens"].(float64)), int64(u["completion_tokens"].(float64))
		}
		for _, c := range e["choices"].([]any) {
			choice := c.(map[string]any)
			delta := choice["delta"].(map[string]any)
			if ends > 0 {
				return h, errors.New("a chunk after the end")
			}
			if delta["role"] != nil {
				roles++
			}
			if choice["finish_reason"] != nil {
				ends++
			}
			content, _ := delta["content"].(string)
			thought, _ := delta["reasoning_content"].(string)
			h.text, h.thinking = h.text+content, h.thinking+thought
			if calls, ok := delta["tool_calls"].([]any); ok {
				h.tool = calls[0].(map[string]any)["function"].(map[string]any)["name"].(string)
			}
		}
	}
	return h, errors.New("no [DONE]")
}

func streamMessages(id string, s script) []string {
	out := []string{ev("message_start", `"message":{"id":"msg_`+id+`","role":"assistant","content":[],"usage":{"input_tokens":70,"cache_read_input_tokens":30,"output_tokens":1}}`), ": thinking\n\n"}
	n := 0
	block := func(start, deltaKind, name, text string, last bool) {
		out = append(out, ev("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, n, start)))
		for _, d := range in(text) {
			out = append(out, ev("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, n, encoded(object{"type": deltaKind, name: d}))))
		}
		if last {
			return
		}
		if deltaKind == "thinking_delta" {
			out = append(out, ev("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{"type":"signature_delta","signature":"real"}`, n)))
		}
		out = append(out, ev("content_block_stop", fmt.Sprintf(`"index":%d`, n)))
		n++
	}
	if s.thinking != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", s.thinking, s.cut && s.text == "")
	}
	if s.text != "" {
		block(`{"type":"text","text":""}`, "text_delta", "text", s.text, s.cut)
	}
	if s.cut {
		return out
	}
	stop := "end_turn"
	if s.tool != "" {
		stop = "tool_use"
		block(`{"type":"tool_use","id":"t","name":"`+s.tool+`","input":{}}`, "input_json_delta", "partial_json", "{}", false)
	}
	return append(out, ev("message_delta", fmt.Sprintf(`"delta":{"stop_reason":"%s"},"usage":{"output_tokens":%d}`, stop, scriptOutput)), ev("message_stop", ""))
}

func checkMessages(events []string) (h reply, err error) {
	next, kind, signed, ends := 0.0, "", false, 0
	for i, text := range events {
		e, err := decoded(text)
		if err != nil {
			return h, err
		}
		name := e["type"].(string)
		if (name == "message_start") != (i == 0) || (name == "message_stop") != (i == len(events)-1) {
			return h, fmt.Errorf("%s as event %d of %d", name, i, len(events))
		}
		if strings.HasPrefix(name, "content_block") && (e["index"] != next || ends > 0 || (name == "content_block_start") != (kind == "")) {
			return h, fmt.Errorf("block %v, want %v, open %q: %s", e["index"], next, kind, text)
		}
		switch name {
		case "content_block_start":
			b := e["content_block"].(map[string]any)
			kind, signed = b["type"].(string), false
			if kind == "tool_use" {
				h.tool = b["name"].(string)
			}
		case "content_block_delta":
			d := e["delta"].(map[string]any)
			said, _ := d["text"].(string)
			thought, _ := d["thinking"].(string)
			h.text, h.thinking = h.text+said, h.thinking+thought
			signed = signed || d["signature"] != nil
		case "content_block_stop":
			if kind == "thinking" && !signed {
				return h, errors.New("thinking without a signature")
			}
			kind, next = "", next+1
		case "message_delta":
			ends++
			h.output = int64(e["usage"].(map[string]any)["output_tokens"].(float64))
		case "message_start":
			u := e["message"].(map[string]any)["usage"].(map[string]any)
			for _, part := range []string{"input_tokens", "cache_read_input_tokens"} {
				n, _ := u[part].(float64)
				h.input += int64(n)
			}
		}
	}
	if ends != 1 || kind != "" {
		return h, fmt.Errorf("%d ends, %q open", ends, kind)
	}
	return h, nil
}

func streamGemini(id string, s script) []string {
	chunk := func(parts []any, finish string, output int) string {
		c := object{"content": object{"role": "model", "parts": parts}, "index": 0}
		if finish != "" {
			c["finishReason"] = finish
		}
		return data(encoded(object{"candidates": []any{c}, "responseId": "g-" + id, "usageMetadata": object{"promptTokenCount": scriptInput, "candidatesTokenCount": output, "totalTokenCount": scriptInput + output}}))
	}
	var out []string
	for _, d := range in(s.thinking) {
		out = append(out, chunk([]any{object{"text": d, "thought": true}}, "", 1))
	}
	for _, d := range in(s.text) {
		out = append(out, chunk([]any{object{"text": d}}, "", 1))
	}
	if s.cut {
		return out
	}
	if s.tool != "" {
		out = append(out, chunk([]any{object{"functionCall": object{"name": s.tool, "args": object{}}}}, "", 1))
	}
	return append(out, chunk([]any{}, "STOP", scriptOutput))
}

func checkGemini(events []string) (h reply, err error) {
	ends, id := 0, any(nil)
	for _, text := range events {
		e, err := decoded(text)
		if err != nil {
			return h, err
		}
		if id == nil {
			id = e["responseId"]
		}
		if e["responseId"] != id || ends > 0 {
			return h, fmt.Errorf("another id, or after the end: %s", text)
		}
		u := e["usageMetadata"].(map[string]any)
		h.input, h.output = int64(u["promptTokenCount"].(float64)), int64(u["candidatesTokenCount"].(float64))
		c := e["candidates"].([]any)[0].(map[string]any)
		if c["finishReason"] != nil {
			ends++
		}
		for _, p := range c["content"].(map[string]any)["parts"].([]any) {
			part := p.(map[string]any)
			said, _ := part["text"].(string)
			if part["thought"] == true {
				h.thinking += said
			} else {
				h.text += said
			}
			if call, ok := part["functionCall"].(map[string]any); ok {
				h.tool = call["name"].(string)
			}
		}
	}
	if ends != 1 {
		return h, fmt.Errorf("%d ends", ends)
	}
	return h, nil
}
