package gateway

import (
	"encoding/json"
	"strings"
)

// geminiSplicer joins two answers of Gemini: one responseId, usage of both.
// Gemini has no events that begin or end parts.
type geminiSplicer struct {
	id   json.RawMessage
	text bool // the first answer has visible text
}

func (s *geminiSplicer) note(data []byte) {
	e := objectOf(data)
	if s.id == nil && e.has("responseId") {
		s.id = e["responseId"]
	}
	for _, candidate := range listOf(e["candidates"]) {
		for _, part := range listOf(objectOf(objectOf(candidate)["content"])["parts"]) {
			s.text = s.text || visible(objectOf(part))
		}
	}
}

func visible(part fields) bool {
	return string(part["thought"]) != "true" && strings.TrimSpace(part.text("text")) != ""
}

func (s *geminiSplicer) join() []byte { return nil }

func (s *geminiSplicer) second(e fields, first, _ *answer) []byte {
	if s.id != nil {
		e["responseId"] = s.id
	}
	if usage := objectOf(e["usageMetadata"]); usage != nil {
		s.sum(usage, first.tokens)
		e.set("usageMetadata", usage)
	}
	candidates := listOf(e["candidates"])
	for i, raw := range candidates {
		if s.text {
			candidates[i] = s.parted(objectOf(raw))
		}
	}
	if candidates != nil {
		e.set("candidates", candidates)
	}
	return unnamed(e)
}

// parted puts a paragraph's end before the first visible text.
func (s *geminiSplicer) parted(candidate fields) json.RawMessage {
	content := objectOf(candidate["content"])
	parts := listOf(content["parts"])
	for i, raw := range parts {
		if part := objectOf(raw); s.text && visible(part) {
			part.set("text", paragraph+part.text("text"))
			parts[i] = encoded(part)
			s.text = false
			content.set("parts", parts)
			candidate.set("content", content)
		}
	}
	return encoded(candidate)
}

// sum adds the first answer's figures. Reasoning of the first counts to the
// candidates' tokens: only their sum is known.
func (s *geminiSplicer) sum(usage fields, first tokens) {
	for name, n := range map[string]int64{
		"promptTokenCount": first.input, "candidatesTokenCount": first.output, "totalTokenCount": first.input + first.output,
		"cachedContentTokenCount": first.cached,
	} {
		if n > 0 {
			usage.set(name, usage.integer(name)+n)
		}
	}
}
