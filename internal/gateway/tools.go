package gateway

import (
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

var errHosted = errors.New("tools that the provider runs itself (web search, code execution, pictures, MCP servers) are not allowed")

// dropHosted removes hosted tools, so that an agent continues with its own. It refuses requests with hosted tools only.
// adds is true if the conversation adds tools.
func (f fields) dropHosted(kind callKind) (adds, changed bool, err error) {
	if !f.mayList("tools") || f["input"].IsObject() {
		return false, false, errors.New("tools and input must be lists")
	}
	local, changed := kind.localTools(f["tools"])
	if changed {
		if len(local) == 0 {
			return false, false, errHosted
		}
		f.set("tools", list(local))
	}
	if kind == responses && mentions(f["input"].Raw, `"tools"`) {
		input, adding, less := withoutAdditional(f["input"])
		if less {
			f.set("input", list(input))
			changed = true
		}
		adds = adding
	}
	if changed && kind.forcesHosted(f["tool_choice"]) {
		return false, false, errHosted
	}
	return adds, changed, nil
}

// forcesHosted reports whether a tool choice names a removed type. Messages and Gemini choose by name; the
// provider then lacks that tool.
func (kind callKind) forcesHosted(choice gjson.Result) bool {
	switch kind {
	case messages, generate:
		return false
	}
	return choice.IsObject() && kind.hosted(choice, maxDepth)
}

func rewritten(list gjson.Result, edit func(gjson.Result) string) (out []string, changed bool) {
	for entry := range elements(list) {
		raw := edit(entry)
		changed = changed || raw != entry.Raw
		if raw != "" {
			out = append(out, raw)
		}
	}
	return out, changed
}

func (kind callKind) localTools(tools gjson.Result) (local []string, changed bool) {
	return rewritten(tools, func(entry gjson.Result) string { return kind.localTool(entry) })
}

// localTool returns the local part of a tool, or empty.
func (kind callKind) localTool(entry gjson.Result) string {
	if kind == generate {
		return localDeclarations(entry)
	}
	if kind.hosted(entry, maxDepth) {
		return ""
	}
	return entry.Raw
}

// localDeclarations keeps functions of Gemini's tools; Google runs the others.
func localDeclarations(entry gjson.Result) string {
	tool, ok := distinct(entry)
	if !ok {
		return ""
	}
	all := len(tool)
	for name := range tool {
		if name != "functionDeclarations" && name != "function_declarations" {
			delete(tool, name)
		}
	}
	switch len(tool) {
	case all:
		return entry.Raw
	case 0:
		return ""
	}
	return tool.json()
}

// maxDepth limits nesting, because each level is parsed again.
const maxDepth = 32

// hosted reports whether a tool, or a nested one, is not the agent's own.
func (kind callKind) hosted(entry gjson.Result, depth int) bool {
	tool, ok := toolOf(entry)
	if !ok || depth == 0 {
		return true
	}
	if !forms[kind].local.MatchString(tool["type"].Str) || tool.runsElsewhere() {
		return true
	}
	for within := range elements(tool["tools"]) {
		if kind.hosted(within, depth-1) {
			return true
		}
	}
	return false
}

// toolOf reads a tool, or returns false if it is ambiguous.
func toolOf(entry gjson.Result) (fields, bool) {
	tool, ok := distinct(entry)
	if !ok {
		return nil, false
	}
	if other, _ := tool.spelledOtherwise("type", "tools", "environment"); other != "" {
		return nil, false
	}
	if tool.has("type") && tool["type"].Type != gjson.String {
		return nil, false
	}
	return tool, tool.mayList("tools")
}

// runsElsewhere reports whether a local tool refers to the provider: a shell's environment, an id, an address.
func (tool fields) runsElsewhere() bool {
	if tool.has("environment") {
		environment, ok := distinct(tool["environment"])
		if !ok || environment["type"].Str != "local" {
			return true
		}
	}
	for name, v := range tool {
		if v.Type != gjson.String {
			continue
		}
		plain := plainName(name)
		if addressName.MatchString(plain) || isID(name, plain) {
			return true
		}
	}
	return false
}

// mentions reports whether JSON may contain one of the names. \u00 counts, since names may be escaped. Searching is
// much faster than parsing.
func mentions(raw string, names ...string) bool {
	return slices.ContainsFunc(append(names, "u00"), func(name string) bool { return strings.Contains(raw, name) })
}

// withoutAdditional removes hosted tools that Codex adds within a session.
func withoutAdditional(input gjson.Result) (out []string, adds, changed bool) {
	out, changed = rewritten(input, func(entry gjson.Result) string {
		raw, adding := withoutHosted(entry)
		adds = adds || adding
		return raw
	})
	return out, adds, changed
}

// withoutHosted returns an item without added hosted tools, or empty if ambiguous.
func withoutHosted(entry gjson.Result) (raw string, adds bool) {
	if !mentions(entry.Raw, `"tools"`) {
		return entry.Raw, false
	}
	item, twice := namesOf(entry) // a plain text has no fields
	if twice != "" || !item.mayList("tools") {
		return "", false
	}
	local, less := responses.localTools(item["tools"])
	if !less {
		return entry.Raw, len(local) > 0
	}
	item.set("tools", list(local))
	return item.json(), len(local) > 0
}
