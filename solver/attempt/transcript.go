package attempt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/solver/thread"
)

// Transcript reads an agent's output with secrets and apparent keys masked.
type Transcript struct {
	file    *os.File
	adapter agent.Adapter
	clean   func(string) string
}

// LogLine is one output entry. Kind is says, calls, fails, notes or ends; plain output has no kind.
type LogLine struct {
	Kind string `json:"kind,omitempty"`
	Text string `json:"text"`
}

// Calls marks tool calls.
const Calls = "calls"

// ErrNoTranscript means that another server ran the attempt or that its output was removed.
var ErrNoTranscript = errors.New("the log is on the server that ran the attempt, or was cleaned away")

// OpenTranscript opens an attempt's output. The caller closes it.
func (e *Env) OpenTranscript(t thread.ID, a thread.Started) (*Transcript, error) {
	c := e.Current()
	b := BackendNamed(c.Backends, a.Backend)
	adapter, err := clis.For(cmp.Or(a.Kind, b.Kind), b.Stream)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(e.attemptDir(t, a.N), transcriptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoTranscript
	}
	if err != nil {
		return nil, err
	}
	return &Transcript{f, adapter, secret.New(e.secrets(c, t, a.N, b)).Redact}, nil
}

func (t *Transcript) Close() error { return t.file.Close() }

func (t *Transcript) Size() (int64, error) { return t.file.Seek(0, io.SeekEnd) }

// Before reads gulp bytes at a time. Lines of longLine bytes are split.
const (
	gulp     = 64 << 10
	longLine = 1 << 20
)

// Before returns at least `most` lines before an offset, or all if there are fewer, and the offset of the first.
func (t *Transcript) Before(end int64, most int) (lines []LogLine, begin int64, err error) {
	var kept []byte // output from begin, not yet split
	begin = end
	for at := end; at > 0 && len(lines) < most; {
		from := max(0, at-gulp)
		part := make([]byte, at-from, at-from+int64(len(kept)))
		if _, err := t.file.ReadAt(part, from); err != nil && err != io.EOF {
			return nil, 0, err
		}
		kept, at = append(part, kept...), from
		first := 0 // start of the first whole line in kept
		if at > 0 {
			first = bytes.IndexByte(kept, '\n') + 1
			if first == 0 && len(kept) < longLine {
				continue
			}
		}
		lines = append(t.read(kept[first:]), lines...)
		kept, begin = kept[:first], at+int64(first)
	}
	return lines, begin, nil
}

// After returns whole lines from an offset, and the start of the first unread line.
func (t *Transcript) After(from int64) (lines []LogLine, end int64, err error) {
	part := make([]byte, longLine)
	n, err := t.file.ReadAt(part, from)
	if err != nil && err != io.EOF {
		return nil, from, err
	}
	whole := bytes.LastIndexByte(part[:n], '\n') + 1
	if whole == 0 && n > t.longest() {
		whole = n
	}
	return t.read(part[:whole]), from + int64(whole), nil
}

// longest is the length at which lines are split. Plain output may contain no line break at all.
func (t *Transcript) longest() int {
	if t.adapter.Parse == nil {
		return gulp
	}
	return longLine - 1
}

// WriteTo writes the output with secrets masked.
func (t *Transcript) WriteTo(w io.Writer) (n int64, err error) {
	var failed error
	err = agent.ReadLines(io.NewSectionReader(t.file, 0, 1<<62), func(line []byte) {
		if failed == nil {
			var m int
			m, failed = io.WriteString(w, t.clean(string(line))+"\n")
			n += int64(m)
		}
	})
	return n, errors.Join(err, failed)
}

func (t *Transcript) read(part []byte) (all []LogLine) {
	for raw := range bytes.Lines(part) {
		raw = bytes.TrimRight(raw, "\r\n")
		if len(raw) > 0 {
			all = t.say(all, raw)
		}
	}
	return all
}

// Lengths shown per line, in characters.
const (
	maxSays  = 2000
	maxCalls = 300
)

func (t *Transcript) say(all []LogLine, raw []byte) []LogLine {
	if t.adapter.Parse == nil {
		return t.add(all, "", plainLine(raw), maxSays)
	}
	known := false
	t.adapter.Parse(raw, func(e agent.Event) {
		known = true
		all = t.event(all, e)
	})
	if known || raw[0] == '{' {
		return all
	}
	return t.add(all, "", plainLine(raw), maxSays)
}

func plainLine(raw []byte) string { return string(raw[:min(len(raw), longLine)]) }

func (t *Transcript) add(all []LogLine, kind, words string, most int) []LogLine {
	words = render.Block(visible(t.clean(words)), most)
	if words == "" {
		return all
	}
	return append(all, LogLine{kind, words})
}

func (t *Transcript) event(all []LogLine, e agent.Event) []LogLine {
	switch e.Kind {
	case agent.Message:
		return t.add(all, "says", e.Text, maxSays)
	case agent.ToolCall:
		return t.call(all, e)
	case agent.Notice:
		return t.add(all, "notes", e.Text, maxCalls)
	case agent.Finished:
		return t.add(all, "ends", cmp.Or(e.Text, "the agent ended"), maxSays)
	case agent.Failed:
		return t.add(all, "ends", "the agent failed: "+e.Text, maxSays)
	}
	return all
}

// call adds a tool call once, and whether it failed.
func (t *Transcript) call(all []LogLine, e agent.Event) []LogLine {
	wrote := e.Authored
	if wrote == "" && len(e.Edits) > 0 {
		wrote = "edit " + e.Edits[0].Path
	}
	call := render.Line(visible(t.clean(legible(wrote))), maxCalls)
	again := e.Done && alreadyAdded(all, call)
	if call != "" && !again {
		all = append(all, LogLine{Calls, call})
	}
	if !e.Done {
		return all
	}
	if e.Failed || e.Rejected {
		return t.add(all, "fails", "the call failed", maxCalls)
	}
	return all
}

// legible shortens a JSON call to its most telling argument.
func legible(call string) string {
	name, input, _ := strings.Cut(call, " ")
	for _, key := range []string{"command", "file_path", "filePath", "path", "pattern", "url"} {
		if about := gjson.Get(input, key); about.Type == gjson.String && gjson.Valid(input) {
			return name + " " + about.Str
		}
	}
	return call
}

// alreadyAdded reports whether a finished call was already added at its start.
func alreadyAdded(all []LogLine, call string) bool {
	return slices.Contains(all[max(0, len(all)-20):], LogLine{Calls, call})
}

// bidi matches marks that change text direction. Users must see them.
var bidi = regexp.MustCompile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

func visible(s string) string {
	return bidi.ReplaceAllStringFunc(s, func(mark string) string { return fmt.Sprintf("[U+%04X]", []rune(mark)[0]) })
}
