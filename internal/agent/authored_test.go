package agent_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy/feedback"
)

// item is one line of a codex stream.
func item(t testing.TB, fields map[string]any) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"type": "item.completed", "item": fields})
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func ran(t testing.TB, command, output string) string {
	return item(t, map[string]any{"id": "1", "type": "command_execution", "command": command, "aggregated_output": output, "exit_code": 0, "status": "completed"})
}

// wrote reports whether a codex stream shows that the agent wrote the whole remark.
func wrote(t testing.TB, transcript, remark string) bool {
	t.Helper()
	var w feedback.Authored
	err := agent.ReadLines(strings.NewReader(transcript), func(line []byte) {
		stream(config.Codex).Parse(line, func(e agent.Event) { w.Add(e.Authored, e.Ran) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return w.Wrote(remark)
}

func TestAgentsTextIsRecognised(t *testing.T) {
	const remark = "**Update:** I've fixed the parser.\r\n\r\n- it's covered by `TestParse`\r\n- “quotes” too"
	for name, transcript := range map[string]string{
		"double quotes": ran(t, `/bin/bash -lc "gh pr comment 7 --body \"**Update:** I've fixed the parser.\n\n- it's covered by \\`+"`TestParse\\`"+`\n- “quotes” too\""`, ""),
		"single quotes": ran(t, `bash -lc 'gh pr comment 7 -b '"'"'**Update:** I'"'"'\'"'"''"'"'ve fixed the parser.

- it'"'"'\'"'"''"'"'s covered by `+"`TestParse`"+`
- “quotes” too'"'"''`, ""),
		"here-document": ran(t, "bash -lc \"gh pr comment 7 -F - <<'EOF'\n**Update:** I've fixed the parser.\n\n- it's covered by `TestParse`\n- “quotes” too\nEOF\"", ""),
		"json in curl":  ran(t, `curl -X POST https://api.github.com/repos/o/r/issues/7/comments -d '{"body":"**Update:** I\u2019ve fixed the parser.\n\n- it\u0027s covered by `+"`TestParse`"+`\n- \u201cquotes\u201d too"}'`, ""),
		"tool call":     item(t, map[string]any{"id": "1", "type": "mcp_tool_call", "server": "github", "tool": "add_issue_comment", "arguments": map[string]any{"body": remark}}),
		"message":       item(t, map[string]any{"id": "1", "type": "agent_message", "text": "I posted:\n" + remark}),
	} {
		if !wrote(t, transcript, remark) {
			t.Errorf("%s: not recognised", name)
		}
	}
}

func TestTextTheAgentOnlyReadIsNotRecognised(t *testing.T) {
	const remark = "Please add a test for empty input before merging this."
	for name, transcript := range map[string]string{
		"read with gh":     ran(t, "gh pr view 7 --comments", remark),
		"read over MCP":    item(t, map[string]any{"id": "1", "type": "mcp_tool_call", "server": "github", "tool": "get_comments", "arguments": map[string]any{}, "result": map[string]any{"content": remark}}),
		"thought about":    item(t, map[string]any{"id": "1", "type": "reasoning", "text": remark}),
		"part of the text": ran(t, `gh pr comment 7 -b "Please add a test"`, ""),
		"other words":      ran(t, `gh pr comment 7 -b "Please add a test for empty inputs before merging this."`, ""),
	} {
		if wrote(t, transcript, remark) {
			t.Errorf("%s: recognised", name)
		}
	}
}

func TestShortRemarkIsRecognisedOnlyInAPostingCommand(t *testing.T) {
	for _, c := range []struct {
		transcript string
		want       bool
	}{
		{ran(t, `gh pr comment 7 --body done`, ""), true},
		{ran(t, `make test && echo done`, ""), false},
		{item(t, map[string]any{"id": "1", "type": "agent_message", "text": "done with the comments"}), false},
	} {
		if got := wrote(t, c.transcript, "Done!"); got != c.want {
			t.Errorf("%s: %v", c.transcript, got)
		}
	}
	if wrote(t, ran(t, "gh pr comment 7 -b 👍", ""), "👍") {
		t.Error("a remark without a word was recognised")
	}
}

func TestRemarkPostedFromPatchedFileIsRecognised(t *testing.T) {
	const thread, remark = "01a1fd24-701f-7592-bb9e-941e16d06283", "The parser now accepts empty input."
	line := `{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch\n*** Add File: /tmp/c.md\n+The parser now\n+accepts empty input.\n"}}` + "\n" +
		`{"type":"response_item","payload":{"type":"function_call_output","output":"A person wrote this long remark here."}}` + "\n"
	home, _ := sessionFile(t, thread, line)
	var w feedback.Authored
	if err := stream(config.Codex).SessionEvents(home, thread, func(e agent.Event) { w.Add(e.Authored, e.Ran) }); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{remark: true, "A person wrote this long remark here.": false} {
		if got := w.Wrote(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if err := stream(config.Codex).SessionEvents(t.TempDir(), thread, func(agent.Event) {}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a session file: %v", err)
	}
}
