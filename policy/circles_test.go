package policy

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// byCounts returns the published class for these counts.
func byCounts(operations, repeat int) Class {
	switch {
	case operations < 40 || repeat < 8:
		return None
	case operations >= 100 || repeat >= 25:
		return Severe
	case operations >= 60 || repeat >= 15:
		return Moderate
	}
	return Mild
}

func classOf(c *Circles) Class { return Defaults().Severity.Judge(c.Edits()).Class }

func TestWorkWithoutRepetitionIsNotALoop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCircles()
		files, n := rapid.IntRange(1, 9).Draw(t, "files"), rapid.IntRange(0, 400).Draw(t, "edits")
		whole := make([][]uint64, files)
		for i := range n {
			line, f := uint64(i)*7919+1, i%files
			whole[f] = append(whole[f], line)
			e := Edit{Path: fmt.Sprint(f), Key: line, Added: []uint64{line}, Removed: []uint64{line + 1}}
			if rapid.Bool().Draw(t, "tree") {
				e = Edit{Path: e.Path, State: line, Added: slices.Clone(whole[f]), Whole: true}
			}
			c.Edit(e)
		}
		if got := classOf(c); got != None {
			t.Fatalf("%s: %+v", got, c.Edits())
		}
	})
}

func TestCyclesAreClassifiedByCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCircles()
		states, files := rapid.IntRange(1, 5).Draw(t, "states"), rapid.IntRange(1, 5).Draw(t, "files")
		repeat, other := rapid.IntRange(8, 60).Draw(t, "repeats"), rapid.IntRange(0, 60).Draw(t, "other edits")
		other = min(other, max(0, repeat*files-3*states*files/2)) // at least a third of the edits are repetitions
		known := rapid.SampledFrom([]string{"content", "state", "lines"}).Draw(t, "known")
		for i := range repeat {
			s := uint64(i%states) + 1
			for f := range files {
				e := Edit{Path: fmt.Sprint("hot", f), Key: s}
				switch known {
				case "state":
					e = Edit{Path: e.Path, State: s}
				case "lines":
					// Each state has a line that occurs only once.
					e = Edit{Path: e.Path, State: uint64(1000 + i), Added: []uint64{s, uint64(100_000 + i*10 + f)}, Whole: true}
					if states == 1 {
						e.State = s
					}
				}
				c.Edit(e)
			}
			if i < other {
				c.Edit(Edit{Path: fmt.Sprint("other", i), Key: uint64(i) + 500})
			}
		}
		operations := repeat*files + min(repeat, other)
		e := c.Edits()
		if e.Operations != operations || e.MaxRepeat != repeat || e.Again+e.Returned > e.Seen || e.Seen > e.Operations {
			t.Fatalf("%+v, want %d edits, %d on one file", e, operations, repeat)
		}
		if got, want := classOf(c), byCounts(operations, repeat); got != want {
			t.Fatalf("%s, want %s: %+v", got, want, e)
		}
	})
}

func TestLateEditsCountWithTheNextState(t *testing.T) {
	look := func(states ...uint64) Edits {
		c := NewCircles()
		for _, s := range states {
			c.Edit(Edit{Path: "a", State: s})
		}
		return c.Edits()
	}
	if e := look(1, 0, 0, 2, 0, 0, 1, 0, 2); e.Seen != 9 || e.Returned != 5 {
		t.Errorf("two states: %+v, want 9 seen and 5 returned", e)
	}
	if e := look(1, 0, 0, 2, 0, 0, 3, 0, 4); e.Seen != 9 || e.Returned != 0 {
		t.Errorf("growing: %+v, want 9 seen and none returned", e)
	}
	if e := look(1, 0, 0, 0); !e.Blind() {
		t.Errorf("one sample: %+v is too little known", e)
	}
}

func TestOneRepeatedBatchIsNotALoop(t *testing.T) {
	c := NewCircles()
	batch := func() {
		for i := range 7 {
			c.Edit(Edit{Path: "settings.json", Key: uint64(i) + 1})
		}
	}
	batch()
	for i := range 7 {
		c.Edit(Edit{Path: "settings.json", Key: uint64(i) + 100})
	}
	batch()
	if got := classOf(c); got != None {
		t.Errorf("%s: %+v", got, c.Edits())
	}
}

func TestRepeatedFailureIsACircle(t *testing.T) {
	for _, tc := range []struct {
		name         string
		edits, fails int
		known        bool
		want         Class
	}{
		{"different edits, many failures", 41, 41, true, Severe},
		{"different edits, few failures", 41, 7, true, None},
		{"few different edits", 20, 20, true, None},
		{"few edits with unknown content", 20, 20, false, None},
	} {
		c := NewCircles()
		for i := range tc.edits {
			e := Edit{Path: "a"}
			if tc.known {
				e.Key = uint64(i) + 1
			}
			c.Edit(e)
		}
		for i := range tc.fails {
			c.Call(Call{Key: 1, Result: 2, Failed: true, Text: ""})
			c.Call(Call{Key: 1, Result: uint64(i) + 10, Failed: true, Text: ""}) // a different result each time
			c.Call(Call{Key: 3, Result: 3, Failed: false, Text: ""})             // a success
		}
		if got := classOf(c); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestLoopIsCutOffAtTheSevereThreshold(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(i int) Edit
		want int
	}{
		{"two states", func(i int) Edit { return Edit{Path: "a", Key: uint64(i%2) + 1} }, 40},
		{"five files", func(i int) Edit { return Edit{Path: fmt.Sprint(i % 5), Key: uint64(i%10) + 1} }, 100},
		{"unknown content, one file", func(int) Edit { return Edit{Path: "a"} }, 50},
		{"unknown content, many files", func(i int) Edit { return Edit{Path: fmt.Sprint(i % 20)} }, 200},
		{"steady work", func(i int) Edit { return Edit{Path: "a", Key: uint64(i) + 1} }, 0},
	} {
		c, at := NewCircles(), 0
		for i := 0; i < 500 && at == 0; i++ {
			c.Edit(tc.edit(i))
			if _, cut := Defaults().Severity.CutOff(c.Edits()); cut {
				at = i + 1
			}
		}
		if at != tc.want {
			t.Errorf("%s: cut off at edit %d, want %d", tc.name, at, tc.want)
		}
	}
}

func TestMemoryIsLimited(t *testing.T) {
	c := NewCircles()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 300_000 {
		k := uint64(i)*2 + 1
		c.Edit(Edit{Path: fmt.Sprint(i), Key: k, State: k, Added: []uint64{k, k + 1}, Removed: []uint64{k + 2}, Whole: true})
		c.Call(Call{Key: k, Result: k, Failed: true, Text: ""})
	}
	if e := c.Edits(); e.Operations != 300_000 || e.Files != maxCircleFile {
		t.Errorf("%+v", e)
	}
	if grown := int64(heap() - before); grown > 32<<20 {
		t.Errorf("%d MiB are in use, want at most 32", grown>>20)
	}
	runtime.KeepAlive(c)
}

func TestCallsCountAgainAfterAnEdit(t *testing.T) {
	c := NewCircles()
	for i := range 100 {
		for range 10 {
			c.Call(Call{Key: 1, Result: 2, Failed: false, Text: "git status"})
			c.Call(Call{Key: 3, Result: uint64(i) + 10, Failed: false, Text: "date"})
			c.Call(Call{Key: 4, Result: 0, Failed: false, Text: "a result that is not told"})
		}
		c.Edit(Edit{Path: "a", Key: uint64(i) + 1})
	}
	if e := c.Edits(); e.SameCalls != 10 || e.SameFailures != 0 {
		t.Errorf("%+v, want 10 calls in a row", e)
	}
	for range MaxCalls {
		c.Call(Call{Key: 1, Result: 2, Failed: false, Text: "git status"})
	}
	if e := c.Edits(); e.SameCalls != MaxCalls || e.SameCall != "git status" || e.Repetition() == "" {
		t.Errorf("%+v, want %d calls in a row", e, MaxCalls)
	}
}

// called is a call of a command. Calls with the same text have the same result.
func called(text string) Call { return Call{Key: Hash(text), Result: 7, Text: text} }

func TestWaitingCallDoesNotCount(t *testing.T) {
	const status = "gh run view 77 --json status"
	paused := called(status)
	paused.Pause = 15 * time.Second
	short := called(status)
	short.Pause = 9 * time.Second
	failed := called("sleep 30; gh pr checks 12")
	failed.Failed = true
	for _, tc := range []struct {
		name   string
		calls  []Call
		counts int
	}{
		{"the same status without a pause", []Call{called(status)}, 50},
		{"the command sleeps", []Call{called("sleep 60; " + status)}, 1},
		{"the command sleeps for less than 10 s", []Call{called("sleep 5; " + status)}, 50},
		{"a separate call sleeps", []Call{called("sleep 30"), called(status)}, 1},
		{"a tool waits", []Call{called(`wait_agent {"ids":["a"],"timeout_ms":30000}`)}, 1},
		{"the stream shows a pause", []Call{paused}, 1},
		{"the stream shows a shorter pause", []Call{short}, 50},
		{"the status is an error until then", []Call{failed}, 1},
		{"three calls in turn", []Call{called("ls"), called("cat a"), called("git status")}, 50},
	} {
		c := NewCircles()
		for range 50 {
			for _, call := range tc.calls {
				c.Call(call)
			}
		}
		e := c.Edits()
		if e.SameCalls != tc.counts || e.Failures > 1 {
			t.Errorf("%s: %d same calls, %d failures; want %d and at most 1", tc.name, e.SameCalls, e.Failures, tc.counts)
		}
	}
}

func TestUnchangingCheckIsACircle(t *testing.T) {
	const (
		command = `Bash {"command":"node check.js"}`
		read    = `Read {"file_path":"/work/a.go"}`
	)
	silent := called(`Bash {"command":"gofmt -w a.go"}`)
	silent.Silent = true
	for _, tc := range []struct {
		name  string
		edits int
		call  Call
		every int // edits for each call
		want  Class
	}{
		{"a command after each edit", 42, called(command), 1, Severe},
		{"a tool without a file", 42, called("run_tests {}"), 1, Severe},
		{"a command that waits for its server", 42, called("sleep 20; curl -s localhost"), 1, Severe},
		{"12 times", 48, called(command), 4, None},
		{"13 times, repeated 12 times", 49, called(command), 4, Severe},
		{"below the trigger", 30, called(command), 1, None},
		{"a formatter that prints nothing", 42, silent, 1, None},
		{"a file that is read", 42, called(read), 1, None},
	} {
		c := NewCircles()
		cut := false
		for i := range tc.edits {
			c.Edit(Edit{Path: "a", Key: uint64(i) + 1})
			if i%tc.every == 0 {
				c.Call(tc.call)
				c.Call(Call{Key: 1, Result: uint64(i) + 10, Text: "date"})
			}
			_, now := Defaults().Severity.CutOff(c.Edits())
			cut = cut || now
		}
		if got := classOf(c); got != tc.want || cut {
			t.Errorf("%s: %s, cut off %t; want %s and no cut-off: %+v", tc.name, got, cut, tc.want, c.Edits())
		}
	}
}

func TestRepeatedlyFailingCallIsALoop(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails int
		same  bool
		want  int
	}{
		{"400 failures with the same output", 400, true, 400},
		{"400 failures with different outputs", 400, false, 400},
		{"40 failures with different outputs", 40, false, 40},
		{"39 failures with different outputs", 39, false, 0},
		{"8 failures with the same output", 8, true, 8},
		{"7 failures with the same output", 7, true, 0},
	} {
		c := NewCircles()
		for i := range tc.fails {
			result := uint64(2)
			if !tc.same {
				result += uint64(i)
			}
			c.Edit(Edit{Path: fmt.Sprint(i), Key: uint64(i) + 1})
			c.Call(Call{Key: 1, Result: result, Failed: true, Text: "npm test"})
		}
		loop, found := c.Edits().Repeats()
		if loop.Count != tc.want || found != (tc.want > 0) {
			t.Errorf("%s: %+v, want %d", tc.name, loop, tc.want)
		}
		if found && (loop.Kind != LoopFailures || loop.What != "npm test") {
			t.Errorf("%s: %+v, want the command's failures", tc.name, loop)
		}
	}
}
