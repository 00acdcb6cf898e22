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

// Transcript is an agent's output so far, for people: secrets and what looks like a key are masked.
type Transcript struct {
	file    *os.File
	adapter agent.Adapter
	clean   func(string) string
}

// LogLine is one entry of an agent's output. Kind is says, calls, fails, notes or ends, and empty for plain output.
type LogLine struct {
	Kind string `json:"kind,omitempty"`
	Text string `json:"text"`
}

// Calls is the kind of a tool call.
const Calls = "calls"

// ErrNoTranscript means that this server has no output of an attempt: another one ran it, or it was cleaned.
var ErrNoTranscript = errors.New("the log is on the server that ran the attempt, or was cleaned away")

// OpenTranscript opens the output of an attempt's agent. The caller closes it.
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

// How much of a transcript is read for one answer, and the longest line that is read.
const (
	gulp     = 64 << 10
	longLine = 1 << 20
)

// Before are the last lines before an offset, `most` of them or a few more, and the start of the first one. It
// reads a bounded part of the transcript.
func (t *Transcript) Before(end int64, most int) (lines []LogLine, begin int64, err error) {
	var kept []byte // from begin on, not split into lines yet
	begin = end
	for at := end; at > 0 && len(lines) < most; {
		from := max(0, at-gulp)
		part := make([]byte, at-from, at-from+int64(len(kept)))
		if _, err := t.file.ReadAt(part, from); err != nil && err != io.EOF {
			return nil, 0, err
		}
		kept, at = append(part, kept...), from
		first := 0 // the start of the first whole line in kept
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

// After are the whole lines from an offset on, and the start of the first unread line: it is incomplete, or there
// is too much.
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

// longest is the length from which a line is shown without its end: plain output may never end one.
func (t *Transcript) longest() int {
	if t.adapter.Parse == nil {
		return gulp
	}
	return longLine - 1
}

// WriteTo writes the whole output with secrets masked.
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

// read turns lines of output into entries.
func (t *Transcript) read(part []byte) (all []LogLine) {
	for raw := range bytes.Lines(part) {
		raw = bytes.TrimRight(raw, "\r\n")
		if len(raw) > 0 {
			all = t.say(all, raw)
		}
	}
	return all
}

// Lengths of the shown part of a line, in characters.
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

// add adds an entry, unless its text is empty.
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
	again := e.Done && told(all, call)
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

// legible shortens a call of a name and JSON to the argument that says what it is about.
func legible(call string) string {
	name, input, _ := strings.Cut(call, " ")
	for _, key := range []string{"command", "file_path", "filePath", "path", "pattern", "url"} {
		if about := gjson.Get(input, key); about.Type == gjson.String && gjson.Valid(input) {
			return name + " " + about.Str
		}
	}
	return call
}

// told reports whether a finished call was added at its start, as some CLIs report it.
func told(all []LogLine, call string) bool {
	return slices.Contains(all[max(0, len(all)-20):], LogLine{Calls, call})
}

// bidi are the marks that change the direction of text. Users must see them.
var bidi = regexp.MustCompile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

func visible(s string) string {
	return bidi.ReplaceAllStringFunc(s, func(mark string) string { return fmt.Sprintf("[U+%04X]", []rune(mark)[0]) })
}
