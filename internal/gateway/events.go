package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent limits an event in bytes. The Responses API repeats the whole answer in its last event. Longer events pass
// unread.
const maxEvent = 16 << 20

// splitter cuts a stream of server-sent events without changing its bytes.
type splitter struct {
	from    *bufio.Reader
	max     int // largest event that is returned whole
	raw     []byte
	within  bool // the event's beginning was returned
	midline bool // the line's beginning was read
}

func newSplitter(from io.Reader) splitter {
	return splitter{from: bufio.NewReader(&lines{Reader: from}), max: maxEvent}
}

const byteOrderMark = "\ufeff"

// lines drops a byte order mark and converts \r and \r\n to \n.
type lines struct {
	io.Reader
	mark int  // bytes read of the mark
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
		l.cr = b == '\r'
		if l.cr {
			b = '\n'
		}
		if !second {
			kept = append(kept, b)
		}
	}
	return len(kept), err
}

// next returns an event's bytes and its joined data lines, or a piece of a long event without data. Both are valid
// until the next call.
func (s *splitter) next() (raw, data []byte, err error) {
	s.raw = s.raw[:0]
	begun, ended := !s.within, false
	for !ended && len(s.raw) <= s.max {
		ended, err = s.line()
		if err != nil {
			break
		}
	}
	s.within = !ended
	whole := ended || err != nil
	if begun && whole {
		data = dataOf(s.raw)
	}
	return s.raw, data, err
}

// line reads a line, or as much as the buffer holds. A blank line ends the event.
func (s *splitter) line() (blank bool, err error) {
	line, err := s.from.ReadSlice('\n')
	s.raw = append(s.raw, line...)
	blank = !s.midline && len(bytes.TrimRight(line, "\r\n")) == 0
	s.midline = errors.Is(err, bufio.ErrBufferFull)
	if s.midline {
		return false, nil
	}
	return blank && err == nil, err
}

// dataOf joins an event's data lines. A single line is not copied.
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
