package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func readRecordings(files []string, cli string, open Opener, severity policy.SeverityLimits) (*recording, error) {
	rec := &recording{severity: severity}
	for i, file := range files {
		err := readFile(file, cli, open, rec)
		if err = cmp.Or(err, rec.err); err != nil {
			return nil, fmt.Errorf("replay %s: %w", file, err)
		}
		if rec.trail && i > 0 {
			return nil, errors.New("replay: a trail cannot be combined with other files")
		}
	}
	if rec.attempts == 0 {
		rec.note("No attempt begins in the recording.")
	}
	return rec, nil
}

// Opener opens a file named on a command line; - is standard input.
type Opener func(name string) (io.ReadCloser, error)

func readFile(file, cli string, open Opener, rec *recording) error {
	in, err := open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	b, start, err := Open(in)
	if err != nil {
		return err
	}
	if cli == "" {
		if isTrail(start) {
			rec.trail = true
			return readTrail(b, rec)
		}
		if at, ok := isWrapper(start); ok {
			return readWrapper(b, at, rec)
		}
		if cli = clis.Detect(start); cli == config.Plain {
			return errors.New("it is not a trail, a wrapper's log or a known agent's transcript; --cli plain reads any text as one attempt")
		}
	}
	return readTranscript(b, cli, rec)
}

// NotUnderstood says why input is not a recording.
type NotUnderstood string

func (e NotUnderstood) Error() string { return string(e) }

// Open unpacks a recording and returns its beginning, which identifies its kind. Empty or binary input is
// NotUnderstood.
func Open(in io.Reader) (b *bufio.Reader, start []byte, err error) {
	b = bufio.NewReaderSize(in, sniffed)
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return b, nil, NotUnderstood("it begins like gzip but cannot be unpacked: " + err.Error())
		}
		b = bufio.NewReaderSize(z, sniffed)
	}
	if mark, _ := b.Peek(3); string(mark) == "\uFEFF" { // UTF-8 needs no byte order mark
		_, _ = b.Discard(len(mark))
	}
	start, err = b.Peek(sniffed)
	whole := err == nil || err == io.EOF
	if !whole && !errors.Is(err, bufio.ErrBufferFull) {
		return b, start, fmt.Errorf("it cannot be read to its end: %w", err)
	}
	switch {
	case len(bytes.TrimSpace(start)) == 0:
		return b, start, NotUnderstood("it is empty")
	case bytes.IndexByte(start, 0) >= 0:
		return b, start, NotUnderstood("it is not text: it contains NUL bytes, like binary files and UTF-16; convert it to UTF-8")
	}
	return b, start, nil
}

// Unwrap takes the agent's output from a wrapper's log, one JSON object per line. Other input is unchanged.
func Unwrap(b *bufio.Reader, start []byte) io.Reader {
	if _, ok := isWrapper(start); !ok {
		return b
	}
	out, in := io.Pipe()
	go func() {
		var o objects
		write := func(object []byte) {
			fmt.Fprintf(in, "%s\n", bytes.ReplaceAll(object, []byte("\n"), []byte(" "))) // cannot fail: the reader reads to the end
		}
		in.CloseWithError(eachLine(b, func(line []byte) {
			_, _, text, headed := lineHead(line)
			if headed && bytes.HasPrefix(text, []byte(`{"type":`)) {
				o.drop() // the rest of an open object is missing
			}
			if !o.piece(text, write) {
				write(text)
			}
		}))
	}()
	return out
}

// sniffed limits the start of a file that identifies its kind, in bytes.
const sniffed = 256 << 10

// isTrail recognises a trail by the beginning of its first event, which may have a long description.
func isTrail(start []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimSpace(start), []byte("\n"))
	event := gjson.ParseBytes(line)
	if !event.IsObject() {
		return false
	}
	for _, name := range []string{"seq", "kind", "at"} {
		if !event.Get(name).Exists() {
			return false
		}
	}
	return true
}

// isWrapper returns the time of the first line with a wrapper's head.
func isWrapper(start []byte) (time.Time, bool) {
	for line := range bytes.Lines(start) {
		if at, _, _, ok := lineHead(line); ok {
			return at, true
		}
	}
	return time.Time{}, false
}

func eachLine(r io.Reader, visit func([]byte)) error {
	return agent.ReadLines(r, func(line []byte) {
		if len(line) > 0 {
			visit(line)
		}
	})
}

// maxEvent limits a trail's event in bytes; events must be complete.
const maxEvent = 64 << 20

// readTrail reads a thread's exported log, one event per line. Acts and questions do not affect decisions.
func readTrail(r io.Reader, rec *recording) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	n, seq := 1, int64(0)
	for ; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var e thread.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("line %d: not an event of a trail: %w", n, err)
		}
		if e.Seq <= seq {
			return fmt.Errorf("line %d: event %d comes after event %d: give one thread's log, in order", n, e.Seq, seq)
		}
		seq = e.Seq
		switch e.Kind {
		case thread.KindActStarted, thread.KindActDone, thread.KindQuestion, thread.KindAuthored, thread.KindPublished:
			continue
		case thread.KindAttemptStarted:
			rec.attempts++
		}
		rec.entries = append(rec.entries, entry{Event: e})
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d MiB", n, maxEvent>>20)
	}
	return lines.Err()
}

func readTranscript(r io.Reader, cli string, rec *recording) error {
	var started, ended time.Time
	err := eachLine(r, func(line []byte) {
		if at := stamp(line); !at.IsZero() {
			if started.IsZero() {
				started = at
			}
			ended = at
		}
		rec.line(line)
	})
	report := rec.inspect(cli, ended)
	rec.note(estimated)
	if started.IsZero() {
		rec.note("The transcripts contain no times.")
	}
	// A transcript does not say why the run started. A user's request is the weakest assumption.
	rec.remark(started, false, "a transcript of "+cli)
	rec.attempt("", started, ended, report)
	return err
}
