package codex

import (
	"strings"
	"testing"

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
		parseLine(line, func(e agent.Event) {
			if e.Kind == 0 || strings.ToValidUTF8(e.Text, "") != e.Text {
				t.Errorf("%q gave %+v", line, e)
			}
		})
	})
}
