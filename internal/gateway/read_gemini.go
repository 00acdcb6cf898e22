package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
)

type geminiPart struct {
	Text         string          `json:"text"`
	Thought      bool            `json:"thought"`
	FunctionCall json.RawMessage `json:"functionCall"`
	Code         json.RawMessage `json:"executableCode"`
	Signature    string          `json:"thoughtSignature"`
}

type geminiUsage struct {
	Prompt    count `json:"promptTokenCount"`
	Cached    count `json:"cachedContentTokenCount"`
	Output    count `json:"candidatesTokenCount"`
	Thoughts  count `json:"thoughtsTokenCount"`
	ToolInput count `json:"toolUsePromptTokenCount"`
}

type geminiChunk struct {
	Candidates []struct {
		Content struct {
			Parts []geminiPart `json:"parts"`
		} `json:"content"`
		Finish string `json:"finishReason"`
	} `json:"candidates"`
	Usage    *geminiUsage    `json:"usageMetadata"`
	Error    json.RawMessage `json:"error"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
}

// readGemini reads a chunk of a stream, a whole body, or the array of chunks
// that a stream without alt=sse is.
func readGemini(data []byte, a *answer) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '[' {
		var chunks []json.RawMessage
		if json.Unmarshal(trimmed, &chunks) == nil {
			for _, chunk := range chunks {
				if !bytes.HasPrefix(bytes.TrimSpace(chunk), []byte("[")) {
					readGemini(chunk, a)
				}
			}
		}
		return
	}
	var c geminiChunk
	if json.Unmarshal(data, &c) != nil {
		return
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		a.failure = bytes.Clone(data)
	}
	for _, candidate := range c.Candidates {
		for _, p := range candidate.Content.Parts {
			a.prose += len(p.Text)
			a.other += len(p.FunctionCall) + len(p.Code) + len(p.Signature)
			a.text = a.text || !p.Thought && strings.TrimSpace(p.Text) != ""
			a.tool = a.tool || len(p.FunctionCall) > 0 || len(p.Code) > 0
		}
		if candidate.Finish != "" {
			a.ended, a.over = true, true
			a.plainEnd = candidate.Finish == "STOP" || candidate.Finish == "MAX_TOKENS"
		}
	}
	if c.Feedback.Block != "" {
		a.ended, a.over = true, true
	}
	if u := c.Usage; u != nil { // each replaces the one before
		a.tokens = tokens{
			input: int64(u.Prompt + u.ToolInput), cached: int64(u.Cached), output: int64(u.Output + u.Thoughts),
		}
		a.inputTold = true
		a.outTold = a.outTold || a.ended
	}
}
