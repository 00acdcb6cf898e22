package agent

import "fmt"

// headTail keeps the beginning and the end of what is written to it. The zero
// value keeps nothing.
type headTail struct {
	headMax, tailMax int
	head, tail       []byte
	next             int   // where the next byte of a full tail goes
	total            int64 // bytes written
}

// Write never fails.
func (h *headTail) Write(p []byte) (int, error) {
	n := len(p)
	h.total += int64(n)
	if room := h.headMax - len(h.head); room > 0 {
		take := min(room, len(p))
		h.head = append(h.head, p[:take]...)
		p = p[take:]
	}
	if len(p) > h.tailMax {
		p = p[len(p)-h.tailMax:]
	}
	if grow := min(h.tailMax-len(h.tail), len(p)); grow > 0 {
		h.tail = append(h.tail, p[:grow]...)
		p = p[grow:]
	}
	for len(p) > 0 {
		took := copy(h.tail[h.next:], p)
		h.next = (h.next + took) % len(h.tail)
		p = p[took:]
	}
	return n, nil
}

// missing is how many bytes between head and tail were let go.
func (h *headTail) missing() int64 { return h.total - int64(len(h.head)) - int64(len(h.tail)) }

// end returns the tail in order.
func (h *headTail) end() []byte {
	return append(append(make([]byte, 0, len(h.tail)), h.tail[h.next:]...), h.tail[:h.next]...)
}

// String joins head and tail, with a note where bytes are missing.
func (h *headTail) String() string {
	if missing := h.missing(); missing > 0 {
		return string(h.head) + leftOut(missing) + string(h.end())
	}
	return string(h.head) + string(h.end())
}

func leftOut(bytes int64) string {
	return fmt.Sprintf("\n[pawl: %d bytes are left out here]\n", bytes)
}
