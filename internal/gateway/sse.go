package gateway

import "bytes"

// maxEvent bounds one event in bytes. The last event of Responses repeats the
// whole answer; a longer one passes unread.
const maxEvent = 16 << 20

// event is one event of a stream. Its bytes are valid only while it is handled.
type event struct {
	raw  []byte // as it came, with the empty line that ends it
	data []byte // its data lines, joined; nil in a comment and in a piece of an event that is too long
}

// splitter cuts a stream of server-sent events. What it emits, joined, is what
// it was fed. The zero value is ready; max 0 means maxEvent.
type splitter struct {
	max     int
	buf     []byte
	scanned int  // bytes of buf that were searched for line ends
	line    int  // where in buf the line begins that is not complete yet
	broken  bool // within an event that is too long
	midline bool // the beginning of the unfinished line was emitted already
}

// feed takes the next bytes of the stream.
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
	limit := s.max
	if limit == 0 {
		limit = maxEvent
	}
	if len(s.buf)-start > limit {
		s.broken, s.midline = true, s.midline || len(s.buf) > s.line
		s.emit(s.buf[start:], emit)
		start, s.line = len(s.buf), len(s.buf)
	}
	s.compact(start)
}

// flush emits what is left when the stream ended.
func (s *splitter) flush(emit func(event)) {
	s.emit(s.buf, emit)
	*s = splitter{max: s.max}
}

func (s *splitter) compact(start int) {
	rest := copy(s.buf, s.buf[start:])
	s.buf = s.buf[:rest]
	s.scanned -= start
	s.line -= start
}

func (s *splitter) emit(raw []byte, emit func(event)) {
	if len(raw) == 0 {
		return
	}
	e := event{raw: raw}
	if !s.broken {
		e.data = dataOf(raw)
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
