package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
)

// codexLog is what a generated log holds, to be found again by whoever reads it.
type codexLog struct {
	path        string
	bytes       int64
	lines       int
	edits       int // file changes that were completed
	calls       int // commands and file changes
	longestLine int
}

// writeCodexLog writes a log of at least size bytes in the shape of
// `codex exec --json`: turns with messages, commands with their output, and file
// changes. Half of the outputs are below 2 kB, a few fill a line of 300 kB. The
// same size gives the same bytes.
func writeCodexLog(path string, size int64) (l codexLog, err error) {
	f, err := os.Create(path)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	w := &codexWriter{out: out, chance: rand.New(rand.NewPCG(1, 2))}
	w.log.path = path
	w.line(event{Type: "thread.started", Thread: "01a1fd43-59c8-7560-963d-5626ccfd0cc3"})
	for w.err == nil && w.log.bytes < size {
		w.turn()
	}
	return w.log, errors.Join(w.err, out.Flush())
}

// event and item are lines of the stream, with their members in codex's order.
type event struct {
	Type   string `json:"type"`
	Thread string `json:"thread_id,omitempty"`
	Item   *item  `json:"item,omitempty"`
	Usage  *spent `json:"usage,omitempty"`
}

type item struct {
	ID      string   `json:"id"`
	Type    string   `json:"type"`
	Text    string   `json:"text,omitempty"`
	Command string   `json:"command,omitempty"`
	Output  *string  `json:"aggregated_output,omitempty"`
	Exit    *int     `json:"exit_code,omitempty"`
	Changes []change `json:"changes,omitempty"`
	Status  string   `json:"status,omitempty"`
}

type change struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

type spent struct {
	Input  int `json:"input_tokens"`
	Cached int `json:"cached_input_tokens"`
	Output int `json:"output_tokens"`
}

// codexWriter keeps the first error and what was written.
type codexWriter struct {
	out    io.Writer
	chance *rand.Rand
	items  int
	log    codexLog
	err    error
}

func (w *codexWriter) line(e event) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // codex does not
	err := enc.Encode(e)
	n, writeErr := io.WriteString(w.out, b.String())
	w.err = errors.Join(w.err, err, writeErr)
	w.log.bytes += int64(n)
	w.log.lines++
	w.log.longestLine = max(w.log.longestLine, n)
}

// turn writes a hundred steps: say something, run a command, at every third
// change a file.
func (w *codexWriter) turn() {
	w.line(event{Type: "turn.started"})
	for step := range 100 {
		w.line(event{Type: "item.completed", Item: &item{ID: w.id(), Type: "agent_message", Text: w.text(100 + w.chance.IntN(300))}})
		w.command()
		if step%3 == 0 {
			w.change()
		}
	}
	w.line(event{Type: "turn.completed", Usage: &spent{Input: 120_000, Cached: 100_000, Output: 9_000}})
}

func (w *codexWriter) id() string {
	w.items++
	return fmt.Sprintf("item_%d", w.items-1)
}

func (w *codexWriter) command() {
	i := item{ID: w.id(), Type: "command_execution", Status: "in_progress", Output: new(string),
		Command: fmt.Sprintf("/bin/bash -lc \"cd internal && rg -n 'func %s' . | head -%d; go test ./...\"", someNames[w.chance.IntN(len(someNames))], 20+w.chance.IntN(80))}
	w.line(event{Type: "item.started", Item: &i})
	// Doubled up to seven times: 300 B to 38 kB, half of them below 2 kB.
	size := (200 + w.chance.IntN(200)) << min(w.chance.IntN(8), w.chance.IntN(8))
	if w.chance.IntN(200) == 0 {
		size = 300_000
	}
	output, exit := w.text(size), 0
	if w.chance.IntN(6) == 0 {
		exit = 1
	}
	i.Output, i.Exit, i.Status = &output, &exit, "completed"
	if exit != 0 {
		i.Status = "failed"
	}
	w.line(event{Type: "item.completed", Item: &i})
	w.log.calls++
}

func (w *codexWriter) change() {
	path := fmt.Sprintf("/work/repo/internal/%s/%s.go", someNames[w.chance.IntN(len(someNames))], someNames[w.chance.IntN(len(someNames))])
	i := item{ID: w.id(), Type: "file_change", Changes: []change{{Path: path, Kind: "update"}}, Status: "in_progress"}
	w.line(event{Type: "item.started", Item: &i})
	i.Status = "completed"
	w.line(event{Type: "item.completed", Item: &i})
	w.log.calls++
	w.log.edits++
}

// text is about n bytes of what commands print: source with quotes and tabs, test
// results, paths, log lines.
func (w *codexWriter) text(n int) string {
	var b strings.Builder
	b.Grow(n + 200)
	for b.Len() < n {
		name := someNames[w.chance.IntN(len(someNames))]
		switch kind := w.chance.IntN(40); {
		case kind < 8:
			fmt.Fprintf(&b, "internal/%s/%s_test.go:%d: got %q, want %q\n", name, name, w.chance.IntN(900), name, "other")
		case kind < 16:
			fmt.Fprintf(&b, "\tif err := %s(ctx, \"%x\"); err != nil {\n\t\treturn fmt.Errorf(\"%s: %%w\", err)\n\t}\n", name, w.chance.Uint64(), name)
		case kind < 24:
			fmt.Fprintf(&b, "ok  \tgithub.com/acme/widgets/internal/%s\t%d.%03ds\n", name, w.chance.IntN(9), w.chance.IntN(999))
		case kind < 32:
			fmt.Fprintf(&b, "2026-11-21T09:%02d:%02d.%06dZ INFO %s: handled the request in %d ms – no error\n", w.chance.IntN(60), w.chance.IntN(60), w.chance.IntN(999999), name, w.chance.IntN(500))
		case kind == 32: // every few kB, as in sessions about limits
			fmt.Fprintf(&b, "// %s keeps what is needed later; the limit of the rate is %d a minute and it resets at noon.\n", name, w.chance.IntN(500))
		default:
			fmt.Fprintf(&b, "-rw-r--r-- 1 dev dev %8d Nov 21 09:%02d internal/%s/%s.go\n", w.chance.IntN(99999), w.chance.IntN(60), name, name)
		}
	}
	return b.String()
}

// someNames are names that occur in the generated text.
var someNames = []string{"parse", "render", "queue", "lease", "store", "widgets", "fold", "publish", "budget", "transcript"}
