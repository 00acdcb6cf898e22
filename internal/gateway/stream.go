package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
)

// stream is one streamed answer. Reading gives its events as they came, each whole, without those that only the
// gateway asked for; closing books it.
type stream struct {
	*call
	from   io.ReadCloser
	read   reader // nil where nothing is to be read
	split  splitter
	out    bytes.Buffer // what was read and not given yet
	err    error        // how it ended
	said   answer
	begins func() // called when the model is seen at work, and does something once
	book   func(*answer)
}

func (c *call) newStream(resp *http.Response) *stream {
	return &stream{
		call: c, from: resp.Body, read: readers[c.route.kind],
		split:  splitter{from: bufio.NewReaderSize(resp.Body, 32<<10), max: maxEvent},
		begins: sync.OnceFunc(c.answers), book: c.account,
	}
}

// Read gives the next bytes. The error is io.EOF at the end of the stream,
// io.ErrUnexpectedEOF where it comes before that of the answer.
func (s *stream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 && s.err == nil {
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

func (s *stream) next() {
	raw, data, err := s.split.next()
	s.take(raw, string(data))
	if s.err = err; errors.Is(err, io.EOF) && s.said.cut() {
		s.err = io.ErrUnexpectedEOF
	}
	s.said.whole = errors.Is(s.err, io.EOF)
}

func (s *stream) take(raw []byte, data string) {
	if data == "[DONE]" {
		s.said.over = s.said.over || s.route.kind == chat
	} else if e, ok := parsed(data); ok && s.read != nil {
		s.read(e, &s.said)
		if s.said.begun() && s.said.failure == nil {
			s.begins()
		}
		if s.req.usageAdded && onlyUsage(e) {
			return
		}
	}
	s.out.Write(raw)
}

// maxEvent bounds one event in bytes. The last event of Responses repeats the
// whole answer; a longer one passes unread.
const maxEvent = 16 << 20

// splitter cuts a stream of server-sent events. What it gives, joined, is what it
// reads.
type splitter struct {
	from    *bufio.Reader
	max     int // bytes of an event that is given whole
	raw     []byte
	within  bool // what follows belongs to an event whose beginning was given
	midline bool // and to a line of it
}

// next gives one event as it came, with its end, and its data lines, joined; of one that is too long a piece
// without them. Both are valid until the next call.
func (s *splitter) next() (raw, data []byte, err error) {
	s.raw = s.raw[:0]
	whole, ended := !s.within, false
	for !ended && err == nil && len(s.raw) <= s.max {
		var line []byte
		line, err = s.from.ReadSlice('\n')
		s.raw = append(s.raw, line...)
		ended = !s.midline && len(bytes.TrimRight(line, "\r\n")) == 0 && err == nil
		if s.midline = errors.Is(err, bufio.ErrBufferFull); s.midline {
			err = nil
		}
	}
	s.within = !ended
	if !whole || !ended && err == nil {
		return s.raw, nil, err
	}
	return s.raw, dataOf(s.raw), err
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
