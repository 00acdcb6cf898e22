package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

// lineReader takes a recording line by line.
type lineReader interface {
	line([]byte) error
	close() error
}

// readRecordings reads all files in order as one recording.
func readRecordings(files []string, cli string, stdin io.Reader, severity policy.SeverityLimits) (_ recording, err error) {
	s, err := newSpool()
	if err != nil {
		return recording{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	rec := &recorder{severity: severity}
	for i, file := range files {
		if err := readFile(file, cli, stdin, rec, s); err != nil {
			return recording{}, fmt.Errorf("replay %s: %w", file, err)
		}
		if rec.trails > 0 && i > 0 {
			return recording{}, errors.New("replay: a trail is a recording of its own: give it alone")
		}
	}
	if rec.attempts == 0 {
		rec.note("No attempt begins in the recording.")
	}
	return rec.recording, nil
}

func readFile(file, cli string, stdin io.Reader, rec *recorder, s *spool) error {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	b := bufio.NewReaderSize(in, sniffed)
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		b = bufio.NewReaderSize(z, sniffed)
	}
	r, err := readerFor(b, cli, rec, s)
	if err != nil {
		return err
	}
	_, whole := r.(*trailReader)
	if err := eachLine(b, whole, r.line); err != nil {
		return err
	}
	return r.close()
}

// sniffed is how much of a file tells what it is.
const sniffed = 256 << 10

// readerFor tells what a file is by its beginning.
func readerFor(b *bufio.Reader, cli string, rec *recorder, s *spool) (lineReader, error) {
	start, err := b.Peek(sniffed)
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	if len(bytes.TrimSpace(start)) == 0 {
		return nil, errors.New("it is empty")
	}
	if cli == "" {
		if isTrail(start) {
			rec.trails++
			return &trailReader{rec: rec}, nil
		}
		if firstHas(start, "t_start", "turn_failed") {
			return &cyclesReader{rec: rec, spool: s}, rec.remark(time.Time{}, false, "the recording begins")
		}
		if at, ok := isWrapper(start); ok {
			w := &wrapper{rec: rec, spool: s}
			return w, rec.remark(at, false, "the wrapper was started")
		}
		if cli = clis.Detect(start); cli == agent.StreamPlain {
			return nil, errors.New("it is no trail, no wrapper's log and no transcript of codex, claude, gemini or opencode; --cli plain reads any text as one attempt")
		}
	}
	return &transcript{cli: cli, rec: rec, spool: s}, nil
}

// firstHas reports whether the first line that is not blank is an object with all
// of the keys.
func firstHas(start []byte, keys ...string) bool {
	line, _, _ := bytes.Cut(bytes.TrimSpace(start), []byte("\n"))
	return gjson.ValidBytes(line) && !slices.ContainsFunc(keys, func(k string) bool { return !gjson.GetBytes(line, k).Exists() })
}

// isTrail knows a trail by its first event, of which the beginning is enough: it
// may hold a long description.
func isTrail(start []byte) bool {
	return firstHas(start, "seq", "kind", "at") ||
		bytes.HasPrefix(start, []byte(`{"seq":`)) && bytes.Contains(start[:min(len(start), 100)], []byte(`"kind":`))
}

// isWrapper looks for a line with a wrapper's head and returns the time of the
// first.
func isWrapper(start []byte) (time.Time, bool) {
	for line := range bytes.Lines(start) {
		if at, _, _, ok := lineHead(line); ok {
			return at, true
		}
	}
	return time.Time{}, false
}

// maxLogLine is how much of a line of a log is looked at, and maxEvent the
// longest event of a trail, of which nothing may be missing.
const (
	maxLogLine = 1 << 20
	maxEvent   = 64 << 20
)

// eachLine calls visit with each line that is not blank, without its end. Where
// lines must be whole, one that is too long is an error; elsewhere the rest is
// passed over.
func eachLine(b *bufio.Reader, whole bool, visit func([]byte) error) error {
	var line []byte
	for n := 1; ; n++ {
		line = line[:0]
		var err error
		for {
			var part []byte
			part, err = b.ReadSlice('\n')
			switch {
			case whole && len(line)+len(part) > maxEvent:
				return fmt.Errorf("line %d is longer than %d MiB", n, maxEvent>>20)
			case whole || len(line) < maxLogLine:
				line = append(line, part...)
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if err != nil && err != io.EOF {
			return err
		}
		if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 {
			if err := visit(text); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// transcript reads one file as one attempt.
type transcript struct {
	cli            string
	rec            *recorder
	spool          *spool
	started, ended time.Time
}

func (t *transcript) line(line []byte) error {
	if at := stamp(line); !at.IsZero() {
		if t.started.IsZero() {
			t.started = at
		}
		t.ended = at
	}
	return t.spool.line(line)
}

func (t *transcript) close() error {
	report, err := t.spool.inspect(t.cli, t.ended)
	if err != nil {
		return err
	}
	t.rec.note(estimated)
	if t.started.IsZero() {
		t.rec.note("The transcripts tell no times.")
	}
	// A transcript does not say why it was started. That somebody asked for it
	// claims the least: policy then stops only where it would stop a person too.
	if err := t.rec.remark(t.started, false, strings.TrimSpace("a transcript of "+t.cli)); err != nil {
		return err
	}
	return t.rec.attempt(execution{started: t.started, ended: t.ended, report: report})
}
