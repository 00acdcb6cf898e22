package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// spool keeps the output of one run until its end is known: a limit that resets
// at nine o'clock can only be read by then. It is a file without a name, so
// memory does not grow with the output; runs use it one after another.
type spool struct {
	file *os.File
	w    *bufio.Writer
	size int64
	head []byte // enough to detect the CLI
}

// spoolHead is how much of the output the CLI is detected from.
const spoolHead = 64 << 10

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "pawl-replay-")
	if err != nil {
		return nil, fmt.Errorf("keep a transcript while it is read: %w", err)
	}
	// The file goes when it is closed, also when the process is killed.
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return &spool{file: f, w: bufio.NewWriterSize(f, spoolHead)}, nil
}

func (s *spool) close() error { return s.file.Close() }

// line appends one line.
func (s *spool) line(b []byte) error {
	if len(s.head) < spoolHead {
		s.head = append(append(s.head, b[:min(len(b), spoolHead-len(s.head))]...), '\n')
	}
	s.size += int64(len(b)) + 1
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.w.WriteByte('\n')
}

// inspect reads what was kept as one transcript, and whether its edits went in
// circles, and empties the spool. The CLI is detected where it is not given.
func (s *spool) inspect(cli string, now time.Time) (agent.Report, policy.Edits, error) {
	if cli == "" {
		cli = agent.Detect(s.head)
	}
	a, err := agent.ForStream(cli)
	if err != nil {
		return agent.Report{}, policy.Edits{}, err
	}
	if err := s.w.Flush(); err != nil {
		return agent.Report{}, policy.Edits{}, err
	}
	circles := policy.NewCircles()
	r, err := agent.Inspect(io.NewSectionReader(s.file, 0, s.size), a, agent.InspectOptions{Now: now,
		OnDeed: func(d agent.Deed) { solver.Observe(circles, d) }})
	if err != nil {
		return r, policy.Edits{}, err
	}
	r.CLI = cli
	s.head, s.size = s.head[:0], 0
	if err := s.file.Truncate(0); err != nil {
		return r, policy.Edits{}, err
	}
	_, err = s.file.Seek(0, io.SeekStart)
	return r, circles.Edits(), err
}

// stamp is the time that a line of a stream carries, RFC 3339 or unix
// milliseconds; zero where it has none. Quoted text has no such key: its quotes
// are escaped.
func stamp(line []byte) time.Time {
	_, rest, ok := bytes.Cut(line, []byte(`"timestamp":`))
	if !ok {
		return time.Time{}
	}
	rest = bytes.TrimLeft(rest, " ")
	if text, ok := bytes.CutPrefix(rest, []byte(`"`)); ok {
		text, _, _ = bytes.Cut(text, []byte(`"`))
		t, err := time.Parse(time.RFC3339, string(text))
		if err != nil {
			return time.Time{}
		}
		return t.UTC()
	}
	ms := int64(0)
	for i, c := range rest {
		// Fourteen digits are the year 2286 and beyond.
		if c < '0' || c > '9' || i == 14 {
			break
		}
		ms = ms*10 + int64(c-'0')
	}
	// Eleven digits or fewer are no milliseconds of a time with agents in it.
	if ms < 1e12 || ms >= 1e14 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
