package gateway

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// elsewhere are fields by which a request brings in what stands at the provider and the gateway does not see: answers
// and conversations that may be another attempt's, caches, lists of models to fall back on.
var elsewhere = []string{
	"previous_response_id", "conversation", "cachedContent", "cached_content", "models", "fallbacks", "fallback_models",
}

// ofAgents are the fields of a conversation whose values are an agent's own, and may name any address and file: what its
// tools are called with, what they give back, how they are described. spoken are those whose texts may be an address: what
// was said, and where what a tool brings comes from.
var (
	ofAgents = []string{"action", "args", "arguments", "input", "operation", "response", "tools"}
	spoken   = []string{"code", "content", "output", "reasoning", "reasoning_content", "refusal", "source", "text", "thinking", "title"}
)

// conversation are the fields of a request that hold what was said, in all protocols.
var conversation = []string{"input", "messages", "contents", "system", "systemInstruction", "system_instruction"}

// brought says what a field of a conversation brings in from elsewhere, "" for nothing: a file that was given to the
// provider, an item that it keeps, an address that it would read.
func brought(name string, v gjson.Result, depth int) (what string) {
	switch text := v.Type == gjson.String; {
	case depth == 0:
		return fmt.Sprintf("what lies more than %d levels deep", maxDepth)
	case slices.Contains(ofAgents, name):
		return ""
	case slices.Contains([]string{"file_id", "file_uri", "fileUri", "file_url"}, name), name == "audio" && v.Get("id").Exists():
		return name
	case text && (strings.HasSuffix(name, "rl") || strings.HasSuffix(name, "ri")) && v.Str != "" && !strings.HasPrefix(v.Str, "data:"),
		text && remote.MatchString(v.Str) && !slices.Contains(spoken, name):
		return "an address"
	case !v.IsArray() && !v.IsObject():
		return ""
	}
	v.ForEach(func(field, value gjson.Result) bool {
		kind := ""
		if v.IsObject() {
			if name = field.Str; name == "type" {
				kind = value.Str
			}
		}
		if slices.Contains([]string{"item_reference", "url"}, kind) || kind == "file" && !v.Get("file").Exists() {
			what = kind
		} else {
			what = brought(name, value, depth-1)
		}
		return what == ""
	})
	return what
}

// remote begins an address of another machine.
var remote = regexp.MustCompile(`^\s*[A-Za-z][A-Za-z0-9+.-]*://`)

// beginsRemote reports whether a string within JSON may begin with such an address.
func beginsRemote(raw string) bool {
	const before = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.- \\"
	for i := 0; ; {
		next := strings.Index(raw[i:], "//")
		if next < 0 {
			return strings.Contains(raw, `\/`) // a way to write it
		}
		if scheme, ok := strings.CutSuffix(raw[i:i+next], ":"); ok && strings.HasSuffix(strings.TrimRight(scheme, before), `"`) {
			return true
		}
		i += next + len("//")
	}
}

// fromElsewhere refuses what the gateway cannot look at.
func fromElsewhere(f fields) error {
	for _, name := range elsewhere {
		if f.has(name) {
			return fmt.Errorf("%s is not allowed: send the whole conversation, for one model", name)
		}
	}
	for _, name := range conversation {
		raw := f[name].Raw // names such as imageUrl and file_uri end alike
		if !mentions(raw, `rl"`, `ri"`, `"file`, `"audio"`, `"item_reference"`) && !beginsRemote(raw) {
			continue
		}
		if what := brought("content", f[name], maxDepth); what != "" {
			return fmt.Errorf("%s in %s is not allowed: send the content itself", what, name)
		}
	}
	return nil
}

// dropUnknown takes out what no list names, and gives the names: a field of tomorrow may ask for anything.
func dropUnknown(kind callKind, f fields) string {
	sent := forms[kind].sent
	if sent == nil {
		return "" // it counts tokens, and nothing is made of what it holds
	}
	listed := slices.Concat(sent, hostedFields, elsewhere, tierFields)
	var unknown []string
	for name := range f {
		if !slices.Contains(listed, name) {
			unknown = append(unknown, name)
			delete(f, name)
		}
	}
	slices.Sort(unknown)
	return strings.Join(unknown, " ")
}
