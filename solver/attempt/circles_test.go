package attempt

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/agent/edit"
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

// watched returns a detector's verdict on a stream.
func watched(t *testing.T, stream string) (policy.Severity, policy.Edits) {
	t.Helper()
	a, err := clis.ForStream(config.Claude)
	if err != nil {
		t.Fatal(err)
	}
	c := policy.NewCircles()
	if _, err := agent.Inspect(strings.NewReader(stream), a, agent.InspectOptions{OnCall: func(d agent.Call) { d.Count(c) }}); err != nil {
		t.Fatal(err)
	}
	return policy.Defaults().Severity.Judge(c.Edits()), c.Edits()
}

// variantOf returns a file of several lines that differs by variant.
func variantOf(file string, variant int) string {
	return fmt.Sprintf("package %s\n\nfunc run() error {\n\treturn step(%q)\n}\n", strings.TrimSuffix(file, ".go"), fmt.Sprintf("variant %d", variant))
}

// nonce returns a word that is used once.
func nonce(file string, i int) string { return fmt.Sprintf("%x", policy.Hash(fmt.Sprint(file, i))) }

// loops are ways to edit hot files repeatedly. Each writes the i-th edit.
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
	"edits with time stamps": func(s *story, f string, i int) {
		at := time.Date(2026, 11, 21, 8, i/60, i%60, i*1000, time.UTC)
		s.write(f, fmt.Sprintf("// written %s, %s, %d\n%s", at.Format(time.RFC3339Nano), at.Format(time.DateTime), at.UnixMilli(), variantOf(f, i%2)))
	},
	"edits with different white space": func(s *story, f string, i int) {
		s.write(f, strings.ReplaceAll(variantOf(f, i%2), "\n", strings.Repeat(" ", i%4)+"\n"+strings.Repeat("\n", i%3))+strings.Repeat("\n", i%7))
	},
	"a new line each time": func(s *story, f string, i int) {
		s.write(f, fmt.Sprintf("// try number %d\n%s", i, variantOf(f, i%2)))
	},
	"a moving counter":   func(s *story, f string, i int) { s.edit(f, fmt.Sprint("counter: ", i), fmt.Sprint("counter: ", i+1)) },
	"a nonce":            func(s *story, f string, i int) { s.edit(f, "id "+nonce(f, i), "id "+nonce(f, i+1)) },
	"a number in a file": func(s *story, f string, i int) { s.write(f, fmt.Sprintf("// written %d times\npackage main\n", i)) },
	"one function, renamed": func(s *story, f string, i int) {
		s.edit(f, fmt.Sprintf("x := old%d()\n", i), fmt.Sprintf("x := old%d()\n", i+1))
	},
	"added and removed": func(s *story, f string, i int) {
		debug := fmt.Sprintf("\tlog.Println(%q)\n\tdump(state)\n", fmt.Sprint("try ", i/2))
		if i%2 == 0 {
			s.edit(f, "\tdone()\n", "\tdone()\n"+debug)
		} else {
			s.edit(f, "\tdone()\n"+debug, "\tdone()\n")
		}
	},
	"the same failing command after each edit": func(s *story, f string, i int) {
		s.edit(f, fmt.Sprintf("limit = %d", i%2), fmt.Sprintf("limit = %d", (i+1)%2))
		s.call("Bash", map[string]any{"command": "go test ./..."}, true, fmt.Sprintf("--- FAIL: TestLimit (0.%02ds)\nFAIL", i))
	},
}

// noises write other events between a loop's edits.
var noises = map[string]func(s *story, i int){
	"nothing": func(*story, int) {},
	"reads and searches": func(s *story, i int) {
		s.call("Read", map[string]any{"file_path": fmt.Sprintf("lib%d.go", i%4)}, false, "package lib")
		s.call("Grep", map[string]any{"pattern": fmt.Sprint("x", i)}, false, "")
		s.call("Bash", map[string]any{"command": "go vet ./..."}, false, "")
	},
}

// looping returns a stream in which all edits form a loop. One file is edited repeat times, and each other file at most
// as often.
func looping(loop func(*story, string, int), noise func(*story, int), operations, repeat int) string {
	s := &story{}
	others := (operations - 1) / repeat
	for i, n := 0, 0; n < operations; i++ {
		if i < repeat {
			loop(s, "/repo/hot.go", i)
			n++
		}
		noise(s, i)
		for f := 0; f < others && i*others+f < operations-repeat; f++ {
			loop(s, fmt.Sprintf("/repo/other%d.go", f), i)
			n++
		}
	}
	return s.b.String()
}

var boundaries = []struct {
	operations, repeat int
	want               policy.Class
}{
	{40, 8, policy.Mild}, {41, 8, policy.Mild}, {59, 14, policy.Mild}, {60, 8, policy.Moderate}, {40, 15, policy.Moderate}, {65, 16, policy.Moderate},
	{99, 24, policy.Moderate}, {26, 26, policy.None}, {39, 39, policy.None}, {200, 7, policy.None}, {59, 26, policy.Severe}, {100, 8, policy.Severe}, {105, 10, policy.Severe}, {40, 25, policy.Severe},
}

func TestGeneratedLoopsAreClassifiedByCounts(t *testing.T) {
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

// A cycle of any length is a loop once a third of the edits only repeat states.
func TestLongCycleIsALoop(t *testing.T) {
	for _, states := range []int{2, 13, 26} {
		for name, step := range map[string]func(s *story, i int){
			"edits":  func(s *story, i int) { s.edit("f.go", nonce("", i%states), nonce("", (i+1)%states)) },
			"writes": func(s *story, i int) { s.write("f.go", variantOf("f.go", i%states)) },
		} {
			s := &story{}
			for i := range 41 {
				step(s, i)
			}
			if got, e := watched(t, s.b.String()); got.Class != policy.Severe {
				t.Errorf("%d states, %s: %s %q: %+v", states, name, got.Class, got.Reasons, e)
			}
		}
	}
}

func TestRareCyclesAreNotALoop(t *testing.T) {
	for _, tc := range []struct {
		circles, work int
		want          policy.Class
	}{{10, 50, policy.None}, {15, 45, policy.None}, {24, 36, policy.Moderate}, {40, 160, policy.Severe}} {
		s := &story{}
		for i := range tc.circles {
			loops["A to B to A"](s, "hot.go", i)
		}
		for i := range tc.work {
			s.edit(fmt.Sprintf("file%d.go", i), "import old", "import new // "+nonce("", i))
		}
		if got, e := watched(t, s.b.String()); got.Class != tc.want {
			t.Errorf("%+v: %s %q: %+v", tc, got.Class, got.Reasons, e)
		}
	}
}

func TestFilesRestoredInTurnAreALoop(t *testing.T) {
	for _, tc := range []struct {
		files, rounds, states int
		want                  policy.Class
	}{
		{3, 9, 2, policy.None}, {5, 9, 2, policy.Mild}, {3, 16, 2, policy.Moderate}, {3, 21, 3, policy.Moderate}, {3, 25, 2, policy.Severe}, {3, 34, 4, policy.Severe}, {20, 6, 1, policy.None}, {20, 8, 1, policy.Severe},
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

func TestGeneratedSteadyWorkIsNotALoop(t *testing.T) {
	body := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "func part%d() int { return %d }\n\n", i, i*i)
		}
		return b.String()
	}
	for name, step := range map[string]func(s *story, i int){
		"a growing file": func(s *story, i int) { s.write("parts.go", body(i+1)) },
		"functions added one by one": func(s *story, i int) {
			s.edit("parts.go", "// more\n", fmt.Sprintf("func part%d() {\n\treturn\n}\n\n// more\n", i))
		},
		"one function that grows as it is rewritten": func(s *story, i int) {
			s.edit("f.go", fmt.Sprintf("\tx := old%d()\n\treturn x\n", i), fmt.Sprintf("\tuse%d()\n\tx := old%d()\n\treturn x\n", i, i+1))
		},
		"with tests in between": func(s *story, i int) {
			s.edit("f.go", fmt.Sprintf("step %d is open", i), fmt.Sprintf("step %d is done", i))
			s.call("Bash", map[string]any{"command": "go test ./..."}, i%3 == 0, fmt.Sprintf("%d tests failed", 200-i))
			s.call("Bash", map[string]any{"command": "go build ./..."}, false, "")
		},
		"a shrinking file": func(s *story, i int) { s.write("parts.go", body(220-i)) },
		"lines moved downwards": func(s *story, i int) {
			s.edit("m.go", fmt.Sprintf("move%d()\nrest%d()\n", i, i), fmt.Sprintf("rest%d()\nmove%d()\n", i, i))
		},
		"each line re-indented once": func(s *story, i int) {
			s.edit("i.py", fmt.Sprintf("  call(%d)\n", i), fmt.Sprintf("    call(%d)\n", i))
		},
		"one edit in ten reverted": func(s *story, i int) {
			place := i - i%10/9
			before, after := fmt.Sprintf("value%d = 1\n", place), fmt.Sprintf("value%d = 2\n", place)
			if i%10 == 9 {
				before, after = after, before
			}
			s.edit("f.go", before, after)
		},
		"a debug print added and removed five times": func(s *story, i int) {
			if i < 150 || i >= 160 {
				s.edit("f.go", fmt.Sprintf("open%d()\n", i), fmt.Sprintf("done%d()\n", i))
				return
			}
			loops["added and removed"](s, "f.go", i)
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

func TestRepeatedlyPrintedCallCountsOnce(t *testing.T) {
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

// Without edits, equal calls reveal a loop.
func TestRefusedEditsAndRereadsAreEqualCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		call func(s *story, i int)
		most int
	}{
		"the same edit, refused": {func(s *story, _ int) {
			s.call("Edit", map[string]any{"file_path": "a.go", "old_string": "x", "new_string": "y"}, true, "String to replace not found in file.")
		}, 41},
		"the same file, read": {func(s *story, _ int) { s.call("Read", map[string]any{"file_path": "a.go"}, false, "package a") }, 41},
		"another file, read": {func(s *story, i int) {
			s.call("Read", map[string]any{"file_path": fmt.Sprintf("a%d.go", i)}, false, "package a")
		}, 1},
		"a file that changes": {func(s *story, i int) { s.call("Read", map[string]any{"file_path": "a.go"}, false, nonce("a", i)) }, 1},
		"with edits in between": {func(s *story, i int) {
			s.call("Read", map[string]any{"file_path": "a.go"}, false, "package a")
			s.edit("b.go", fmt.Sprint("v = ", i), fmt.Sprint("v = ", i+1))
		}, 1},
	} {
		s := &story{}
		for i := range 41 {
			tc.call(s, i)
		}
		if _, e := watched(t, s.b.String()); e.SameCalls != tc.most {
			t.Errorf("%s: the same call %d times, want %d", name, e.SameCalls, tc.most)
		}
	}
}

// watchedFolder returns an empty checkout and its loop monitor.
func watchedFolder(t *testing.T) (dir string, l *loopMonitor) {
	t.Helper()
	dir = t.TempDir()
	e := config.Effective{}
	e.Policy.Limits = policy.Defaults()
	l, err := newLoopMonitor(dir, e, time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return dir, l
}

// The event of a command that names a file may arrive before the event of its edit.
func TestLateEditEventCountsOnce(t *testing.T) {
	dir, l := watchedFolder(t)
	name := filepath.Join(dir, "f.go")
	write := func(i int) {
		if err := os.WriteFile(name, []byte(strings.Repeat("line\n", i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edited := agent.Call{Edits: []policy.Edit{edit.Replaced("f.go", "a", "b")}}
	end := func(error) { t.Error("the agent was killed") }
	for i := range 12 {
		write(i + 1)
		l.call(agent.Call{Authored: "cat f.go"}, end)
		l.call(edited, end)
	}
	if e := l.circles.Edits(); e.Operations != 12 {
		t.Errorf("%+v, want 12 edits", e)
	}
	write(20)
	l.call(agent.Call{Authored: "sed -i s/x/y/ f.go"}, end)
	write(21)
	l.call(edited, end)
	if e := l.circles.Edits(); e.Operations != 14 {
		t.Errorf("%+v, want the command's and the tool's edits, too", e)
	}
}

// A shell truncates a file before it writes. A sample at that moment is not an edit.
func TestGrowingFileIsNotALoop(t *testing.T) {
	dir, l := watchedFolder(t)
	text := ""
	for i := range 45 {
		text += fmt.Sprintln("line", i)
		for _, held := range []string{"", text} {
			if err := os.WriteFile(filepath.Join(dir, "f.txt"), []byte(held), 0o600); err != nil {
				t.Fatal(err)
			}
			l.call(agent.Call{Edits: []policy.Edit{{Path: "f.txt"}}}, func(err error) { t.Fatal(err) })
		}
	}
	if e := l.circles.Edits(); e.Churned > 0 || e.Seen < 45 {
		t.Errorf("%+v, want steady work", e)
	}
}
