package codex

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/internal/agent"
)

func TestACutLineIsReadAsFarAsItGoes(t *testing.T) {
	line := strings.Repeat(`\n…\"`, 10)
	whole := `{"type":"item.completed","item":{"id":"item_9","type":"command_execution","command":"ls","aggregated_output":"` + line
	for cut := len(whole) - len(line); cut < len(whole); cut++ {
		var events []agent.Event
		parseLine([]byte(whole[:cut]), func(e agent.Event) { events = append(events, e) })
		if len(events) != 1 || events[0].ID != "item_9" || events[0].Authored != "ls" || !events[0].Done {
			t.Fatalf("cut at %d: %+v", cut, events)
		}
	}
}

func FuzzCodexLine(f *testing.F) {
	f.Add([]byte(`{"type":"item.completed","item":{"id":"1","type":"file_change","changes":[{"path":"/a","kind":"add"}]}}`))
	f.Add([]byte(`{"type":"turn.failed","error":{"message":"You’ve hit your usage limit."}}`))
	f.Add([]byte(`{"type":"error","message":"\ud83d\u12"`))
	f.Add([]byte(`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"text":"x"}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		check := func(e agent.Event) {
			if e.Kind == 0 || strings.ToValidUTF8(e.Text, "") != e.Text {
				t.Errorf("%q gave %+v", line, e)
			}
		}
		parseLine(line, check)
		parseSessionLine(line, check)
	})
}

func TestAnEmptyOutputIsNotThatOfAnArgumentOfItsName(t *testing.T) {
	raw := `{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","arguments":{"aggregated_output":"` +
		strings.Repeat("y", smallOutput) + `"},"aggregated_output":""}}`
	line, output := readLine([]byte(raw))
	if line.Raw != raw || output != "" {
		t.Errorf("%d bytes of %d, and an output of %d", len(line.Raw), len(raw), len(output))
	}
}

// What is not short enough to stay in its line is taken out of it.
func TestTheQuickWayToALongOutputIsThePlainOne(t *testing.T) {
	pieces := []string{`"aggregated_output":"`, `","exit_code":`, `,"exit_code":1`, `"`, `\`, `\"`, "\n", "{", "}", "x", `"type":"command_execution"`, strings.Repeat("y", smallOutput/4)}
	text := rapid.Custom(func(t *rapid.T) string {
		var b bytes.Buffer
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 20).Draw(t, "pieces") {
			b.WriteString(p)
		}
		return b.String()
	})
	rapid.Check(t, func(t *rapid.T) {
		var raw bytes.Buffer
		enc := json.NewEncoder(&raw)
		enc.SetEscapeHTML(false)
		err := enc.Encode(struct {
			ID      string         `json:"id"`
			Type    string         `json:"type"`
			Command string         `json:"command"`
			Args    map[string]any `json:"arguments,omitempty"`
			Output  string         `json:"aggregated_output"`
			Exit    *int           `json:"exit_code"`
			Status  string         `json:"status"`
		}{"item_1", rapid.SampledFrom([]string{"command_execution", "mcp_tool_call", text.Draw(t, "type")}).Draw(t, "kind"), text.Draw(t, "command"),
			map[string]any{"aggregated_output": text.Draw(t, "argument"), "exit_code": 1}, text.Draw(t, "output"), new(int), text.Draw(t, "status")})
		if err != nil {
			t.Fatal(err)
		}
		line := []byte(`{"type":"item.completed","item":` + raw.String()[:rapid.IntRange(0, raw.Len()).Draw(t, "cut")])
		if rapid.Bool().Draw(t, "whole") {
			line = []byte(`{"type":"item.completed","item":` + strings.TrimSpace(raw.String()) + "}")
		}
		plain := readItem(agent.Line(line).Get("item"), "", true)
		quick, output := readLine(line)
		if d := cmp.Diff(plain, readItem(quick.Get("item"), output, true)); d != "" {
			t.Fatalf("%s\n%s", line, d)
		}
	})
}
