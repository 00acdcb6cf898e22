package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

func TestCallsAreReportedOnceAndInOrder(t *testing.T) {
	a, err := clis.ForStream(config.Claude)
	if err != nil {
		t.Fatal(err)
	}
	call := func(id, tool, input string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}}`+"\n", id, tool, input)
	}
	result := func(id string, failed bool) string {
		return fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,"is_error":%v,"content":"out"}]}}`+"\n", id, failed)
	}
	edit := func(path string) string {
		return fmt.Sprintf(`{"file_path":%q,"old_string":"a","new_string":"b"}`, path)
	}
	stream := call("2", "Edit", edit("/r/two")) + call("2", "Edit", edit("/r/two")) + call("10", "Edit", edit("/r/ten")) + call("9", "Edit", edit("/r/nine")) +
		result("2", false) + result("2", false) + call("3", "Bash", `{"command":"make"}`) + result("3", true) + call("4", "Edit", edit("/r/refused")) + result("4", true) +
		call("5", "MultiEdit", `{"file_path":"/r/many","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}`) + result("5", false) +
		call("6", "NotebookEdit", `{"notebook_path":"/r/n.ipynb","new_source":"x","cell_id":"1"}`) + result("6", false)
	var got []string
	r, err := agent.Inspect(strings.NewReader(stream), a, agent.InspectOptions{Dir: "/r", OnCall: func(d agent.Call) {
		var paths []string
		for _, e := range d.Edits {
			paths = append(paths, e.Path)
			if e.Key == 0 {
				t.Errorf("%s: the content is unknown", e.Path)
			}
		}
		got = append(got, fmt.Sprintf("%v %v %v", paths, d.Failed, d.Result != 0))
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"[two] false true", "[] true true", "[] true true", "[many] false true", "[n.ipynb] false true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.Edits.Operations != 3 {
		t.Errorf("%d edits, want 3: two calls were never answered", r.Edits.Operations)
	}
}

func TestPatchesAreReadFromTheSessionFile(t *testing.T) {
	const id = "0199aaaa-bbbb"
	var b strings.Builder
	line := func(payload map[string]any) {
		j, err := json.Marshal(map[string]any{"type": "response_item", "payload": payload})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(j, '\n'))
	}
	patch := "*** Begin Patch\n*** Update File: /r/a.go\n-old\n+new\n*** End Patch"
	line(map[string]any{"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": patch})
	line(map[string]any{"type": "custom_tool_call_output", "call_id": "1", "output": `{"output":"Success","metadata":{"exit_code":0}}`})
	shell, err := json.Marshal(map[string]any{"command": []string{"bash", "-lc", "apply_patch <<'EOF'\n" + patch + "\nEOF"}})
	if err != nil {
		t.Fatal(err)
	}
	line(map[string]any{"type": "function_call", "call_id": "2", "name": "shell", "arguments": string(shell)})
	line(map[string]any{"type": "function_call_output", "call_id": "2", "output": `{"output":"","metadata":{"exit_code":0}}`})
	line(map[string]any{"type": "custom_tool_call", "call_id": "3", "name": "apply_patch", "input": patch})
	line(map[string]any{"type": "custom_tool_call_output", "call_id": "3", "output": `{"output":"no such line","metadata":{"exit_code":1}}`})
	line(map[string]any{"type": "function_call", "call_id": "4", "name": "exec_command", "arguments": `{"cmd":"make"}`})
	line(map[string]any{"type": "function_call_output", "call_id": "4", "output": "Process exited with code 2\nno rule"})
	home, _ := sessionFile(t, id, b.String())
	var edits []policy.Edit
	failed := 0
	if err := stream(config.Codex).SessionCalls(home, id, "/r", func(d agent.Call) {
		edits = append(edits, d.Edits...)
		if d.Failed {
			failed++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(edits) != 2 || failed != 2 || edits[0].Path != "a.go" || edits[0].Key == 0 || edits[0].Key != edits[1].Key {
		t.Errorf("%d failed, edits %+v; want 2 failed and the same edit of a.go twice", failed, edits)
	}
}
