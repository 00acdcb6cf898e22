package fakeprovider

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// gemini is Google's generateContent (Gemini CLI).
type gemini struct{}

var geminiModel = regexp.MustCompile(`/models/([^:/]+):`)

type geminiPart struct {
	Text     string `json:"text"`
	Function *struct {
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

func (gemini) read(path string, body []byte) turn {
	var request struct {
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Contents []struct {
			Role  string       `json:"role"`
			Parts []geminiPart `json:"parts"`
		} `json:"contents"`
		Config struct {
			Thinking struct {
				Level  string `json:"thinkingLevel"`
				Budget *int   `json:"thinkingBudget"`
			} `json:"thinkingConfig"`
			JSONSchema json.RawMessage `json:"responseJsonSchema"`
			Schema     json.RawMessage `json:"responseSchema"`
		} `json:"generationConfig"`
	}
	t := turn{protocol: "gemini", streamed: strings.HasSuffix(path, ":streamGenerateContent")}
	if found := geminiModel.FindStringSubmatch(path); found != nil {
		if name, err := url.PathUnescape(found[1]); err == nil {
			t.model = name
		}
	}
	if json.Unmarshal(body, &request) != nil {
		return t
	}
	t.effort = strings.ToLower(request.Config.Thinking.Level)
	if budget := request.Config.Thinking.Budget; t.effort == "" && budget != nil {
		t.effort = strconv.Itoa(*budget)
	}
	t.schema = request.Config.JSONSchema
	if t.schema == nil {
		t.schema = request.Config.Schema
	}
	for _, group := range request.Tools {
		for _, offered := range group.Functions {
			t.tools = append(t.tools, tool{name: offered.Name})
		}
	}
	var messages []entry
	for _, c := range request.Contents {
		messages = append(messages, geminiEntry(c.Role, c.Parts))
	}
	t.follow(messages)
	return t
}

func geminiEntry(role string, parts []geminiPart) entry {
	message := entry{model, ""}
	var texts []string
	for _, part := range parts {
		if part.Function != nil {
			return entry{result, string(part.Function.Response)}
		}
		texts = append(texts, part.Text)
	}
	if role == "user" {
		message = entry{person, prompt(texts)}
	}
	return message
}

func (gemini) calls(t turn, a answer, set settings) []any {
	var parts []any
	for _, o := range a.calls {
		i := t.invoke(o, set)
		parts = append(parts, object{"functionCall": object{"name": i.tool.name, "args": i.arguments}, "thoughtSignature": "bW9jaw=="})
	}
	return parts
}

func (gemini) finish(a answer) string {
	switch {
	case a.kind == refuse:
		return "SAFETY"
	case a.length:
		return "MAX_TOKENS"
	}
	return "STOP"
}

func (gemini) chunk(t turn, answerID string, parts []any, finish string) object {
	if parts == nil {
		parts = []any{}
	}
	candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	return object{"candidates": []any{candidate}, "modelVersion": t.model, "responseId": answerID,
		"usageMetadata": object{"promptTokenCount": usageInput, "candidatesTokenCount": usageOutput, "cachedContentTokenCount": usageCached,
			"thoughtsTokenCount": usageReasoning, "totalTokenCount": usageInput + usageOutput + usageReasoning}}
}

func (p gemini) whole(t turn, a answer, set settings, _ time.Time) object {
	var parts []any
	if a.thinking != "" {
		parts = append(parts, object{"text": a.thinking, "thought": true})
	}
	if a.text != "" {
		parts = append(parts, object{"text": a.text})
	}
	return p.chunk(t, id(""), append(parts, p.calls(t, a, set)...), p.finish(a))
}

func (p gemini) stream(s *stream, t turn, a answer, set settings, now time.Time) {
	answerID := id("")
	chunk := func(parts []any, finish string) { s.event("", p.chunk(t, answerID, parts, finish)) }
	words := func(text string) []any { return []any{object{"text": text}} }
	switch a.kind {
	case cutEOF, cutRST:
		chunk(words(partial), "")
		s.cut(a.kind)
		return
	case hangStream:
		chunk(words(partial), "")
		s.hang()
	case broken:
		chunk(words(partial), "")
		s.event("", p.failure(failureOf(a.name), set, now).body)
		return
	}
	for _, piece := range a.pieces(a.thinking) {
		chunk([]any{object{"text": piece, "thought": true}}, "")
		s.pause(a.delay)
	}
	pieces, calls := a.pieces(a.text), p.calls(t, a, set)
	for i, piece := range pieces {
		finish := ""
		if i == len(pieces)-1 && calls == nil {
			finish = p.finish(a)
		}
		chunk(words(piece), finish)
		s.pause(a.delay)
	}
	if calls != nil || len(pieces) == 0 {
		chunk(calls, p.finish(a))
	}
}
