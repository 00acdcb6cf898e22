package gateway

import (
	"bytes"
	"io"
	"strings"
)

// minSecret is the length in bytes from which a key is looked for in answers. A
// shorter one is a placeholder of a local server, and masking it would spoil text.
const minSecret = 8

// masked replaces the key in a text.
func masked(text, key string) string {
	if len(key) < minSecret {
		return text
	}
	return strings.ReplaceAll(text, key, strings.Repeat("*", len(key)))
}

// redactor replaces a key in a stream by as many stars, also where the key comes
// in two pieces. It holds back no more than the beginning of a possible key, so
// whole lines of a stream are never delayed.
type redactor struct {
	from io.Reader
	key  []byte
	mask []byte
	in   []byte
	held []byte // read, and possibly the beginning of the key
	out  []byte // ready to be given
	err  error
}

func newRedactor(from io.Reader, key string) io.Reader {
	if len(key) < minSecret {
		return from
	}
	return &redactor{from: from, key: []byte(key), mask: bytes.Repeat([]byte("*"), len(key)), in: make([]byte, 32<<10)}
}

func (r *redactor) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.fill()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *redactor) fill() {
	n, err := r.from.Read(r.in)
	r.held = append(r.held, r.in[:n]...)
	r.err = err
	text := bytes.ReplaceAll(r.held, r.key, r.mask)
	keep := 0
	if err == nil {
		keep = overlap(text, r.key)
	}
	cut := len(text) - keep
	r.out = text[:cut]
	r.held = append(r.held[:0], text[cut:]...)
}

// overlap is the length of the longest end of text that begins key without being
// all of it.
func overlap(text, key []byte) int {
	for n := min(len(key)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, key[:n]) {
			return n
		}
	}
	return 0
}
