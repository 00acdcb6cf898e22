//go:build eval

package attempt

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

// shared is the folder of the recorded runs and the corpora, next to the repository.
const shared = "../../../shared"

func needShared(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(shared); err != nil {
		t.Skipf("the evaluation data is missing: %v", err)
	}
}

// opened reads a file that may be compressed.
func opened(t *testing.T, name string) io.Reader {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if !strings.HasSuffix(name, ".gz") {
		return f
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// recordedCall is one call of toolstream.jsonl.gz. sig represents its arguments, out its answer.
type recordedCall struct {
	Tool, File, Sig, Out string
	Err                  bool
}

// TestEvalHealthyStreams replays the 138 healthy tool streams as Claude Code prints them and counts false alarms.
func TestEvalHealthyStreams(t *testing.T) {
	needShared(t)
	lines := bufio.NewScanner(opened(t, shared+"/corpora/healthy/toolstream.jsonl.gz"))
	lines.Buffer(nil, 16<<20)
	sessions, byCounts, flagged, edits := 0, 0, 0, 0
	most := map[string]float64{}
	for lines.Scan() {
		var session struct {
			Session string
			Events  []recordedCall
		}
		if err := json.Unmarshal(lines.Bytes(), &session); err != nil {
			t.Fatal(err)
		}
		s := &story{}
		for _, c := range session.Events {
			switch c.Tool {
			case "__user__":
			case "Edit", "MultiEdit":
				s.call("Edit", map[string]any{"file_path": c.File, "old_string": "before " + c.Sig, "new_string": "after " + c.Sig}, c.Err, c.Out)
			case "Write":
				s.call("Write", map[string]any{"file_path": c.File, "content": "content " + c.Sig}, c.Err, c.Out)
			default:
				s.call(c.Tool, map[string]any{"command": c.Sig, "file_path": c.File}, c.Err, c.Out)
			}
		}
		v, e := watched(t, s.b.String())
		sessions++
		edits += e.Operations
		if blind := (policy.Edits{Operations: e.Operations, MaxRepeat: e.MaxRepeat}); policy.Defaults().Severity.Judge(blind).Class != policy.None {
			byCounts++
		}
		if v.Class != policy.None {
			flagged++
			t.Errorf("%s: %s %q: %+v", session.Session, v.Class, v.Reasons, e)
		}
		for name, n := range map[string]float64{"edits": float64(e.Operations), "edits of one file": float64(e.MaxRepeat), "edits made again": float64(e.Again + e.Returned),
			"same failures": float64(e.SameFailures), "edits that came to nothing": float64(e.Churned),
			"same calls": float64(e.SameCalls), "same results after an edit": float64(e.SameChecks), "failures of one call": float64(e.Failures)} {
			most[name] = max(most[name], n)
		}
		if e.Operations >= 8 {
			most["share of edits made again, of 8 and more"] = max(most["share of edits made again, of 8 and more"], float64(e.Again+e.Returned)/float64(e.Operations))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nhealthy tool streams: %d sessions, %d edits; loops by the counts alone %d, by circles %d\n", sessions, edits, byCounts, flagged)
	for _, name := range slices.Sorted(maps.Keys(most)) {
		fmt.Printf("  at most %.3g %s\n", most[name], name)
	}
}

// TestEvalHealthyTranscripts reads the healthy transcripts without the prefixes of the wrapper's log.
func TestEvalHealthyTranscripts(t *testing.T) {
	needShared(t)
	files, err := filepath.Glob(shared + "/corpora/healthy/[^t]*")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(shared + "/corpora/attempts/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, more...) {
		b, err := io.ReadAll(opened(t, file))
		if err != nil {
			t.Fatal(err)
		}
		objects := unwrapped(b)
		cli := clis.Detect([]byte(objects))
		a, err := clis.ForStream(cli)
		if err != nil {
			t.Fatal(err)
		}
		c := policy.NewCircles()
		if _, err := agent.Inspect(strings.NewReader(objects), a, agent.InspectOptions{OnCall: func(d agent.Call) { d.Count(c) }}); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(objects, `{"timestamp"`) {
			cli, c = "rollout", ofRollout(t, objects)
		}
		e := c.Edits()
		v := policy.Defaults().Severity.Judge(e)
		fmt.Printf("%-44s %-8s %-8s %d edits, at most %d on one file, %d seen, %d again, %d returned, %d came to nothing, %d same calls, %d same checks, %d failures of one call\n",
			filepath.Base(file), cli, v.Class, e.Operations, e.MaxRepeat, e.Seen, e.Again, e.Returned, e.Churned, e.SameCalls, e.SameChecks, e.Failures)
		if v.Class != policy.None {
			t.Errorf("%s: %s %q", file, v.Class, v.Reasons)
		}
	}
}

// ofRollout reads a Codex session file.
func ofRollout(t *testing.T, text string) *policy.Circles {
	t.Helper()
	home, id := t.TempDir(), "0199-aaaa-bbbb"
	dir := filepath.Join(home, ".codex/sessions/2025/09/24")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rollout-x-"+id+".jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := clis.For("codex", "")
	if err != nil {
		t.Fatal(err)
	}
	c := policy.NewCircles()
	if err := a.SessionCalls(home, id, "", func(d agent.Call) { d.Count(c) }); err != nil {
		t.Fatal(err)
	}
	return c
}

// unwrapped returns a log's JSON objects, one per line.
func unwrapped(b []byte) string {
	var text, out strings.Builder
	for line := range strings.Lines(string(b)) {
		if _, rest, ok := strings.Cut(line, "] [INFO] "); ok && strings.HasPrefix(line, "[20") {
			line = rest
		}
		text.WriteString(line)
	}
	rest := text.String()
	for len(rest) > 0 {
		if rest[0] != '{' {
			_, next, _ := strings.Cut(rest, "\n")
			rest = next
			continue
		}
		d := json.NewDecoder(strings.NewReader(rest))
		var o json.RawMessage
		if d.Decode(&o) != nil {
			_, rest, _ = strings.Cut(rest, "\n")
			continue
		}
		var flat strings.Builder
		enc := json.NewEncoder(&flat)
		if enc.Encode(o) == nil {
			out.WriteString(flat.String())
		}
		rest = rest[d.InputOffset():]
	}
	return out.String()
}

// TestEvalRecordedLoops checks which recorded runs of real CLIs count as loops.
func TestEvalRecordedLoops(t *testing.T) {
	needShared(t)
	// These recorded loops have 9 to 26 edits, fewer than Pawl requires for a loop.
	circles := []string{"claude/edit-loop", "claude/max-budget", "gemini/edit-loop", "opencode/edit-loop",
		"claude/flipflop-loop", "opencode/flipflop-loop", "opencode/identical-loop-defaultperm", "gemini/loop-detection-off", "gemini/flipflop-loop"}
	runs, err := filepath.Glob(shared + "/agents/*/*/stdout*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	matrix := map[string]int{}
	for _, run := range runs {
		name := filepath.Base(filepath.Dir(filepath.Dir(run))) + "/" + filepath.Base(filepath.Dir(run))
		a, err := clis.ForStream(strings.SplitN(name, "/", 2)[0])
		if err != nil {
			t.Fatal(err)
		}
		c := policy.NewCircles()
		if _, err := agent.Inspect(opened(t, run), a, agent.InspectOptions{OnCall: func(d agent.Call) { d.Count(c) }}); err != nil {
			t.Fatal(err)
		}
		v := policy.Defaults().Severity.Judge(c.Edits())
		got, expected := strings.Contains(v.Reasons[0], "in circles"), slices.Contains(circles, name)
		matrix[fmt.Sprintf("in circles: expected %v, got %v", expected, got)]++
		if v.Class != policy.None || got != expected {
			t.Errorf("%s: %s %q, want in circles: %v: %+v", name, v.Class, v.Reasons, expected, c.Edits())
		}
	}
	fmt.Printf("\nrecorded runs: %v\n", matrix)
}
