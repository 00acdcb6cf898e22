package agent

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTheQuickWayToAnItemsFieldsIsThePlainOne(t *testing.T) {
	pieces := []string{`"aggregated_output":"`, `","exit_code":`, `,"exit_code":1`, `"`, `\`, `\"`, "\n", "{", "}", "x", `"type":"command_execution"`, strings.Repeat("y", 600)}
	text := rapid.Custom(func(t *rapid.T) string {
		var b bytes.Buffer
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces") {
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
		line := raw.Bytes()[:rapid.IntRange(0, raw.Len()).Draw(t, "cut")]
		var plain codexItemFields
		members(line, plain.set)
		got := codexFields(line)
		if d := cmp.Diff(plain, got, cmp.AllowUnexported(codexItemFields{})); d != "" {
			t.Fatalf("%s\n%s", line, d)
		}
	})
}
