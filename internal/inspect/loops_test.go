package inspect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
)

type claudeStream struct {
	b strings.Builder
	n int
}

func (s *claudeStream) line(v any) {
	b, _ := json.Marshal(v)
	s.b.Write(append(b, '\n'))
}

func (s *claudeStream) call(tool string, input map[string]any, failed bool, answer string) {
	s.n++
	id := fmt.Sprint("toolu_", s.n)
	use := map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}
	result := map[string]any{"type": "tool_result", "tool_use_id": id, "is_error": failed, "content": answer}
	s.line(map[string]any{"type": "assistant", "message": map[string]any{"id": "msg" + id, "content": []any{use}}})
	s.line(map[string]any{"type": "user", "message": map[string]any{"content": []any{result}}})
}

func (s *claudeStream) bash(command, answer string) {
	s.call("Bash", map[string]any{"command": command}, false, answer)
}

func (s *claudeStream) edit(n int) {
	s.call("Edit", map[string]any{"file_path": "a.go", "old_string": fmt.Sprint("old ", n), "new_string": fmt.Sprint("new ", n)}, false, "ok")
}

func TestLoopsOfOtherToolsAreNamed(t *testing.T) {
	for _, tc := range []struct {
		name  string
		turn  func(s *claudeStream, i int)
		kind  string
		class policy.Class
	}{
		{"cargo check after each edit", func(s *claudeStream, i int) {
			s.edit(i)
			s.bash("cargo check 2>&1 | tail -3", "error[E0308]: mismatched types\nerror: could not compile `a`")
		}, policy.LoopChecks, policy.Severe},
		{"an MCP tool's tests after each edit", func(s *claudeStream, i int) {
			s.edit(i)
			s.call("mcp__pawl__run_tests", map[string]any{}, false, "1 test fails: TestTotal")
		}, policy.LoopChecks, policy.Severe},
		{"eslint with a duration in its output", func(s *claudeStream, i int) {
			s.edit(i)
			s.bash("npx eslint a.js", fmt.Sprintf("3 problems\nDone in %d.2s", i))
		}, policy.LoopChecks, policy.Severe},
		{"a linter that fails after each edit", func(s *claudeStream, i int) {
			s.edit(i)
			s.call("Bash", map[string]any{"command": "make lint"}, true, "Exit code 2\na.go:1: undefined: x")
		}, policy.LoopFailures, policy.Severe},
		{"steady work with other results", func(s *claudeStream, i int) {
			s.edit(i)
			s.bash("go test ./...", fmt.Sprint(i, " tests pass"))
		}, "", policy.None},
		{"steady work with status checks and formatting", func(s *claudeStream, i int) {
			s.edit(i)
			s.bash("gofmt -w a.go", "(Bash completed with no output)")
			s.call("Read", map[string]any{"file_path": "a.go"}, false, "File unchanged since the last read.")
		}, "", policy.None},
		{"apply_patch that is refused", func(s *claudeStream, i int) {
			s.call("apply_patch", map[string]any{"input": "*** Begin Patch"}, true, "invalid patch")
		}, policy.LoopFailures, policy.None},
		{"sed -i that changes nothing", func(s *claudeStream, i int) { s.bash("sed -i s/a/b/ a.go", "") }, policy.LoopCalls, policy.None},
		{"cat that writes the same file", func(s *claudeStream, i int) { s.bash("cat > a.go <<'X'\npackage a\nX", "") }, policy.LoopCalls, policy.None},
		{"a search through MCP", func(s *claudeStream, i int) {
			s.call("mcp__docs__search", map[string]any{"query": "sleep 60"}, false, "nothing found")
		}, policy.LoopCalls, policy.None},
		{"three calls in turn", func(s *claudeStream, i int) {
			s.bash([]string{"ls", "git status", "cat go.mod"}[i%3], "x")
		}, policy.LoopCalls, policy.None},
		{"a status without a pause", func(s *claudeStream, i int) { s.bash("gh run view 7", "in_progress") }, policy.LoopCalls, policy.None},
		{"gh run watch", func(s *claudeStream, i int) { s.bash("timeout 50 gh run watch 7", "in_progress") }, "", policy.None},
		{"watch", func(s *claudeStream, i int) { s.bash("timeout 60 watch -n 10 kubectl get pods", "Pending") }, "", policy.None},
		{"until with sleep", func(s *claudeStream, i int) {
			s.bash("until curl -sf localhost; do sleep 5; done", "timed out")
		}, "", policy.None},
		{"sleep as a separate call", func(s *claudeStream, i int) {
			s.bash("sleep 30", "")
			s.bash("gh pr checks 7", "pending")
		}, "", policy.None},
		{"a check that is not green yet, with a pause", func(s *claudeStream, i int) {
			s.call("Bash", map[string]any{"command": "sleep 30 && gh pr checks 7"}, true, "build\tpending")
		}, "", policy.None},
		{"a tool that waits", func(s *claudeStream, i int) {
			s.call("TaskOutput", map[string]any{"task_id": "b1", "block": true}, false, "running")
		}, "", policy.None},
	} {
		s := &claudeStream{}
		s.line(map[string]any{"type": "system", "subtype": "init", "session_id": "s", "cwd": "/work"})
		for i := range 45 {
			tc.turn(s, i)
		}
		s.line(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": "done"})
		v := read(t, s.b.String(), options())
		kind := ""
		for _, l := range v.Loops {
			kind += l.Kind + " "
		}
		if v.Severity.Class != tc.class || !strings.Contains(kind, tc.kind) || tc.kind == "" && kind != "" {
			t.Errorf("%s: %s, loops %q; want %s and %q", tc.name, v.Severity.Class, kind, tc.class, tc.kind)
		}
	}
}

func TestPauseInTheStreamIsAWait(t *testing.T) {
	for _, tc := range []struct {
		pause, lasts time.Duration
		same         int
	}{
		{15 * time.Second, time.Second, 1},
		{2 * time.Second, 60 * time.Second, 30}, // a long call is not a pause
	} {
		var b strings.Builder
		at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
		for i := range 30 {
			began := at.Add(tc.pause)
			at = began.Add(tc.lasts)
			fmt.Fprintf(&b, `{"type":"tool_use","timestamp":%d,"sessionID":"s","part":{"type":"tool","tool":"bash","callID":"c%d","id":"p%d","messageID":"m%d","state":{"status":"completed","input":{"command":"./status"},"output":"busy","metadata":{"exit":0},"time":{"start":%d,"end":%d}}}}`+"\n",
				at.UnixMilli(), i, i, i, began.UnixMilli(), at.UnixMilli())
		}
		o := options()
		o.CLI = "opencode"
		if got := read(t, b.String(), o).Edits.SameCalls; got != tc.same {
			t.Errorf("a pause of %s before calls of %s: %d same calls, want %d", tc.pause, tc.lasts, got, tc.same)
		}
	}
}
