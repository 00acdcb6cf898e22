package gateway

import "strings"

// paragraph parts the text of the second answer from that of the first where
// both are one piece of text for the agent.
const paragraph = "\n\n"

// chatSplicer joins two answers of chat completions: one id, one role, one usage.
type chatSplicer struct {
	head fields // the fields that are the same in all chunks
	role bool   // it was told
	text bool   // the first answer has visible text
}

func (s *chatSplicer) note(data []byte) {
	e := objectOf(data)
	if s.head == nil && e.has("id") {
		s.head = fields{}
		for _, name := range []string{"id", "created", "model"} {
			if e.has(name) {
				s.head[name] = e[name]
			}
		}
	}
	for _, choice := range listOf(e["choices"]) {
		delta := objectOf(objectOf(choice)["delta"])
		s.role = s.role || delta.has("role")
		s.text = s.text || strings.TrimSpace(delta.text("content")) != ""
	}
}

func (s *chatSplicer) join() []byte { return nil }

func (s *chatSplicer) second(e fields, first, _ *answer) []byte {
	for name, v := range s.head {
		e[name] = v
	}
	if usage := objectOf(e["usage"]); usage != nil {
		s.sum(usage, first.tokens)
		e.set("usage", usage)
	}
	choices := listOf(e["choices"])
	for i, raw := range choices {
		choice := objectOf(raw)
		delta := objectOf(choice["delta"])
		if delta == nil {
			continue
		}
		if s.role && delta.has("role") {
			delete(delta, "role")
			if delta.text("content") == "" {
				delete(delta, "content")
			}
			if len(delta) == 0 && !choice.has("finish_reason") && !e.has("usage") {
				return nil // it only named the role
			}
		}
		if text := delta.text("content"); s.text && text != "" {
			delta.set("content", paragraph+text)
			s.text = false
		}
		choice.set("delta", delta)
		choices[i] = encoded(choice)
	}
	if choices != nil {
		e.set("choices", choices)
	}
	return unnamed(e)
}

func (s *chatSplicer) sum(usage fields, first tokens) {
	input := usage.integer("prompt_tokens") + first.input
	output := usage.integer("completion_tokens") + first.output
	usage.set("prompt_tokens", input)
	usage.set("completion_tokens", output)
	usage.set("total_tokens", input+output)
	if details := objectOf(usage["prompt_tokens_details"]); details != nil {
		details.set("cached_tokens", details.integer("cached_tokens")+first.cached)
		usage.set("prompt_tokens_details", details)
	}
}
