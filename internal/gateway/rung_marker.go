package gateway

import (
	"bytes"
	"encoding/json"
	"slices"
)

// marker stands in the place of the provider's signature on reasoning that was
// halted. Providers refuse reasoning without their own signature, so an agent
// that sends it back has it taken out here. It is base64 of "pawl: this
// reasoning was halted".
const marker = "cGF3bDogdGhpcyByZWFzb25pbmcgd2FzIGhhbHRlZA=="

// unmarked takes halted reasoning out of a request.
func unmarked(kind callKind, body []byte) []byte {
	if !bytes.Contains(body, []byte(marker)) {
		return body
	}
	f := objectOf(body)
	name := "messages"
	if kind == responses {
		name = "input"
	}
	list := listOf(f[name])
	if list == nil {
		return body
	}
	if kind == messages && haltedInTurn(list) {
		f.set("thinking", object{"type": "disabled"})
		withoutThinkingEdits(f)
	}
	kept := []json.RawMessage{}
	for _, entry := range list {
		switch {
		case kind != responses:
			entry = unmarkedMessage(entry)
		case objectOf(entry).text("encrypted_content") == marker:
			entry = nil
		}
		if entry != nil {
			kept = append(kept, entry)
		}
	}
	f.set(name, kept)
	return encoded(f)
}

// haltedInTurn reports whether reasoning was halted in the turn that goes on with
// these messages: since the last one that is the user's own and brings no
// result of a tool. While a turn goes on, Anthropic wants its answers to begin
// with reasoning where thinking is on, and that reasoning is taken out.
func haltedInTurn(list []json.RawMessage) bool {
	halted, user, results := false, false, false
	for _, entry := range list {
		m := objectOf(entry)
		content := listOf(m["content"])
		if m.text("role") == "assistant" {
			halted = halted && (results || !user) || slices.ContainsFunc(content, isMarked)
			user, results = false, false
			continue
		}
		user = true
		results = results || slices.ContainsFunc(content, func(block json.RawMessage) bool { return objectOf(block).text("type") == "tool_result" })
	}
	return halted && results
}

func isMarked(block json.RawMessage) bool { return objectOf(block).text("signature") == marker }

// unmarkedMessage gives nil for a message of which nothing is left.
func unmarkedMessage(message json.RawMessage) json.RawMessage {
	m := objectOf(message)
	content := listOf(m["content"])
	kept := slices.DeleteFunc(slices.Clone(content), isMarked)
	if len(kept) == len(content) {
		return message
	}
	if len(kept) == 0 {
		return nil
	}
	m.set("content", kept)
	return encoded(m)
}
