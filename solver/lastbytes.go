package solver

import (
	"strings"
	"sync"
)

// lastBytes keeps the end of what is written to it, at most verifyOutput bytes
// from two writers at a time. The zero value is ready.
type lastBytes struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if over := len(l.buf) - verifyOutput; over > 0 {
		l.buf = append(l.buf[:0], l.buf[over:]...)
		l.cut = true
	}
	return len(p), nil
}

// String is the kept text, from a line's beginning where something was cut.
func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.ToValidUTF8(string(l.buf), "\uFFFD")
	if _, rest, ok := strings.Cut(s, "\n"); ok && l.cut {
		s = "[cut]\n" + rest
	}
	return s
}
