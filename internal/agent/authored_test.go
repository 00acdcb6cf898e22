package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
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

func TestWhatTheAgentWroteIsRecognised(t *testing.T) {
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
		if got, err := stream(agent.StreamCodex).Authored(strings.NewReader(transcript), remark); err != nil || !got {
			t.Errorf("%s: not recognised, error %v", name, err)
		}
	}
}

func TestWhatTheAgentOnlyReadStaysAPersonsFeedback(t *testing.T) {
	const remark = "Please add a test for empty input before merging this."
	for name, transcript := range map[string]string{
		"read with gh":     ran(t, "gh pr view 7 --comments", remark),
		"read over MCP":    item(t, map[string]any{"id": "1", "type": "mcp_tool_call", "server": "github", "tool": "get_comments", "arguments": map[string]any{}, "result": map[string]any{"content": remark}}),
		"thought about":    item(t, map[string]any{"id": "1", "type": "reasoning", "text": remark}),
		"part of the text": ran(t, `gh pr comment 7 -b "Please add a test"`, ""),
		"other words":      ran(t, `gh pr comment 7 -b "Please add a test for empty inputs before merging this."`, ""),
	} {
		if got, err := stream(agent.StreamCodex).Authored(strings.NewReader(transcript), remark); err != nil || got {
			t.Errorf("%s: recognised, error %v", name, err)
		}
	}
}

func TestAShortRemarkMustStandInACommandThatPosts(t *testing.T) {
	for _, c := range []struct {
		transcript string
		want       bool
	}{
		{ran(t, `gh pr comment 7 --body done`, ""), true},
		{ran(t, `make test && echo done`, ""), false},
		{item(t, map[string]any{"id": "1", "type": "agent_message", "text": "done with the comments"}), false},
	} {
		if got, err := stream(agent.StreamCodex).Authored(strings.NewReader(c.transcript), "Done!"); err != nil || got != c.want {
			t.Errorf("%s: %v, error %v", c.transcript, got, err)
		}
	}
	if got, _ := stream(agent.StreamCodex).Authored(strings.NewReader(ran(t, "gh pr comment 7 -b 👍", "")), "👍"); got {
		t.Error("a remark without a word was recognised")
	}
}

func TestEveryLineOfAPlainAgentIsItsOwn(t *testing.T) {
	plain, err := clis.For("command", "")
	if err != nil {
		t.Fatal(err)
	}
	transcript := "starting\nposting: I fixed the parser.\n\n\nIt has tests now.\nbye\n"
	for remark, want := range map[string]bool{
		"I fixed the parser.\n\nIt has tests now.": true,
		"I fixed the parser. It has no tests now.": false,
		"fixed": false,
	} {
		if got, err := plain.Authored(iotest.OneByteReader(strings.NewReader(transcript)), remark); err != nil || got != want {
			t.Errorf("%q: %v, error %v", remark, got, err)
		}
	}
}

func TestARemarkPostedFromAPatchedFileIsInTheSessionFile(t *testing.T) {
	const thread, remark = "01a1fd24-701f-7592-bb9e-941e16d06283", "The parser now accepts empty input."
	home := t.TempDir()
	dir := filepath.Join(home, ".codex/sessions/2026/11/21")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	line := `{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch\n*** Add File: /tmp/c.md\n+The parser now\n+accepts empty input.\n"}}` + "\n" +
		`{"type":"response_item","payload":{"type":"function_call_output","output":"A person wrote this long remark here."}}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "rollout-2026-11-21T08-06-25-"+thread+".jsonl"), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{remark: true, "A person wrote this long remark here.": false} {
		if got, err := stream(agent.StreamCodex).AuthoredInSession(home, thread, text); err != nil || got != want {
			t.Errorf("%q: %v, error %v", text, got, err)
		}
	}
	if got, err := stream(agent.StreamCodex).AuthoredInSession(t.TempDir(), thread, remark); err != nil || got {
		t.Errorf("without a session file: %v, error %v", got, err)
	}
}

func TestAuthoredFindsWhatStandsThereAndNothingElse(t *testing.T) {
	word := rapid.StringMatching(`[ab]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(word, 0, 30).Draw(t, "text")
		remark := strings.Join(rapid.SliceOfN(word, 6, 8).Draw(t, "remark"), "  ")
		line := `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"` + strings.Join(text, `\n`) + `"}}`
		got, err := stream(agent.StreamCodex).Authored(strings.NewReader(line), remark)
		want := strings.Contains(" "+strings.Join(text, " ")+" ", " "+strings.Join(strings.Fields(remark), " ")+" ")
		if err != nil || got != want {
			t.Fatalf("%v, want %v, error %v", got, want, err)
		}
	})
}
