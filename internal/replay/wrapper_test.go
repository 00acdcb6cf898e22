package replay

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/policy"
)

// pieces returns the objects in lines, and the number of lines that belonged to one.
func pieces(lines ...string) (whole []string, took int) {
	var o objects
	for _, l := range lines {
		if o.piece([]byte(l), func(b []byte) { whole = append(whole, string(b)) }) {
			took++
		}
	}
	return whole, took
}

func TestObjectsAreJoinedFromLines(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"one line", []string{`{"a":1}`}, []string{`{"a":1}`}},
		{"text around it", []string{"text", ` {"a":1} rest`, "text"}, []string{`{"a":1}`}},
		{"two on a line", []string{`{"a":1} {"b":2}`}, []string{`{"a":1}`, `{"b":2}`}},
		{"indented", []string{"{", `  "a": [`, `    1,`, `    {"b": "x y"}`, "  ]", "}"}, []string{`{"a":[1,{"b":"x y"}]}`}},
		{"cut in a string", []string{`{"a":"one `, ` two \"`, `three"}`}, []string{`{"a":"one  two \"three"}`}},
		{"cut at an escape", []string{`{"a":"one\`, `"two"}`}, []string{`{"a":"one\"two"}`}},
		{"braces in strings", []string{`{"a":"}{"}`, `{"b":"[\\"}`}, []string{`{"a":"}{"}`, `{"b":"[\\"}`}},
		{"the wrapper's output in between", []string{`{"a":`, "📌 Session ID: 1", `1}`}, []string{`{"a":1}`}},
		{"never complete", []string{`{"a":[`}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := pieces(tc.lines...)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLineHeads(t *testing.T) {
	for line, want := range map[string]string{
		"[2031-03-04T08:00:00.123Z] [INFO] text":      "INFO|text",
		"[2031-03-04T08:00:00Z] [WARNING]   text":     "WARNING|  text",
		"17:[2031-03-04T08:00:00.123Z] [INFO] text":   "INFO|text",
		"[2031-03-04T08:00:00.123Z] [INFO]":           "INFO|",
		"[2031-03-04] [INFO] text":                    "",
		"[2031-03-04T08:00:00.123Z] [info] text":      "",
		"[]":                                          "",
		"] [":                                         "",
		"text [2031-03-04T08:00:00.123Z] [INFO] text": "",
		"1:": "",
	} {
		got := ""
		if _, level, text, ok := lineHead([]byte(line)); ok {
			got = level + "|" + string(text)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func wrapperLog(lines ...string) string {
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "[2031-03-04T08:%02d:%02d.000Z] [INFO] %s\n", i/60, i%60, l)
	}
	return b.String()
}

const (
	began    = `{"type":"thread.started","thread_id":"%s"}`
	spoke    = `{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Done."}}`
	wentWell = `{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}`
)

func TestRunsAreSeparatedByStructure(t *testing.T) {
	a, b := fmt.Sprintf(began, "a"), fmt.Sprintf(began, "b")
	for name, tc := range map[string]struct {
		log  string
		runs int
	}{
		"by the stream alone":             {wrapperLog(a, spoke, wentWell, b, spoke, wentWell), 2},
		"the same session continues":      {wrapperLog(a, spoke, wentWell, a, spoke, wentWell), 2},
		"reported twice in one run":       {wrapperLog(a, a, spoke, wentWell), 1},
		"cut off and restarted":           {wrapperLog(a, spoke, b, spoke, wentWell), 2},
		"by the wrapper's words":          {wrapperLog("🤖 Executing Codex: X", "▶️ Streaming output:", a, spoke, "✅ Codex command completed", "🤖 Executing Codex: X", "▶️ Streaming output:", b, spoke), 2},
		"a program that printed no event": {wrapperLog("🤖 Executing Codex: X", "▶️ Streaming output:", "codex: command not found", "✅ Codex command completed"), 1},
		"only the end of a run":           {wrapperLog(spoke, wentWell, "✅ Codex command completed"), 0},
		"events after the end":            {wrapperLog(a, spoke, wentWell, "✅ Codex command completed", spoke), 1},
		"an object that breaks off":       {wrapperLog(a, `{"type":"item.completed","item":{"id":"item_0","text":"half`, b, spoke, wentWell), 2},
	} {
		if got := replayed(t, config.Default(), tc.log, "-").RecordedAttempts; got != tc.runs {
			t.Errorf("%s: %d runs, want %d", name, got, tc.runs)
		}
	}
}

func TestWrapperRestartIsNotFeedback(t *testing.T) {
	runs := func(between ...string) []string {
		lines := []string{fmt.Sprintf(began, "a"), spoke, wentWell, "✅ Codex command completed"}
		return append(append(lines, between...), fmt.Sprintf(began, "b"), spoke, wentWell)
	}
	for name, tc := range map[string]struct {
		between []string
		avoided int
	}{
		"uncommitted changes":      {[]string{"🔄 AUTO-RESTART: Uncommitted changes detected", "   • ?? prompt.txt"}, 1},
		"feedback":                 {[]string{"  📢 FEEDBACK DETECTED!", "     • New comments on the pull request: 1 "}, 0},
		"feedback without an item": {[]string{"  📢 FEEDBACK DETECTED!", "🔄 Restarting:"}, 1},
		"restarted":                {[]string{"🔧 Raw command executed:", "  mill"}, 0},
	} {
		r := replayed(t, config.Default(), wrapperLog(runs(tc.between...)...), "-")
		if r.RecordedAttempts != 2 || r.AvoidedAttempts != tc.avoided {
			t.Errorf("%s: %d of %d avoided, want %d of 2", name, r.AvoidedAttempts, r.RecordedAttempts, tc.avoided)
		}
	}
}

// repeated reads as a text repeated up to a size, without holding all of it in memory.
type repeated struct {
	text string
	off  int
	left int64
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[r.off:])
	r.off = (r.off + n) % len(r.text)
	r.left -= int64(n)
	return n, nil
}

func TestLongLogsUseLittleMemory(t *testing.T) {
	needs.All(t, "it reads 66 MiB")
	start := wrapperLog("🤖 Executing Codex: X", fmt.Sprintf(began, "a"), `{"type":"turn.started"}`)
	item := wrapperLog(`{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"cat f","aggregated_output":"` + strings.Repeat("output ", 2000) + `","exit_code":0,"status":"completed"}}`)
	long := wrapperLog(`{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"`)
	in := io.MultiReader(
		strings.NewReader(start), &repeated{text: item, left: int64(len(item)) * (2 << 20 / int64(len(item)))},
		strings.NewReader(strings.TrimRight(long, "\n")), &repeated{text: "x", left: 64 << 20}, strings.NewReader("\"}}\n"),
		strings.NewReader(wrapperLog(`{"type":"item.completed","item":{"id":"item_3","type":"file_change","changes":[{"path":"a.go","kind":"update"}],"status":"completed"}}`, wentWell)),
	)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rec, err := readRecordings([]string{"-"}, "", opens(in), policy.Defaults().Severity)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := after.Sys - before.Sys; after.Sys > before.Sys && grown > 32<<20 {
		t.Errorf("66 MiB of log with a line of 64 MiB took %d MiB of memory", grown>>20)
	}
	if n := len(rec.entries); n != 3 {
		t.Errorf("%d events, want a remark and one attempt", n)
	}
}

// FuzzWrapperLog reads any text as a wrapper's log: no error, each run has a beginning and an end, and policy decides.
func FuzzWrapperLog(f *testing.F) {
	a, b := fmt.Sprintf(began, "a"), fmt.Sprintf(began, "b")
	f.Add(wrapperLog("🤖 Executing Codex: X", "▶️ Streaming output:", a, spoke, wentWell, "✅ Codex command completed", "📢 FEEDBACK DETECTED!", "  • one", b, spoke, wentWell))
	f.Add("{\n  \"type\": \"system\",\n  \"subtype\": \"init\"\n}\n" + wrapperLog(`{"type":"error","errorType":"X","message":"usage limit reached"}`))
	f.Add(wrapperLog(`{"type":"tool_use","part":{"state":{"status":"pending"}}}`, `{"type":"log","error":{"responseHeaders":{"retry-after":"10"}}}`, "🔧 Raw command executed:"))
	f.Fuzz(func(t *testing.T, log string) {
		w := &wrapper{rec: &recording{severity: policy.Defaults().Severity}}
		for line := range strings.Lines(log) {
			w.line([]byte(strings.TrimRight(line, "\n")))
		}
		if w.close(); w.rec.err != nil {
			t.Fatal(w.rec.err)
		}
		out, err := playBack(w.rec.entries, config.Default())
		if err != nil {
			t.Fatal(err)
		}
		r := reportReplay(out, w.rec)
		if len(out) != w.rec.attempts || r.AvoidedAttempts > len(out) || r.AvoidedSeconds < 0 {
			t.Fatalf("%d attempts, %d of them avoided, %d s", len(out), r.AvoidedAttempts, r.AvoidedSeconds)
		}
	})
}

func FuzzObjects(f *testing.F) {
	f.Add("{\n\"a\": [1, \"x\\\"}\"]\n}\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		var o objects
		for _, line := range strings.Split(text, "\n") {
			o.piece([]byte(line), func(b []byte) {
				if len(b) == 0 || b[0] != '{' || len(b) > maxObject {
					t.Fatalf("object %q", b)
				}
			})
			if len(o.buf) > maxObject || o.depth < 0 {
				t.Fatalf("depth %d, %d bytes", o.depth, len(o.buf))
			}
		}
	})
}
