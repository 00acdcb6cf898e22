package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// maxLine limits the parsed part of a line. The longest line in the recorded runs has 335 kB.
const maxLine = 1 << 20

// ReadLines calls visit for each line of r without its line ending, truncated to maxLine bytes. The slice is valid only
// during the call. Memory does not grow with the input.
func ReadLines(r io.Reader, visit func(line []byte)) error {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		if len(line) > 0 {
			visit(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")))
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// excerpt writes the beginning of its input and keeps the end.
type excerpt struct {
	to    io.Writer // gets the beginning
	room  int64     // remaining bytes of the beginning
	tail  render.End
	after int64  // bytes after the beginning
	err   error  // first write error
	note  string // why bytes are missing; follows their number
}

// Write never fails: a full disk must not stop the reading of the stream. close returns the error.
func (e *excerpt) Write(p []byte) (int, error) {
	n := len(p)
	if take := min(int64(n), e.room); take > 0 {
		if e.err == nil {
			_, e.err = e.to.Write(p[:take])
		}
		e.room -= take
		p = p[take:]
	}
	e.after += int64(len(p))
	e.tail.Write(p)
	return n, nil
}

// close writes the end, after a note if bytes are missing. It returns the first error.
func (e *excerpt) close() error {
	end := e.tail.String()
	if missing := e.after - int64(len(end)); missing > 0 {
		end = fmt.Sprintf("\n[pawl: %d bytes are left out here%s]\n", missing, e.note) + end
	}
	if e.err == nil {
		_, e.err = io.WriteString(e.to, end)
	}
	return e.err
}

type headTail struct {
	excerpt
	text strings.Builder
}

func newHeadTail(head int64, tail int) *headTail {
	k := &headTail{excerpt: excerpt{room: head, tail: render.End{Max: tail}}}
	k.to = &k.text
	return k
}

func (k *headTail) String() string {
	_ = k.close() // memory accepts everything
	return k.text.String()
}

// transcriptTail limits the kept end of a long transcript, in bytes. The end has the final event.
const transcriptTail = 256 << 10

// newTranscript copies a stream to w, without the middle if it exceeds limit bytes (0: no limit). A nil w discards.
func newTranscript(w io.Writer, limit int64) *excerpt {
	if w == nil {
		w = io.Discard
	}
	limit = cmp.Or(limit, math.MaxInt64)
	tail := min(transcriptTail, limit/2)
	return &excerpt{to: w, room: limit - tail, tail: render.End{Max: int(tail)}, note: fmt.Sprintf("; the limit of a transcript is %d bytes", limit)}
}

// InspectOptions is a recorded run's context.
type InspectOptions struct {
	Dir    string         // makes file names relative; empty keeps them
	Exit   *Exit          // nil if unknown
	Stderr string         // standard error
	OnCall func(Call)     // for each ended call; may be nil
	Now    time.Time      // the run's end, for relative times
	Zone   *time.Location // zone of clock times without one; nil means UTC
}

// Inspect parses a recorded transcript like a running agent's output. The error is never the agent's.
func Inspect(r io.Reader, a Adapter, o InspectOptions) (Report, error) {
	read := newReading(a, o.Dir)
	circles := policy.NewCircles()
	read.tally.onCall = func(d Call) {
		d.Count(circles)
		if o.OnCall != nil {
			o.OnCall(d)
		}
	}
	err := read.stdout(r)
	if err != nil {
		err = fmt.Errorf("read the transcript: %w", err)
	}
	err = errors.Join(err, read.errors(strings.NewReader(o.Stderr)))
	report := read.conclude(o.Exit, stop{}, o.Now, o.Zone)
	report.Edits = circles.Edits()
	return report, err
}

type reading struct {
	tally   *tally
	onEvent func(Event)
	onPrint func(line string) // may be nil
	alive   func()            // called for each sign of life
	tellTry func(Try)         // called for each failed request
	plain   *headTail         // output of a program without structure
	stderr  *headTail
	bytes   int64
}

const stderrHalf = 32 << 10

func newReading(a Adapter, dir string) *reading {
	return &reading{
		tally: newTally(a, dir), onEvent: func(Event) {}, alive: func() {}, tellTry: func(Try) {},
		plain: newHeadTail(plainHead, plainTail), stderr: newHeadTail(stderrHalf, stderrHalf),
	}
}

type tap func(p []byte)

func (t tap) Write(p []byte) (int, error) {
	t(p)
	return len(p), nil
}

// maxPrinted limits the part of a line that is passed on at once, in bytes.
const maxPrinted = 4 << 10

// lines passes its input on line by line. If to is nil, it discards the input.
type lines struct {
	to   func(line string)
	rest []byte // an unfinished line
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for l.to != nil && len(p) > 0 {
		room := maxPrinted - len(l.rest)
		part, _, ended := bytes.Cut(p[:min(len(p), room)], []byte{'\n'})
		l.rest = append(l.rest, part...)
		p = p[len(part):]
		if ended {
			p = p[1:]
		}
		if ended || len(l.rest) == maxPrinted {
			l.end()
		}
	}
	return n, nil
}

func (l *lines) end() {
	if len(l.rest) > 0 {
		l.to(string(l.rest))
		l.rest = l.rest[:0]
	}
}

func (r *reading) stdout(in io.Reader) error {
	in = io.TeeReader(in, tap(func(p []byte) { r.bytes += int64(len(p)) }))
	if r.tally.cli.Parse == nil {
		printed := &lines{to: r.onPrint}
		defer printed.end()
		_, err := io.Copy(io.MultiWriter(r.plain, tap(func([]byte) { r.alive() }), printed), in)
		return err
	}
	var last Kind
	emit := func(e Event) {
		last = e.Kind
		r.tally.add(e)
		r.onEvent(e)
	}
	return ReadLines(in, func(line []byte) {
		last = 0
		r.tally.clock.line(line)
		r.tally.cli.Parse(line, emit)
		if last != Notice {
			r.alive()
		}
	})
}

// errors reads standard error to its end. For structured streams it is no sign of life, since CLIs log retries there.
func (r *reading) errors(in io.Reader) error {
	var to io.Writer = r.stderr
	if r.tally.cli.Parse == nil {
		printed := &lines{to: r.onPrint}
		defer printed.end()
		to = io.MultiWriter(to, tap(func([]byte) { r.alive() }), printed)
	}
	if r.tally.cli.ReadTry != nil {
		tries := &tryReader{read: r.tally.cli.ReadTry, onTry: func(n Try) {
			r.tally.tried(n)
			r.tellTry(n)
		}}
		to = io.MultiWriter(to, tries)
		defer tries.Write([]byte("\n")) // the last line may lack its end
	}
	_, err := io.Copy(to, in)
	return err
}

func (r *reading) conclude(exit *Exit, why stop, now time.Time, zone *time.Location) Report {
	rep := &r.tally.rep
	if exit != nil {
		rep.Exit, rep.ExitKnown = *exit, true
	}
	rep.Stderr, rep.output, rep.OutputBytes = r.stderr.String(), r.plain.String(), r.bytes
	return r.tally.conclude(why, now, zone)
}
