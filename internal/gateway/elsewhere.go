package gateway

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// elsewhere are fields by which a request brings in what stands at the provider and the gateway does not see: answers
// and conversations that may be another attempt's, caches, lists of models to fall back on.
var elsewhere = []string{
	"previous_response_id", "conversation", "cachedContent", "cached_content", "models", "fallbacks", "fallback_models",
}

// parts are the fields that hold parts of a conversation, in all protocols. What stands in others is an agent's own: the
// arguments of a tool, which may name any address.
var parts = []string{
	"content", "output", "parts", "source", "file", "image_url", "fileData", "file_data", "functionResponse", "function_response",
}

// conversation are the fields of a request that hold what was said, in all protocols, and growing the one of them to which
// an agent adds with each turn.
var (
	conversation = []string{"input", "messages", "contents", "system", "systemInstruction", "system_instruction"}
	growing      = map[callKind]string{responses: "input", chat: "messages", messages: "messages", countTokens: "messages", generate: "contents"}
)

// brought says what a conversation brings in from elsewhere, "" for nothing: a file that was given to the provider, an
// item that it keeps, an address that it would read.
func brought(v gjson.Result, depth int) (what string) {
	if depth == 0 {
		return fmt.Sprintf("what lies more than %d levels deep", maxDepth)
	}
	if v.IsArray() {
		v.ForEach(func(_, entry gjson.Result) bool {
			what = brought(entry, depth-1)
			return what == ""
		})
		return what
	}
	if !v.IsObject() {
		return ""
	}
	v.ForEach(func(name, value gjson.Result) bool {
		address := value.Str
		switch name.Str {
		case "file_id", "file_uri", "fileUri", "file_url":
			what = name.Str
		case "type":
			if slices.Contains([]string{"item_reference", "url", "file", "container_upload"}, value.Str) && (value.Str != "file" || !v.Get("file").Exists()) {
				what = value.Str
			}
		case "image_url", "url":
			if address != "" && !strings.HasPrefix(address, "data:") {
				what = "an address"
			}
		}
		if what == "" && slices.Contains(parts, name.Str) {
			what = brought(value, depth-1)
		}
		return what == ""
	})
	return what
}

// fromElsewhere refuses what the gateway cannot look at.
func fromElsewhere(f fields) error {
	for _, name := range elsewhere {
		if f.has(name) {
			return fmt.Errorf("%s is not allowed: send the whole conversation, for one model", name)
		}
	}
	for _, name := range conversation {
		if !mentions(f[name].Raw, `url"`, `"file`, `"item_reference"`, `"container_upload"`) { // url" ends image_url and file_url, too
			continue
		}
		if what := brought(f[name], maxDepth); what != "" {
			return fmt.Errorf("%s in %s is not allowed: send the content itself", what, name)
		}
	}
	return nil
}
