package doctor

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
)

func TestTooLowLimitsAreReported(t *testing.T) {
	c := config.Default()
	c.Workers, c.Sandbox.Memory, c.Sandbox.PIDs = 3, 4<<30, 100
	need := RoomFor(c)
	for _, row := range []struct {
		name    string
		allowed Room
		warns   string // what the warnings name, in order
	}{
		{"no limits", Room{}, ""},
		{"just enough", need, ""},
		{"a container for one worker", Room{Memory: 8 << 30, PIDs: 1124, Files: need.Files}, "memory is limited to 8.0 GiB; … 13 GiB, processes are limited to 1124; … 1324"},
		{"the files of a login shell", Room{Files: 1024}, "open files are limited to 1024; … 8192"},
	} {
		var got []string
		for _, f := range row.allowed.tooSmall(need) {
			limit, needed, _ := strings.Cut(f.Text, "; ")
			words := strings.Fields(needed)
			if last := words[len(words)-1]; strings.HasSuffix(last, "iB") {
				words = words[len(words)-2:]
			} else {
				words = words[len(words)-1:]
			}
			got = append(got, limit+"; … "+strings.Join(words, " "))
		}
		if text := strings.Join(got, ", "); text != row.warns {
			t.Errorf("%s: %q, want %q", row.name, text, row.warns)
		}
	}
	c.Sandbox.Memory, c.Sandbox.PIDs = 0, 0
	if all := (Room{Memory: 1, PIDs: 1}).tooSmall(RoomFor(c)); all != nil {
		t.Errorf("without limits of the sandbox the needs are unknown: %v", all)
	}
}
