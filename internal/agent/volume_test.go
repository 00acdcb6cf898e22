package agent_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/needs"
)

// endless repeats a text up to a size and measures the memory in use at intervals.
type endless struct {
	text  []byte
	left  int64
	at    int
	reads int
	peak  uint64 // the most memory in use, in bytes
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	if e.reads++; e.reads%64 == 0 {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		e.peak = max(e.peak, now.HeapInuse)
	}
	n := copy(p[:min(int64(len(p)), e.left)], e.text[e.at:])
	e.at, e.left = (e.at+n)%len(e.text), e.left-int64(n)
	return n, nil
}

func codexOutput(outputBytes int) []byte {
	return []byte(`{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"/bin/bash -lc 'seq 1 4000'","aggregated_output":"` +
		strings.Repeat(`line 7: the quick brown \"fox\" jumps\n`, outputBytes/38) + `","exit_code":0,"status":"completed"}}` + "\n")
}

// The output is read in lines of several sizes and as one endless line.
func TestGigabyteOfOutputUsesLittleMemory(t *testing.T) {
	needs.All(t, "it reads 4 GB")
	plain, err := clis.For("command", config.Plain)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text    []byte
		adapter agent.Adapter
	}{
		"codex lines of 3 MB":   {codexOutput(3 << 20), stream(config.Codex)},
		"codex lines of 300 kB": {codexOutput(300 << 10), stream(config.Codex)},
		"one endless line":      {[]byte("x"), stream(config.Codex)},
		"plain":                 {[]byte("a line of a plain agent\n"), plain},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.text
			for len(text) < 64<<10 {
				text = append(text, text...)
			}
			var before runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			output := &endless{text: text, left: 1 << 30}
			got, err := agent.Inspect(output, c.adapter, agent.InspectOptions{})
			if err != nil || got.OutputBytes != 1<<30 {
				t.Errorf("%d bytes, error %v", got.OutputBytes, err)
			}
			if used := int64(output.peak) - int64(before.HeapInuse); used > 32<<20 {
				t.Errorf("%d MB more were in use", used>>20)
			} else {
				t.Logf("%d MB more were in use", used>>20)
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	for name, size := range map[string]int{"lines of 300 B": 76, "lines of 4 kB": 4 << 10, "lines of 300 kB": 300 << 10} {
		b.Run(name, func(b *testing.B) {
			text := codexOutput(size)
			for len(text) < 1<<20 {
				text = append(text, text...)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := agent.Inspect(bytes.NewReader(text), stream(config.Codex), agent.InspectOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
