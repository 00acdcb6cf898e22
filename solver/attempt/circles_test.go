package attempt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

// story writes a stream of Claude Code, call by call.
type story struct {
	b     strings.Builder
	calls int
}

func (s *story) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	s.b.Write(append(b, '\n'))
}

func (s *story) call(tool string, input map[string]any, failed bool, answer string) {
	s.calls++
	id := fmt.Sprintf("toolu_%d", s.calls)
	s.line(map[string]any{"type": "assistant", "message": map[string]any{"content": []any{
		map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}}}})
	s.line(map[string]any{"type": "user", "message": map[string]any{"content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": id, "is_error": failed, "content": answer}}}})
}

func (s *story) write(path, content string) {
	s.call("Write", map[string]any{"file_path": path, "content": content}, false, "ok")
}

func (s *story) edit(path, before, after string) {
	s.call("Edit", map[string]any{"file_path": path, "old_string": before, "new_string": after}, false, "ok")
}

// watched is what a detector says of a stream.
func watched(t *testing.T, stream string) (policy.Severity, policy.Edits) {
	t.Helper()
	a, err := clis.ForStream(agent.StreamClaude)
	if err != nil {
		t.Fatal(err)
	}
	c := policy.NewCircles()
	if _, err := agent.Inspect(strings.NewReader(stream), a, agent.InspectOptions{OnCall: func(d agent.Call) { d.Count(c) }}); err != nil {
		t.Fatal(err)
	}
	return policy.Defaults().Severity.Judge(c.Edits()), c.Edits()
}

// variantOf is a file of several lines that differs by its variant.
func variantOf(file string, variant int) string {
	return fmt.Sprintf("package %s\n\nfunc run() error {\n\treturn step(%q)\n}\n", strings.TrimSuffix(file, ".go"), fmt.Sprintf("variant %d", variant))
}

// loops are ways to edit hot files again and again: the i-th edit of one.
var loops = map[string]func(s *story, file string, i int){
	"the same edit": func(s *story, f string, i int) { s.edit(f, "a := 1", "a := 2") },
	"the same file": func(s *story, f string, i int) { s.write(f, variantOf(f, 1)) },
	"A to B to A": func(s *story, f string, i int) {
		s.edit(f, fmt.Sprintf("value: %c", 'A'+i%2), fmt.Sprintf("value: %c", 'A'+(i+1)%2))
	},
	"two variants":   func(s *story, f string, i int) { s.write(f, variantOf(f, i%2)) },
	"three variants": func(s *story, f string, i int) { s.write(f, variantOf(f, i%3)) },
	"four variants":  func(s *story, f string, i int) { s.write(f, variantOf(f, i%4)) },
	"five variants":  func(s *story, f string, i int) { s.write(f, variantOf(f, i%5)) },
	"five edits in turn": func(s *story, f string, i int) {
		s.edit(f, fmt.Sprintf("level = %d00", i%5), fmt.Sprintf("level = %d00", (i+1)%5))
	},
	"time stamps in it": func(s *story, f string, i int) {
		at := time.Date(2026, 11, 21, 8, i/60, i%60, i*1000, time.UTC)
		s.write(f, fmt.Sprintf("// written %s, %s, %d\n%s", at.Format(time.RFC3339Nano), at.Format(time.DateTime), at.UnixMilli(), variantOf(f, i%2)))
	},
	"white space in it": func(s *story, f string, i int) {
		s.write(f, strings.ReplaceAll(variantOf(f, i%2), "\n", strings.Repeat(" ", i%4)+"\n"+strings.Repeat("\n", i%3))+strings.Repeat("\n", i%7))
	},
	"a line that is new each time": func(s *story, f string, i int) {
		s.write(f, fmt.Sprintf("// try number %d\n%s", i, variantOf(f, i%2)))
	},
	"added and taken out": func(s *story, f string, i int) {
		debug := fmt.Sprintf("\tlog.Println(%q)\n\tdump(state)\n", fmt.Sprint("try ", i/2))
		if i%2 == 0 {
			s.edit(f, "\tdone()\n", "\tdone()\n"+debug)
		} else {
			s.edit(f, "\tdone()\n"+debug, "\tdone()\n")
		}
	},
	"the same failing command after it": func(s *story, f string, i int) {
		s.edit(f, fmt.Sprintf("limit = %d", i%2), fmt.Sprintf("limit = %d", (i+1)%2))
		s.call("Bash", map[string]any{"command": "go test ./..."}, true, fmt.Sprintf("--- FAIL: TestLimit (0.%02ds)\nFAIL", i))
	},
}

// noises are what comes between the edits of a loop.
var noises = map[string]func(s *story, i int){
	"nothing": func(*story, int) {},
	"reads and searches": func(s *story, i int) {
		s.call("Read", map[string]any{"file_path": fmt.Sprintf("lib%d.go", i%4)}, false, "package lib")
		s.call("Grep", map[string]any{"pattern": fmt.Sprint("x", i)}, false, "")
		s.call("Bash", map[string]any{"command": "go vet ./..."}, false, "")
	},
}

// looping is a stream with one hot file, edited repeat times, and edits of other
// files in between, one each.
func looping(loop func(*story, string, int), noise func(*story, int), operations, repeat int) string {
	s := &story{}
	for i, other := 0, 0; i < repeat; i++ {
		loop(s, "/repo/hot.go", i)
		noise(s, i)
		for ; other < (operations-repeat)*(i+1)/repeat; other++ {
			f := fmt.Sprintf("/repo/other%d.go", other)
			s.edit(f, "import old", fmt.Sprintf("import new // %d", other))
		}
	}
	return s.b.String()
}

var boundaries = []struct {
	operations, repeat int
	want               policy.Class
}{
	{40, 8, policy.Mild}, {41, 8, policy.Mild}, {59, 14, policy.Mild}, {60, 8, policy.Moderate}, {40, 15, policy.Moderate}, {65, 16, policy.Moderate},
	{99, 24, policy.Moderate}, {26, 26, policy.Severe}, {59, 26, policy.Severe}, {100, 8, policy.Severe}, {105, 10, policy.Severe}, {40, 25, policy.Severe},
}

func TestGeneratedLoopsHaveTheClassOfTheirCounts(t *testing.T) {
	for name, loop := range loops {
		for between, noise := range noises {
			for _, b := range boundaries {
				got, e := watched(t, looping(loop, noise, b.operations, b.repeat))
				if got.Class != b.want || e.Operations != b.operations || e.MaxRepeat != b.repeat {
					t.Errorf("%s, %s between, %d edits, %d on one file: %s, want %s: %+v %q", name, between, b.operations, b.repeat, got.Class, b.want, e, got.Reasons)
				}
			}
		}
	}
}

func TestFilesInTurnThatComeBackAreALoop(t *testing.T) {
	for _, tc := range []struct {
		files, rounds, states int
		want                  policy.Class
	}{
		{3, 9, 2, policy.Mild}, {3, 16, 2, policy.Moderate}, {3, 21, 3, policy.Moderate}, {3, 25, 2, policy.Severe}, {3, 34, 4, policy.Severe}, {20, 6, 1, policy.Severe},
	} {
		s := &story{}
		for i := range tc.rounds {
			for f := range tc.files {
				name := fmt.Sprintf("file%d.go", f)
				s.write(name, variantOf(name, i%tc.states))
			}
		}
		if got, e := watched(t, s.b.String()); got.Class != tc.want {
			t.Errorf("%+v: %s: %+v", tc, got.Class, e)
		}
	}
}

func TestGeneratedSteadyWorkIsNoLoop(t *testing.T) {
	body := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "func part%d() int { return %d }\n\n", i, i*i)
		}
		return b.String()
	}
	for name, step := range map[string]func(s *story, i int){
		"a counter":        func(s *story, i int) { s.edit("n.txt", fmt.Sprint("counter: ", i), fmt.Sprint("counter: ", i+1)) },
		"a written number": func(s *story, i int) { s.write("n.txt", fmt.Sprintf("counter: %d\n", i)) },
		"a growing file":   func(s *story, i int) { s.write("parts.go", body(i+1)) },
		"functions added one by one": func(s *story, i int) {
			s.edit("parts.go", "// more\n", fmt.Sprintf("func part%d() {\n\treturn\n}\n\n// more\n", i))
		},
		"one function rewritten": func(s *story, i int) {
			s.edit("f.go", fmt.Sprintf("\tx := old%d()\n\tif x > 0 {\n\t\treturn x\n\t}\n", i), fmt.Sprintf("\tx := old%d()\n\tif x > 0 {\n\t\treturn x\n\t}\n", i+1))
		},
		"with tests in between": func(s *story, i int) {
			s.edit("f.go", fmt.Sprintf("step %d of the work", i), fmt.Sprintf("step %d of the work", i+1))
			s.call("Bash", map[string]any{"command": "go test ./..."}, i%3 == 0, fmt.Sprintf("%d tests failed", 200-i))
			s.call("Bash", map[string]any{"command": "go build ./..."}, false, "")
		},
		"a shrinking file": func(s *story, i int) { s.write("parts.go", body(220-i)) },
		"lines moved downwards": func(s *story, i int) {
			s.edit("m.go", fmt.Sprintf("move%d()\nrest%d()\n", i, i), fmt.Sprintf("rest%d()\nmove%d()\n", i, i))
		},
		"re-indented, each once": func(s *story, i int) {
			s.edit("i.py", fmt.Sprintf("  call(%d)\n", i), fmt.Sprintf("    call(%d)\n", i))
		},
		"one correction in ten taken back": func(s *story, i int) {
			if i%10 == 9 {
				s.edit("f.go", fmt.Sprintf("value(%d)", i), fmt.Sprintf("value(%d)", i-1))
				return
			}
			s.edit("f.go", fmt.Sprintf("value(%d)", i-1), fmt.Sprintf("value(%d)", i))
		},
	} {
		s := &story{}
		for i := range 200 {
			step(s, i)
		}
		if got, e := watched(t, s.b.String()); got.Class != policy.None || e.Operations != 200 {
			t.Errorf("%s: %s %q: %+v", name, got.Class, got.Reasons, e)
		}
	}
}

func TestACallCountsOnceHoweverOftenItIsPrinted(t *testing.T) {
	s := &story{}
	for i := range 60 {
		s.edit("a.go", fmt.Sprint("old ", i), fmt.Sprint("new ", i))
	}
	lines := strings.SplitAfter(s.b.String(), "\n")
	var twice strings.Builder
	for _, l := range lines {
		twice.WriteString(l + l + l)
	}
	if got, e := watched(t, twice.String()); got.Class != policy.None || e.Operations != 60 || e.Again != 0 {
		t.Errorf("%s: %+v", got.Class, e)
	}
}
