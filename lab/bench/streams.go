package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// streamSize is the log's length in bytes. A wrapper that we used before Pawl wrote such a log.
	streamSize = 140_000_000
	// streamRounds is the number of times that each program reads the log. Only the fastest round counts, because other load
	// can only make a round slower.
	streamRounds = 7
	// Required ratios of pawl inspect's speed to the speed of other programs.
	jqAim   = 5.0
	grepAim = 0.3
	// streamMemoryAim limits the peak resident memory, in KiB.
	streamMemoryAim = 32 << 10
)

// measureStreams compares pawl inspect with well-known programs that read the same log.
func measureStreams(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	rows, err = fingerprintRows(ctx)
	if err != nil {
		return nil, nil, err
	}
	log, err := writeCodexLog(filepath.Join(dir, "codex.jsonl"), streamSize)
	if err != nil {
		return nil, nil, err
	}
	speed, err := streamSpeed(ctx, bin, log)
	if err != nil {
		return nil, nil, err
	}
	memory, err := streamMemory(ctx, bin, dir, log)
	if err != nil {
		return nil, nil, err
	}
	note := fmt.Sprintf("Streams: the log has %d lines, the longest of %d bytes, %d calls and %d file changes; it is read from the page cache.",
		log.lines, log.longestLine, log.calls, log.edits)
	return append(append(rows, speed...), memory...), []string{note}, nil
}

// streamSpeed lets the programs read the log in turn and compares their fastest rounds.
func streamSpeed(ctx context.Context, bin string, log codexLog) (rows []row, err error) {
	yardsticks := []struct {
		argv []string
		aim  float64
	}{{[]string{"jq", "-c", ".type", log.path}, jqAim}, {[]string{"grep", "-c", "turn.completed", log.path}, grepAim}}
	var own []time.Duration
	others := make([][]time.Duration, len(yardsticks))
	for range streamRounds {
		d, _, err := inspectLog(ctx, bin, log)
		if err != nil {
			return nil, err
		}
		own = append(own, d)
		for i, y := range yardsticks {
			if _, err := exec.LookPath(y.argv[0]); err != nil {
				continue
			}
			began := time.Now()
			// This needs a pipe: with /dev/null, grep stops at the first match.
			cmd := exec.CommandContext(ctx, y.argv[0], y.argv[1:]...)
			cmd.Stdout = &discard{}
			if err := cmd.Run(); err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Join(y.argv, " "), err)
			}
			others[i] = append(others[i], time.Since(began))
		}
	}
	best := slices.Min(own)
	rows = append(rows, row{fmt.Sprintf("pawl inspect, codex log of %d MB", log.bytes/1e6),
		fmt.Sprintf("%s, %.0f MB/s", ms(best), float64(log.bytes)/1e6/best.Seconds()), "", false})
	for i, y := range yardsticks {
		what, aim := "the same, to "+strings.Join(y.argv[:len(y.argv)-1], " "), fmt.Sprintf("≥ %g ×", y.aim)
		if len(others[i]) == 0 {
			rows = append(rows, row{what, fmt.Sprintf("not measured: %s is not installed", y.argv[0]), "", false})
			continue
		}
		other := slices.Min(others[i])
		ratio := other.Seconds() / best.Seconds()
		rows = append(rows, row{what, fmt.Sprintf("%.2f ×, which takes %s", ratio, ms(other)), aim, ratio >= y.aim})
	}
	return rows, nil
}

// discard is a writer that drops everything. Unlike for io.Discard, os/exec creates a pipe for it.
type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }

// streamMemory compares the peak memory on the log with a log of twice the length.
func streamMemory(ctx context.Context, bin, dir string, log codexLog) (rows []row, err error) {
	double, err := writeCodexLog(filepath.Join(dir, "double.jsonl"), 2*streamSize)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(double.path)) }()
	for _, l := range []codexLog{log, double} {
		_, peak, err := inspectLog(ctx, bin, l)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{fmt.Sprintf("peak memory of pawl inspect, codex log of %d MB", l.bytes/1e6), fmt.Sprintf("%.1f MB", float64(peak)/1024),
			fmt.Sprintf("< %d MB", streamMemoryAim>>10), peak < streamMemoryAim})
	}
	return rows, nil
}

// inspectLog runs pawl inspect, checks its result, and returns its time and peak memory in KiB. It polls VmHWM for the peak,
// because the maximum from wait4 includes the parent's memory before exec.
func inspectLog(ctx context.Context, bin string, log codexLog) (took time.Duration, peak int, err error) {
	cmd := exec.CommandContext(ctx, bin, "inspect", "--cli", "codex", "--json", log.path)
	var out, output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &output
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for running := true; running; {
		select {
		case err = <-done:
			running = false
		case <-ticker.C:
			// A finished process has no memory.
			if n, err := kilobytes(cmd.Process.Pid, "VmHWM"); err == nil {
				peak = max(peak, n)
			}
		}
	}
	took = time.Since(began)
	if err != nil {
		return 0, 0, fmt.Errorf("pawl inspect: %w\n%s", err, output.Bytes())
	}
	var found struct {
		Ending string
		Edits  struct{ Operations int }
		Calls  int `json:"tool_calls"`
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return 0, 0, fmt.Errorf("pawl inspect: %w", err)
	}
	if found.Ending != "completed" || found.Edits.Operations != log.edits || found.Calls != log.calls {
		return 0, 0, fmt.Errorf("pawl inspect found %+v in a log with %d calls and %d edits", found, log.calls, log.edits)
	}
	return took, peak, nil
}

// codexLog describes a generated log, so that a reader's result can be checked.
type codexLog struct {
	path        string
	bytes       int64
	lines       int
	edits       int // completed file changes
	calls       int // commands and file changes
	longestLine int
}

// writeCodexLog writes a log of at least size bytes in the format of `codex exec --json`: turns with messages, commands with
// output, and file changes. Half of the outputs are below 2 kB, and a few make a line of 300 kB. The same size always gives
// the same bytes.
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

// event and item are lines of the stream. Their fields have the same order as in Codex's output.
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

// codexWriter keeps the first error and counts what it wrote.
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
	enc.SetEscapeHTML(false) // Codex does not escape HTML, either
	err := enc.Encode(e)
	n, writeErr := io.WriteString(w.out, b.String())
	w.err = errors.Join(w.err, err, writeErr)
	w.log.bytes += int64(n)
	w.log.lines++
	w.log.longestLine = max(w.log.longestLine, n)
}

// turn writes a hundred steps. A step is a message, a command and, in every third step, a file change.
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
	// The size is about 300 B, doubled up to seven times, so at most about 50 kB. Half of the outputs are below 2 kB.
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

// text returns about n bytes of command output: source with quotes and tabs, test results, paths, log lines.
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
		case kind == 32: // a line with the words limit, rate and resets every few kB, as in sessions about limits
			fmt.Fprintf(&b, "// %s keeps what is needed later; the limit of the rate is %d a minute and it resets at noon.\n", name, w.chance.IntN(500))
		default:
			fmt.Fprintf(&b, "-rw-r--r-- 1 dev dev %8d Nov 21 09:%02d internal/%s/%s.go\n", w.chance.IntN(99999), w.chance.IntN(60), name, name)
		}
	}
	return b.String()
}

var someNames = []string{"parse", "render", "queue", "lease", "store", "widgets", "fold", "publish", "budget", "transcript"}
