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
	switch kind {
	case responses:
		f.set("input", slices.DeleteFunc(listOf(f["input"]), func(item json.RawMessage) bool {
			return objectOf(item).text("encrypted_content") == marker
		}))
	case messages, countTokens:
		kept := []json.RawMessage{}
		for _, m := range listOf(f["messages"]) {
			if m = unmarkedMessage(m); m != nil {
				kept = append(kept, m)
			}
		}
		f.set("messages", kept)
	default:
		return body
	}
	return encoded(f)
}

// unmarkedMessage gives nil for a message of which nothing is left.
func unmarkedMessage(message json.RawMessage) json.RawMessage {
	m := objectOf(message)
	content := listOf(m["content"])
	kept := slices.DeleteFunc(slices.Clone(content), func(block json.RawMessage) bool {
		return objectOf(block).text("signature") == marker
	})
	if len(kept) == len(content) {
		return message
	}
	if len(kept) == 0 {
		return nil
	}
	m.set("content", kept)
	return encoded(m)
}
