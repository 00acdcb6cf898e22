package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one event in bytes. The last event of Responses repeats the
// whole answer; a longer one passes unread.
const maxEvent = 16 << 20

// splitter cuts a stream of server-sent events. What it gives, joined, is what it reads.
type splitter struct {
	from    *bufio.Reader
	max     int // bytes of an event that is given whole
	raw     []byte
	within  bool // what follows belongs to an event whose beginning was given
	midline bool // and to a line of it
}

func newSplitter(from io.Reader) splitter {
	return splitter{from: bufio.NewReader(&lines{Reader: from}), max: maxEvent}
}

const byteOrderMark = "\ufeff"

// lines gives a stream without the byte order mark that it may begin with, and each line with \n at its end, where the
// standard of events allows \r and \r\n, too.
type lines struct {
	io.Reader
	mark int  // bytes of the mark that came, all of them where something else did
	cr   bool // the last byte was \r
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	kept := p[:0]
	for _, b := range p[:n] {
		if l.mark < len(byteOrderMark) && b == byteOrderMark[l.mark] {
			l.mark++
			continue
		}
		l.mark = len(byteOrderMark)
		second := l.cr && b == '\n'
		if l.cr = b == '\r'; l.cr {
			b = '\n'
		}
		if !second {
			kept = append(kept, b)
		}
	}
	return len(kept), err
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
