package fakeprovider_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakeprovider"
)

type object = map[string]any

// reply is an answer as a client parses it, independent of the protocol.
type reply struct {
	Thinking, Text string
	// Calls lists each tool call as its name and arguments.
	Calls []string
	// Finish is the protocol's reason for the end; empty if the answer never ended.
	Finish string
	// Error is the message of an error inside the stream.
	Error string
	Usage bool
}

// wires has the client's side of the four protocols: how to make a request and parse an answer.
var wires = map[string]struct {
	path func(stream bool) string
	// ask builds a request with one prompt, the results of earlier tool calls and the offered tools.
	ask   func(prompt string, results []string, tools ...string) object
	event func(h *reply, data object)
	whole func(h *reply, body object)
	tools []string // the tools of the CLI that uses the protocol
}{
	"responses": {
		path: func(bool) string { return "/v1/responses" },
		ask: func(prompt string, results []string, tools ...string) object {
			input := []any{object{"type": "message", "role": "user", "content": []any{object{"type": "input_text", "text": "<environment_context><cwd>/work/tree</cwd></environment_context>"}}},
				object{"type": "message", "role": "user", "content": []any{object{"type": "input_text", "text": prompt}}}}
			for _, r := range results {
				input = append(input, object{"type": "function_call", "name": "x", "call_id": "1", "arguments": "{}"}, object{"type": "function_call_output", "call_id": "1", "output": r})
			}
			offered := []any{}
			for _, name := range tools {
				kind := "function"
				if name == "apply_patch" {
					kind = "custom"
				}
				offered = append(offered, object{"type": kind, "name": name})
			}
			return object{"model": "m", "input": input, "tools": offered}
		},
		event: func(h *reply, data object) {
			switch data["type"] {
			case "response.reasoning_summary_text.delta":
				h.Thinking += data["delta"].(string)
			case "response.output_text.delta":
				h.Text += data["delta"].(string)
			case "response.output_item.done":
				responsesItem(h, data["item"].(object), true)
			case "response.completed", "response.incomplete":
				responsesEnd(h, data["response"].(object))
			case "response.failed":
				h.Error = data["response"].(object)["error"].(object)["message"].(string)
			}
		},
		whole: func(h *reply, body object) {
			for _, item := range body["output"].([]any) {
				responsesItem(h, item.(object), false)
			}
			responsesEnd(h, body)
		},
		tools: []string{"exec_command", "apply_patch", "run_tests"},
	},
	"chat": {
		path: func(bool) string { return "/v1/chat/completions" },
		ask: func(prompt string, results []string, tools ...string) object {
			messages := []any{object{"role": "system", "content": "Working directory: /work/tree\nYou are an agent."}, object{"role": "user", "content": prompt}}
			for _, r := range results {
				messages = append(messages, object{"role": "assistant", "content": nil, "tool_calls": []any{}}, object{"role": "tool", "content": r})
			}
			offered := []any{}
			for _, name := range tools {
				offered = append(offered, object{"type": "function", "function": object{"name": name}})
			}
			return object{"model": "m", "messages": messages, "tools": offered}
		},
		event: func(h *reply, data object) {
			if e, ok := data["error"].(object); ok {
				h.Error = e["message"].(string)
				return
			}
			h.Usage = h.Usage || data["usage"] != nil
			for _, c := range data["choices"].([]any) {
				chatChoice(h, c.(object), "delta")
			}
		},
		whole: func(h *reply, body object) {
			h.Usage = body["usage"] != nil
			chatChoice(h, body["choices"].([]any)[0].(object), "message")
		},
		tools: []string{"bash", "write", "edit", "ci_run_tests"},
	},
	"anthropic": {
		path: func(bool) string { return "/v1/messages" },
		ask: func(prompt string, results []string, tools ...string) object {
			messages := []any{object{"role": "user", "content": []any{object{"type": "text", "text": "<system-reminder>x</system-reminder>"}, object{"type": "text", "text": prompt}}}}
			for _, r := range results {
				messages = append(messages, object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": "1", "name": "x", "input": object{}}}},
					object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "1", "content": r}}})
			}
			offered := []any{}
			for _, name := range tools {
				offered = append(offered, object{"name": name})
			}
			return object{"model": "m", "messages": messages, "tools": offered, "system": []any{object{"type": "text", "text": "# Environment\n - Primary working directory: /work/tree\n"}}}
		},
		event: anthropicEvent,
		whole: func(h *reply, body object) {
			for _, b := range body["content"].([]any) {
				switch b := b.(object); b["type"] {
				case "thinking":
					h.Thinking += b["thinking"].(string)
				case "text":
					h.Text += b["text"].(string)
				case "tool_use":
					h.Calls = append(h.Calls, fmt.Sprint(b["name"], " ", text(b["input"])))
				}
			}
			h.Finish, h.Usage = body["stop_reason"].(string), body["usage"] != nil
		},
		tools: []string{"Bash", "Write", "Edit", "mcp__ci__run_tests"},
	},
	"gemini": {
		path: func(stream bool) string {
			if stream {
				return "/v1beta/models/m:streamGenerateContent?alt=sse"
			}
			return "/v1beta/models/m:generateContent"
		},
		ask: func(prompt string, results []string, tools ...string) object {
			contents := []any{object{"role": "user", "parts": []any{object{"text": "<session_context>\n- **Workspace Directories:**\n  - /work/tree\n</session_context>"}}},
				object{"role": "user", "parts": []any{object{"text": prompt}}}}
			for _, r := range results {
				contents = append(contents, object{"role": "model", "parts": []any{object{"functionCall": object{"name": "x"}}}},
					object{"role": "user", "parts": []any{object{"functionResponse": object{"name": "x", "response": object{"output": r}}}}})
			}
			offered := []any{}
			for _, name := range tools {
				offered = append(offered, object{"name": name})
			}
			return object{"contents": contents, "tools": []any{object{"functionDeclarations": offered}}}
		},
		event: geminiChunk,
		whole: geminiChunk,
		tools: []string{"run_shell_command", "write_file", "replace", "mcp_ci_run_tests"},
	},
}

func text(v any) string {
	encoded, _ := json.Marshal(v)
	return string(encoded)
}

func responsesItem(h *reply, item object, streamed bool) {
	switch item["type"] {
	case "function_call":
		h.Calls = append(h.Calls, fmt.Sprint(item["name"], " ", item["arguments"]))
	case "custom_tool_call":
		h.Calls = append(h.Calls, fmt.Sprint(item["name"], " ", item["input"]))
	case "tool_search_call":
		h.Calls = append(h.Calls, fmt.Sprint("tool_search ", text(item["arguments"])))
	}
	if streamed {
		return
	}
	switch item["type"] {
	case "reasoning":
		h.Thinking += item["summary"].([]any)[0].(object)["text"].(string)
	case "message":
		if t, ok := item["content"].([]any)[0].(object)["text"].(string); ok {
			h.Text += t
		}
	}
}

func responsesEnd(h *reply, response object) {
	h.Finish, h.Usage = response["status"].(string), response["usage"] != nil
}

func chatChoice(h *reply, choice object, key string) {
	delta := choice[key].(object)
	if t, ok := delta["reasoning_content"].(string); ok {
		h.Thinking += t
	}
	if t, ok := delta["content"].(string); ok {
		h.Text += t
	}
	calls, _ := delta["tool_calls"].([]any)
	for _, c := range calls {
		f := c.(object)["function"].(object)
		h.Calls = append(h.Calls, fmt.Sprint(f["name"], " ", f["arguments"]))
	}
	if f, ok := choice["finish_reason"].(string); ok {
		h.Finish = f
	}
}

func anthropicEvent(h *reply, data object) {
	switch data["type"] {
	case "content_block_start":
		if b := data["content_block"].(object); b["type"] == "tool_use" {
			h.Calls = append(h.Calls, fmt.Sprint(b["name"], " "))
		}
	case "content_block_delta":
		switch d := data["delta"].(object); d["type"] {
		case "thinking_delta":
			h.Thinking += d["thinking"].(string)
		case "text_delta":
			h.Text += d["text"].(string)
		case "input_json_delta":
			h.Calls[len(h.Calls)-1] += d["partial_json"].(string)
		}
	case "message_delta":
		h.Finish, h.Usage = data["delta"].(object)["stop_reason"].(string), data["usage"] != nil
	case "error":
		h.Error = data["error"].(object)["message"].(string)
	}
}

func geminiChunk(h *reply, data object) {
	if e, ok := data["error"].(object); ok {
		h.Error = e["message"].(string)
		return
	}
	h.Usage = data["usageMetadata"] != nil
	candidate := data["candidates"].([]any)[0].(object)
	for _, p := range candidate["content"].(object)["parts"].([]any) {
		switch p := p.(object); {
		case p["functionCall"] != nil:
			call := p["functionCall"].(object)
			h.Calls = append(h.Calls, fmt.Sprint(call["name"], " ", text(call["args"])))
		case p["thought"] == true:
			h.Thinking += p["text"].(string)
		default:
			h.Text += p["text"].(string)
		}
	}
	if f, ok := candidate["finishReason"].(string); ok {
		h.Finish = f
	}
}

// post sends a request and returns the whole answer. err is the error that ended it early.
func post(t *testing.T, url string, body object, header ...string) (status int, head http.Header, answer []byte, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(text(body)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, response.Header, answer, err
}

// parse parses an answer up to the first event that is not JSON.
func parse(t *testing.T, protocol string, stream bool, answer []byte) reply {
	t.Helper()
	wire, h := wires[protocol], reply{}
	if !stream {
		var body object
		if err := json.Unmarshal(answer, &body); err != nil {
			t.Fatalf("%s: %v\n%s", protocol, err, answer)
		}
		wire.whole(&h, body)
		return h
	}
	lines := bufio.NewScanner(bytes.NewReader(answer))
	lines.Buffer(nil, 1<<20)
	name := ""
	for lines.Scan() {
		line := lines.Text()
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			name = event
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var event object
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return h
		}
		if (protocol == "responses" || protocol == "anthropic") && event["type"] != name {
			t.Fatalf("event %q carries %v", name, event["type"])
		}
		wire.event(&h, event)
	}
	return h
}

// talk sends one request to a scenario.
func talk(t *testing.T, s *fakeprovider.Server, scenario, protocol string, stream bool, results ...string) reply {
	t.Helper()
	wire := wires[protocol]
	body := wire.ask("Create hello.txt.", results, wire.tools...)
	if stream && protocol != "gemini" {
		body["stream"] = true
	}
	status, _, answer, err := post(t, s.URL(scenario)+wire.path(stream), body)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%s by %s: %d %v\n%s", scenario, protocol, status, err, answer)
	}
	return parse(t, protocol, stream, answer)
}

func TestStreamedAndWholeAnswersAreEqual(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	s.Set("bytes", "3000")
	for protocol := range wires {
		for _, scenario := range []string{"edit-success", "thinking", "prose", "empty", "refusal", "max-tokens", "shell-edit", "mcp", "no-edit"} {
			streamed, whole := talk(t, s, scenario, protocol, true), talk(t, s, scenario, protocol, false)
			if diff := cmp.Diff(streamed, whole); diff != "" {
				t.Errorf("%s by %s (-streamed +whole):\n%s", scenario, protocol, diff)
			}
			// A truncated Responses answer has no usage.
			if streamed.Finish == "" || !streamed.Usage && scenario != "max-tokens" {
				t.Errorf("%s by %s does not end or has no usage: %+v", scenario, protocol, streamed)
			}
		}
	}
}

func TestEachAgentGetsTheToolsThatItOffers(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	const patch = "apply_patch *** Begin Patch\n*** "
	want := map[string][4]string{
		"responses": {patch + "Add File: hello.txt\n+hello from the mock model\n*** End Patch", patch + "Update File: counter.txt\n@@\n-counter: 0\n+counter: 1\n*** End Patch",
			`exec_command {"cmd":"echo about to fail; echo oops \u003e\u00262; exit 3","yield_time_ms":10000}`, `run_tests {}`},
		"chat": {`write {"content":"hello from the mock model\n","filePath":"/work/tree/hello.txt"}`, `edit {"filePath":"/work/tree/counter.txt","newString":"counter: 1","oldString":"counter: 0"}`,
			`bash {"command":"echo about to fail; echo oops \u003e\u00262; exit 3","description":"Run a command"}`, `ci_run_tests {}`},
		"anthropic": {`Write {"content":"hello from the mock model\n","file_path":"/work/tree/hello.txt"}`, `Edit {"file_path":"/work/tree/counter.txt","new_string":"counter: 1","old_string":"counter: 0"}`,
			`Bash {"command":"echo about to fail; echo oops \u003e\u00262; exit 3","description":"Run a command"}`, `mcp__ci__run_tests {}`},
		"gemini": {`write_file {"content":"hello from the mock model\n","file_path":"/work/tree/hello.txt"}`,
			`replace {"file_path":"/work/tree/counter.txt","instruction":"Change the value.","new_string":"counter: 1","old_string":"counter: 0"}`,
			`run_shell_command {"command":"echo about to fail; echo oops \u003e\u00262; exit 3","description":"Run a command"}`, `mcp_ci_run_tests {}`},
	}
	for protocol, calls := range want {
		got := []reply{talk(t, s, "edit-success", protocol, true), talk(t, s, "edit-loop", protocol, true, "ok"), talk(t, s, "tool-fail", protocol, true), talk(t, s, "mcp", protocol, true)}
		for i, h := range got {
			if diff := cmp.Diff([]string{calls[i]}, h.Calls); diff != "" {
				t.Errorf("%s, call %d (-want +got):\n%s", protocol, i, diff)
			}
		}
	}
}

func TestCodexToolVariantsAreServed(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	wire := wires["responses"]
	ask := func(scenario string, tools ...string) string {
		_, _, answer, err := post(t, s.URL(scenario)+"/v1/responses", wire.ask("Go.", nil, tools...))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(parse(t, "responses", false, answer).Calls, "; ")
	}
	const patch = "*** Begin Patch\n*** Add File: hello.txt\n+hello from the mock model\n*** End Patch"
	for _, c := range []struct{ got, want string }{
		{ask("edit-success", "exec_command"), `exec_command ` + text(object{"cmd": "apply_patch <<'EOF'\n" + patch + "\nEOF", "yield_time_ms": 10000})},
		{ask("edit-success", "shell"), `shell ` + text(object{"command": []string{"bash", "-lc", "apply_patch <<'EOF'\n" + patch + "\nEOF"}})},
		{ask("edit-success", "exec"), `exec text(await tools.apply_patch(` + text(patch) + `));`},
		{ask("mcp", "exec_command", "tool_search"), `tool_search {"limit":8,"query":"run tests"}`},
		{ask("mcp", "exec_command"), ""},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// Claude Code's first request may come before a slow MCP server has connected.
func TestClaudeWaitsForItsTools(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	wire := wires["anthropic"]
	body := wire.ask("Go.", nil, "Write", "WaitForMcpServers")
	ask := func() reply {
		_, _, answer, err := post(t, s.URL("mcp")+"/v1/messages", body)
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, "anthropic", false, answer)
	}
	if h := ask(); !slices.Equal(h.Calls, []string{"WaitForMcpServers {}"}) {
		t.Errorf("before: %+v", h)
	}
	body["messages"] = append(body["messages"].([]any),
		object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": "w", "name": "WaitForMcpServers", "input": object{}}}},
		object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "w", "content": "ready=false"}}})
	if h := ask(); h.Calls != nil || !strings.Contains(h.Text, "no tool") {
		t.Errorf("after waiting in vain: %+v", h)
	}
	body["tools"] = append(body["tools"].([]any), object{"name": "mcp__ci__run_tests"})
	if h := ask(); !slices.Equal(h.Calls, []string{"mcp__ci__run_tests {}"}) {
		t.Errorf("after waiting: %+v", h)
	}
}
