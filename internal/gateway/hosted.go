package gateway

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// hostedTypes begin the types of tools that the provider runs itself, in
// Responses and Messages. Of the CLIs only Codex offers one unasked
// (web_search, 0.169.0); Claude Code and Gemini CLI search in calls of their own.
var hostedTypes = []string{
	"web_search", "web_fetch", "code_interpreter", "code_execution", "image_generation", "file_search", "computer", "mcp",
}

// geminiLocal are the fields of Gemini's tools that the agent runs; each other
// one names something that Google does.
var geminiLocal = map[string]bool{"functionDeclarations": true, "function_declarations": true}

// errHosted refuses a call that is for nothing but a hosted tool.
var errHosted = errors.New("tools that the provider runs itself (web search, code execution, pictures, MCP servers) are not allowed")

// withoutHosted takes hosted tools out of a request, so that an agent that
// offers one among its own works on without it. An error refuses a request that
// has nothing else, or that asks for the same in another way. more tells of which
// fields the values may offer tools; see scanNamed.
func withoutHosted(kind callKind, f fields, more map[string]bool) (out fields, changed bool, err error) {
	for _, name := range []string{"mcp_servers", "web_search_options", "plugins", "container", "prompt"} {
		if list := listOf(f[name]); kind != generate && f.has(name) && (list == nil || len(list) > 0) {
			return nil, false, errHosted
		}
	}
	if strings.HasSuffix(f.text("model"), ":online") { // OpenRouter's search
		return nil, false, errHosted
	}
	out = maps.Clone(f)
	tools, changed := localTools(kind, scanList(f["tools"]))
	if changed {
		if len(tools) == 0 {
			return nil, false, errHosted
		}
		out.set("tools", tools)
	}
	if kind == responses && more["input"] {
		input, less := withoutAdditional(scanList(f["input"]))
		if less {
			out.set("input", input)
			changed = true
		}
	}
	if forced := scanObject(f["tool_choice"]); changed && forced != nil && hosted(kind, forced) {
		return nil, false, errHosted
	}
	return out, changed, nil
}

// localTools are those of a list that the agent runs; changed is false where
// these are all.
func localTools(kind callKind, tools []json.RawMessage) (local []json.RawMessage, changed bool) {
	local = []json.RawMessage{}
	for _, raw := range tools {
		tool := scanObject(raw)
		switch {
		case kind == generate:
			names := len(tool)
			maps.DeleteFunc(tool, func(name string, _ json.RawMessage) bool { return !geminiLocal[name] })
			if len(tool) < names {
				changed = true
				raw = encoded(tool)
			}
			if len(tool) == 0 && names > 0 {
				continue
			}
		case hosted(kind, tool):
			changed = true
			continue
		}
		local = append(local, raw)
	}
	return local, changed
}

func hosted(kind callKind, tool fields) bool {
	name := tool.text("type")
	if kind == chat {
		return name != "" && name != "function" && name != "custom"
	}
	if strings.HasPrefix(scanObject(tool["environment"]).text("type"), "container") { // a shell of the provider's
		return true
	}
	return slices.ContainsFunc(hostedTypes, func(start string) bool { return strings.HasPrefix(name, start) })
}

// withoutAdditional takes hosted tools out of the items by which Codex adds
// tools in the course of a session.
func withoutAdditional(input []json.RawMessage) (out []json.RawMessage, changed bool) {
	for i, raw := range input {
		if !mayName(raw, "tools") {
			continue
		}
		item := scanObject(raw)
		if item == nil || !item.has("tools") {
			continue
		}
		tools, less := localTools(responses, scanList(item["tools"]))
		if !less {
			continue
		}
		if !changed {
			input, changed = slices.Clone(input), true
		}
		item.set("tools", tools)
		input[i] = encoded(item)
	}
	return input, changed
}
