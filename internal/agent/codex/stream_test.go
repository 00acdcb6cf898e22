package codex

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/agent"
)

func TestTruncatedLineIsReadToTheCut(t *testing.T) {
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
