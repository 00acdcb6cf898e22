package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWhiteSpaceAndPointsInTimeDoNotTellTextsApart(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"x := 1\n", "x := 1", true},
		{"\tx := 1\n\n\ty := 2\n", "  x := 1  \r\n y := 2", true},
		{"built 2026-11-21T08:30:00Z by x", "built 2027-01-02T09:00:01.123456Z by x", true},
		{"built 2026-11-21 08:30:00 by x", "built 2026-12-21 18:31:07 by x", true},
		{"at 1795248776536", "at 1795248799999", true},
		{"at (1795248776)", "at (1795248799)", true},
		{"counter: 1", "counter: 2", false},
		{"port 8080", "port 8081", false},
		{"044e7c69b539615f", "3c29e61e27c6ee95", false},
		{"x := 1", "x := 1\ny := 2", false},
		{"a\nb", "b\na", false},
		{"version 1.2.3", "version 1.2.4", false},
	} {
		a, _ := fold(tc.a)
		b, _ := fold(tc.b)
		if (a == b) != tc.same {
			t.Errorf("%q and %q: same %v, want %v", tc.a, tc.b, a == b, tc.same)
		}
	}
}

func TestEditsWithOtherTextsHaveOtherKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{1,9}( [a-z]{1,9}){0,3}`)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		same := strings.Join(strings.Fields(b), " ") == strings.Join(strings.Fields(c), " ")
		if got := replaced("f", a, b).Key == replaced("f", a, c).Key; got != same {
			t.Fatalf("%q to %q and to %q: same key %v", a, b, c, got)
		}
		if a != b && replaced("f", a, b).Key == replaced("f", b, a).Key {
			t.Fatalf("%q to %q has the key of the way back", a, b)
		}
		if replaced("f", a, b).Key == 0 || written("f", a).Key == 0 || written("f", "").State == 0 {
			t.Fatal("a known edit has no key")
		}
	})
}

func TestAPatchGivesItsFilesAndLines(t *testing.T) {
	edits := patchEdits("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.go\n+package a\n+var x int\n" +
		"*** Update File: old.go\n@@ func a\n same line\n-was here\n+is here now\n*** Delete File: gone.go\n*** End Patch\nEOF\n")
	var got []string
	for _, e := range edits {
		got = append(got, fmt.Sprintf("%s +%d -%d %v", e.Path, len(e.Added), len(e.Removed), e.Key != 0))
	}
	want := []string{"new.go +2 -0 true", "old.go +1 -1 true", "gone.go +0 -0 true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again := patchEdits("*** Begin Patch\n*** Update File: old.go\n@@ func b\n same line\n-was here\n+is here now\n*** End Patch\n"); again[0].Key == edits[1].Key {
		t.Error("the same lines at another place have the same key")
	}
}

func TestDeedsComeOnceAndInOrder(t *testing.T) {
	a, err := ForStream(StreamClaude)
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
	r, err := Inspect(strings.NewReader(stream), a, InspectOptions{Dir: "/r", OnDeed: func(d Deed) {
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
	want := []string{"[two] false false", "[] true true", "[] true true", "[many] false false", "[n.ipynb] false false", "[ten] false false", "[nine] false false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.Edits.Operations != 5 {
		t.Errorf("%d edits, want 5", r.Edits.Operations)
	}
}

func TestTheSessionFileTellsThePatches(t *testing.T) {
	home, id := t.TempDir(), "0199aaaa-bbbb"
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
	dir := filepath.Join(home, codexSessions, "2026/11/21")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rollout-x-"+id+".jsonl"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var edits []Edit
	failed := 0
	if err := codexAdapter().SessionDeeds(home, id, "/r", func(d Deed) {
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
