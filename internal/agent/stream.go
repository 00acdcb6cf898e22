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

// maxLine is how much of a line is parsed. The longest line in the recorded runs has 335 kB; the first bytes
// decide.
const maxLine = 1 << 20

// ReadLines calls visit once per line of r, without the line's end, cut at maxLine. The slice is valid during the
// call. Memory does not grow with the input.
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

// excerpt passes the beginning of its input on and keeps the end.
type excerpt struct {
	to    io.Writer // gets the beginning
	room  int64     // of the beginning, in bytes
	tail  render.End
	after int64  // bytes that came after the beginning
	err   error  // of writing to it
	note  string // why bytes are missing, after their number
}

// Write never fails: a full disk must not stop the reading. close returns the error.
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

// close writes the end, after a note if bytes are missing; its error is the first.
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

// String ends the excerpt and returns it.
func (k *headTail) String() string {
	_ = k.close() // memory takes everything
	return k.text.String()
}

// transcriptTail limits the kept end of an overlong transcript: it has the final event.
const transcriptTail = 256 << 10

// newTranscript copies a stream to w as it comes, without the middle beyond a limit in bytes (0: none); nil keeps
// nothing.
func newTranscript(w io.Writer, limit int64) *excerpt {
	if w == nil {
		w = io.Discard
	}
	limit = cmp.Or(limit, math.MaxInt64)
	tail := min(transcriptTail, limit/2)
	return &excerpt{to: w, room: limit - tail, tail: render.End{Max: int(tail)}, note: fmt.Sprintf("; the limit of a transcript is %d bytes", limit)}
}

// InspectOptions is the context of a recorded run.
type InspectOptions struct {
	Dir    string         // the checkout, to make file names relative; empty keeps them
	Exit   *Exit          // nil if unknown
	Stderr string         // standard error
	OnCall func(Call)     // called for each ended call; may be nil
	Now    time.Time      // the run's end, for relative times
	Zone   *time.Location // the zone of clock times without one; nil means UTC
}

// Inspect reads a recorded transcript with the running agents' parser. Its error is of reading r, never the
// agent's.
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
	onPrint func(line string) // nil for nobody
	alive   func()            // told of each sign of life
	tellTry func(Try)         // told of each request that failed
	plain   *headTail         // what a program without structure printed
	stderr  *headTail
	bytes   int64
}

// stderrHalf limits the head and the tail of standard error.
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

// maxPrinted is how much of a line is passed on at once, in bytes.
const maxPrinted = 4 << 10

// lines passes its input on line by line; with nil it does nothing.
type lines struct {
	to   func(line string)
	rest []byte // of a line that has not ended
}

// Write never fails.
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

// errors reads standard error to its end. Only for plain agents it is a sign of life: others log their retries
// there.
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
