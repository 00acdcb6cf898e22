package fakeprovider

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// operation is a scenario's action, independent of the CLI's tools.
type operation struct {
	verb verb
	// path is relative to the work tree. write stores content there; edit replaces old with content.
	path, old, content string
	command            string
}

// Step is one tool call by a scripted model: write New to file Write, replace Old with New in file Edit, read file
// Read, or run the shell command Run. Paths are relative to the work tree.
type Step struct {
	Write, Edit, Read, Run string `json:",omitempty"`
	Old, New               string `json:",omitempty"`
}

func (s Step) operation() operation {
	switch {
	case s.Write != "":
		return writes(s.Write, s.New)
	case s.Edit != "":
		return edits(s.Edit, s.Old, s.New)
	case s.Read != "":
		return operation{verb: look, path: s.Read}
	}
	return runs(s.Run)
}

type verb int

const (
	write verb = iota
	edit
	shell
	// look reads path.
	look
	// runTests is an MCP server's tool whose name contains run_tests.
	runTests
)

// invocation is an operation as a call to an offered tool.
type invocation struct {
	tool tool
	// Tools with a schema take arguments; custom tools take input.
	arguments object
	input     string
	// search asks the CLI for further tools.
	search bool
}

func (i invocation) text() string {
	encoded, err := json.Marshal(i.arguments)
	if err != nil {
		return "{}"
	}
	return string(encoded)
}

// invoke chooses an offered tool for an operation. If none fits, it calls an unknown tool, like a confused model.
func (t turn) invoke(o operation, set settings) invocation {
	if script, ok := t.script(o); ok {
		return script
	}
	switch o.verb {
	case runTests:
		return t.invokeTests()
	case shell:
		return t.invokeShell(o.command)
	case look:
		return t.invokeLook(o, set)
	}
	patch := patchOf(o)
	if offered, ok := t.find("apply_patch"); ok && offered.custom {
		return invocation{tool: offered, input: patch}
	} else if ok {
		return invocation{tool: offered, arguments: object{"patchText": patch, "input": patch}}
	}
	path := t.whole(o.path, set)
	for _, name := range []string{"Write", "write", "write_file"} {
		if offered, ok := t.find(name); ok && o.verb == write {
			return invocation{tool: offered, arguments: object{t.pathKey(name): path, "content": o.content}}
		}
	}
	for _, name := range []string{"Edit", "edit", "replace"} {
		if offered, ok := t.find(name); ok && o.verb == edit {
			return invocation{tool: offered, arguments: t.editArguments(name, path, o)}
		}
	}
	return t.invokeShell("apply_patch <<'EOF'\n" + patch + "\nEOF")
}

// script returns a call for Codex's code mode, whose only tool runs JavaScript with the other tools as functions.
func (t turn) script(o operation) (invocation, bool) {
	exec, ok := t.find("exec")
	_, plain := t.find("exec_command")
	if !ok || plain || t.protocol != "responses" {
		return invocation{}, false
	}
	call := func(function string, argument any) string {
		encoded, err := json.Marshal(argument)
		if err != nil {
			return ""
		}
		return fmt.Sprintf("text(await tools.%s(%s));", function, encoded)
	}
	exec.custom = true
	switch o.verb {
	case runTests:
		return invocation{tool: exec, input: `const t = ALL_TOOLS.find((x) => /run_?tests/i.test(x.name)); ` +
			`text(t ? t.name : "no such tool"); if (t) text(await tools[t.name]({}));`}, true
	case shell:
		return invocation{tool: exec, input: call("exec_command", object{"cmd": o.command})}, true
	}
	return invocation{tool: exec, input: call("apply_patch", patchOf(o))}, true
}

var testTool = regexp.MustCompile(`(?i)run_?tests`)

// waiting is the tool that Claude Code offers while MCP servers connect. Until the model calls it, the servers' tools
// are missing.
const waiting = "WaitForMcpServers"

// canRunTests reports whether the request offers a tool that runs tests, or an untried way to get one.
func (t turn) canRunTests() bool {
	if _, ok := t.script(operation{verb: runTests}); ok {
		return true
	}
	return slices.ContainsFunc(t.tools, func(offered tool) bool {
		return testTool.MatchString(offered.name) || !t.searched && (offered.name == waiting || offered.name == "tool_search")
	})
}

func (t turn) invokeTests() invocation {
	for _, offered := range t.tools {
		if testTool.MatchString(offered.name) {
			return invocation{tool: offered, arguments: object{}}
		}
	}
	if offered, ok := t.find(waiting); ok {
		return invocation{tool: offered, arguments: object{}}
	}
	return invocation{tool: tool{name: "tool_search"}, search: true, arguments: object{"query": "run tests", "limit": 8}}
}

func (t turn) invokeShell(command string) invocation {
	described := object{"command": command, "description": "Run a command"}
	for _, known := range []struct {
		name      string
		arguments object
	}{
		{"exec_command", object{"cmd": command, "yield_time_ms": 10000}},
		{"shell_command", object{"command": command}},
		{"shell", object{"command": []string{"bash", "-lc", command}}},
		{"local_shell", object{"command": []string{"bash", "-lc", command}}},
		{"Bash", described},
		{"bash", described},
		{"run_shell_command", described},
	} {
		if offered, ok := t.find(known.name); ok {
			return invocation{tool: offered, arguments: known.arguments}
		}
	}
	return invocation{tool: tool{name: "shell"}, arguments: described}
}

// invokeLook reads a file with the CLI's tool, or with a shell command.
func (t turn) invokeLook(o operation, set settings) invocation {
	for _, name := range []string{"Read", "read", "read_file"} {
		if offered, ok := t.find(name); ok {
			return invocation{tool: offered, arguments: object{t.pathKey(name): t.whole(o.path, set)}}
		}
	}
	return t.invokeShell("cat " + o.path)
}

// whole returns an absolute path, which some CLIs' tools require, if the work tree is known.
func (t turn) whole(path string, set settings) string {
	if folder := t.folder(set); folder != "" {
		return filepath.Join(folder, path)
	}
	return path
}

// camel reports whether a tool is OpenCode's, with camel-case arguments. Qwen Code also has a tool "edit".
func (t turn) camel(name string) bool {
	_, qwen := t.find("write_file")
	return !qwen && (name == "write" || name == "edit" || name == "read")
}

func (t turn) pathKey(name string) string {
	if t.camel(name) {
		return "filePath"
	}
	return "file_path"
}

func (t turn) editArguments(name, path string, o operation) object {
	out := object{"file_path": path, "old_string": o.old, "new_string": o.content}
	switch {
	case t.camel(name):
		out = object{"filePath": path, "oldString": o.old, "newString": o.content}
	case name == "replace": // Gemini
		out["instruction"] = "Change the value."
	}
	return out
}

// patchOf returns the edit in the format of Codex's apply_patch.
func patchOf(o operation) string {
	if o.verb == edit {
		return fmt.Sprintf("*** Begin Patch\n*** Update File: %s\n@@\n%s%s*** End Patch", o.path, marked("-", o.old), marked("+", o.content))
	}
	return fmt.Sprintf("*** Begin Patch\n*** Add File: %s\n%s*** End Patch", o.path, marked("+", strings.TrimSuffix(o.content, "\n")))
}

func marked(mark, text string) string {
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark) + "\n"
}

// workTree matches a CLI's statement of its working directory.
var workTree = regexp.MustCompile(`(?:[Ww]orking directory: |working in the directory: |Workspace Directories:\*\*\n\s*- |<cwd>)(/[^\n<]*)`)

// folder returns the CLI's work tree from the setting cwd, or else from the request; empty if neither has it.
func (t turn) folder(set settings) string {
	if set["cwd"] != "" {
		return set["cwd"]
	}
	var body any
	if json.Unmarshal(t.body, &body) != nil {
		return ""
	}
	return folderIn(body)
}

func folderIn(value any) string {
	switch v := value.(type) {
	case string:
		if found := workTree.FindStringSubmatch(v); found != nil {
			return strings.TrimSpace(found[1])
		}
	case []any:
		for _, item := range v {
			if found := folderIn(item); found != "" {
				return found
			}
		}
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := folderIn(v[key]); found != "" {
				return found
			}
		}
	}
	return ""
}
