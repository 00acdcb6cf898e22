package agent_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/policy"
)

// lineMaker returns the lines make(0), make(1), … until they total size bytes. It records the largest live heap.
type lineMaker struct {
	make       func(i int) string
	size, read int
	i          int
	rest       string
	peak       uint64
}

// heapEvery is the number of bytes between two measurements of the heap.
const heapEvery = 6 << 20

func (l *lineMaker) Read(p []byte) (int, error) {
	if l.rest == "" {
		if l.read >= l.size {
			l.look()
			return 0, io.EOF
		}
		l.rest = l.make(l.i) + "\n"
		l.i++
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	if l.read/heapEvery != (l.read+n)/heapEvery {
		l.look()
	}
	l.read += n
	return n, nil
}

func (l *lineMaker) look() { l.peak = max(l.peak, liveHeap()) }

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func claudeCall(id, tool, input string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}}`, id, tool, input)
}

func codexChange(state, id, changes string) string {
	return fmt.Sprintf(`{"type":"item.%s","item":{"id":%q,"type":"file_change","changes":[%s]}}`, state, id, changes)
}

func manyPaths(i, n int) string {
	var b strings.Builder
	for k := range n {
		if k > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"path":"/w/%d/%d.go"}`, i, k)
	}
	return b.String()
}

// Each stream makes a reader store something for every line.
func TestHostileStreamsUseLittleMemory(t *testing.T) {
	needs.All(t, "it reads 40 MB of each hostile stream")
	claude, err := clis.ForStream(config.Claude)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for k := range 60_000 {
		fmt.Fprintf(&lines, `%05d\n`, k)
	}
	// One call with many edits of a few hundred lines each.
	several := `{"file_path":"/w/a.go","edits":[` + strings.TrimSuffix(strings.Repeat(`{"old_string":"`+lines.String()[:1400]+`","new_string":"x"},`, 250), ",") + `]}`
	long := strings.Repeat("p", 900<<10)
	for name, c := range map[string]struct {
		adapter agent.Adapter
		line    func(i int) string
	}{
		"file changes that never end": {stream(config.Codex), func(i int) string {
			return codexChange("started", fmt.Sprint(i), manyPaths(i, 1000))
		}},
		"several edits that are never answered": {claude, func(i int) string {
			return claudeCall(fmt.Sprint(i), "MultiEdit", several)
		}},
		"whole files that are never answered": {claude, func(i int) string {
			return claudeCall(fmt.Sprint(i), "Write", fmt.Sprintf(`{"file_path":"/w/%d","content":"%s"}`, i, lines.String()[:14_000]))
		}},
		"small calls that never end": {stream(config.Codex), func(i int) string {
			return codexChange("started", fmt.Sprint(i), `{"path":"a"}`)
		}},
		"calls that end under many ids": {stream(config.Codex), func(i int) string {
			return codexChange("completed", fmt.Sprintf("%0200d", i), fmt.Sprintf(`{"path":"%d"}`, i))
		}},
		"long ids": {stream(config.Codex), func(i int) string {
			return codexChange("started", fmt.Sprint(i, long), `{"path":"a"}`)
		}},
		"long paths": {stream(config.Codex), func(i int) string {
			return codexChange("completed", fmt.Sprint(i), fmt.Sprintf(`{"path":"%d%s"}`, i, long))
		}},
		"long arguments": {claude, func(i int) string {
			return claudeCall(fmt.Sprint(i), "Bash", fmt.Sprintf(`{"command":"%d %s"}`, i, long))
		}},
		"mentions": {stream(config.Codex), func(i int) string {
			return fmt.Sprintf(`{"type":"item.completed","item":{"id":"%0200d","type":"reasoning","text":"usage limit reached"}}`, i)
		}},
		"sessions": {stream(config.Codex), func(i int) string { return fmt.Sprintf(`{"type":"thread.started","thread_id":"%0200d"}`, i) }},
		"errors":   {stream(config.Codex), func(i int) string { return fmt.Sprintf(`{"type":"error","message":"%d%s"}`, i, long) }},
		"deltas":   {stream(config.Gemini), func(i int) string { return `{"type":"message","role":"assistant","content":"abcdefgh","delta":true}` }},
	} {
		t.Run(name, func(t *testing.T) {
			in := &lineMaker{make: c.line, size: 40 << 20}
			before := liveHeap()
			if _, err := agent.Inspect(in, c.adapter, agent.InspectOptions{Dir: "/w"}); err != nil {
				t.Fatal(err)
			}
			used := max(in.peak, before) - before
			t.Logf("%.1f MB after %d lines", float64(used)/(1<<20), in.i)
			if used > 24<<20 {
				t.Errorf("%d MB are in use", used>>20)
			}
		})
	}
}

// 3,000 file changes of 100 paths each run concurrently. Each of them ends twice.
func TestCallsBeyondTheBudgetAreCountedOnce(t *testing.T) {
	const calls, paths = 3000, 100
	var text strings.Builder
	for _, state := range []string{"started", "completed", "completed"} {
		for i := range calls {
			text.WriteString(codexChange(state, fmt.Sprint(i), manyPaths(i%150, paths)) + "\n")
		}
	}
	ended := 0
	got, err := agent.Inspect(strings.NewReader(text.String()), stream(config.Codex), agent.InspectOptions{Dir: "/w", OnCall: func(d agent.Call) {
		ended++
		if len(d.Edits) != paths {
			t.Fatalf("a call has %d edits", len(d.Edits))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Edits{Operations: calls * paths, Files: 150 * paths, MaxRepeat: calls / 150, MaxRepeatPath: got.Edits.MaxRepeatPath}
	if counts(got.Edits) != want || got.ToolCalls != calls || ended != calls {
		t.Errorf("%+v, %d calls, %d ended", got.Edits, got.ToolCalls, ended)
	}
}

func TestPathsBeyondTheLimitCountOnlyAsOperations(t *testing.T) {
	var text strings.Builder
	for i := range 25 {
		text.WriteString(codexChange("completed", fmt.Sprint(i), manyPaths(i, 1000)) + "\n")
	}
	got, err := agent.Inspect(strings.NewReader(text.String()), stream(config.Codex), agent.InspectOptions{})
	if err != nil || got.Edits.Operations != 25_000 || got.Edits.Files != 20_000 {
		t.Errorf("%+v, error %v", got.Edits, err)
	}
}

func TestLineOfZerosUsesLittleMemory(t *testing.T) {
	line := []byte(codexChange("completed", "1", strings.Repeat("0,", 400<<10)+"0"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stream(config.Codex).Parse(line, func(agent.Event) {})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 48<<20 {
		t.Errorf("%d MB for a line of %d kB", used>>20, len(line)>>10)
	}
}
