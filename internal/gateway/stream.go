package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
)

// stream is one streamed answer of the provider. Reading gives its events as
// they came, each one whole, without those that only the gateway asked for;
// closing books it.
type stream struct {
	*call
	from  io.ReadCloser
	read  reader // nil where nothing is to be read
	split splitter
	buf   []byte
	queue []event      // what came and was not read yet
	out   bytes.Buffer // what was read and not given yet
	end   error        // how it ended, with a queue before it
	err   error        // the same, when all was read
	said  answer
	// begins is called when the model is seen at work, and does something once.
	begins func()
	book   func(*answer)
}

func (c *call) newStream(resp *http.Response) *stream {
	return &stream{
		call: c, from: resp.Body, read: readers[c.route.kind],
		split: splitter{max: maxEvent}, buf: make([]byte, 32<<10), begins: sync.OnceFunc(c.answers), book: c.account,
	}
}

// Read gives the next bytes. The error is io.EOF at the end of the stream,
// io.ErrUnexpectedEOF where it comes before that of the answer.
func (s *stream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 && s.err == nil || len(s.queue) > 0 {
		s.next()
	}
	if s.out.Len() == 0 {
		return 0, s.err
	}
	return s.out.Read(p)
}

func (s *stream) Close() error {
	if s.read != nil {
		s.book(&s.said)
	}
	return s.from.Close()
}

// next reads one event, which it waits for.
func (s *stream) next() {
	for len(s.queue) == 0 && s.end == nil {
		n, err := s.from.Read(s.buf)
		s.split.feed(s.buf[:n], s.push)
		if err != nil {
			s.split.flush(s.push)
			s.end = err
		}
	}
	if len(s.queue) > 0 {
		s.take(s.queue[0])
		s.queue = s.queue[1:]
		return
	}
	if s.err = s.end; errors.Is(s.err, io.EOF) && s.said.cut() {
		s.err = io.ErrUnexpectedEOF
	}
}

func (s *stream) push(e event) { s.queue = append(s.queue, e) }

func (s *stream) take(e event) {
	if string(e.data) == "[DONE]" {
		s.said.over = s.said.over || s.route.kind == chat
	} else if data, ok := parsed(string(e.data)); ok && s.read != nil {
		s.read(data, &s.said)
		if s.said.begun() && s.said.failure == nil {
			s.begins()
		}
		if s.req.usageAdded && onlyUsage(data) {
			return
		}
	}
	s.out.Write(e.raw)
}

// maxEvent bounds one event in bytes. The last event of Responses repeats the
// whole answer; a longer one passes unread.
const maxEvent = 16 << 20

// event is one event of a stream.
type event struct {
	raw  []byte // as it came, with the empty line that ends it
	data []byte // its data lines, joined; nil in a comment and in a piece of an event that is too long
}

// splitter cuts a stream of server-sent events. What it emits, joined, is what
// it was fed.
type splitter struct {
	max     int // bytes of an event that is given whole
	buf     []byte
	scanned int  // bytes of buf that were searched for line ends
	line    int  // where in buf the line begins that is not complete yet
	broken  bool // within an event that is too long
	midline bool // the beginning of the unfinished line was emitted already
}

func (s *splitter) feed(p []byte, emit func(event)) {
	s.buf = append(s.buf, p...)
	start := 0
	for {
		at := bytes.IndexByte(s.buf[s.scanned:], '\n')
		if at < 0 {
			s.scanned = len(s.buf)
			break
		}
		end := s.scanned + at + 1
		line := s.buf[s.line:end]
		s.scanned, s.line = end, end
		empty := !s.midline && (len(line) == 1 || len(line) == 2 && line[0] == '\r')
		s.midline = false
		if empty {
			s.emit(s.buf[start:end], emit)
			s.broken = false
			start = end
		}
	}
	if len(s.buf)-start > s.max {
		s.broken, s.midline = true, s.midline || len(s.buf) > s.line
		s.emit(s.buf[start:], emit)
		start, s.line = len(s.buf), len(s.buf)
	}
	s.buf = append(s.buf[:0], s.buf[start:]...)
	s.scanned -= start
	s.line -= start
}

// flush emits what is left when the stream ended.
func (s *splitter) flush(emit func(event)) {
	s.emit(s.buf, emit)
	*s = splitter{max: s.max}
}

func (s *splitter) emit(raw []byte, emit func(event)) {
	if len(raw) == 0 {
		return
	}
	e := event{raw: bytes.Clone(raw)}
	if !s.broken {
		e.data = dataOf(e.raw)
	}
	emit(e)
}

// dataOf joins the data lines of an event. One line, the usual case, is not copied.
func dataOf(raw []byte) []byte {
	var data []byte
	for line := range bytes.Lines(raw) {
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		value = bytes.TrimPrefix(bytes.TrimRight(value, "\r\n"), []byte(" "))
		if data == nil {
			data = value[:len(value):len(value)]
			continue
		}
		data = append(append(data, '\n'), value...)
	}
	return data
}
