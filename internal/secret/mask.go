package secret

import (
	"bytes"
	"io"
	"strings"
)

// Mask replaces a secret with stars of the same length. It ignores secrets shorter than minLength.
func Mask(s, secret string) string {
	if len(secret) < minLength {
		return s
	}
	return strings.ReplaceAll(s, secret, strings.Repeat("*", len(secret)))
}

type masking struct {
	from         io.Reader
	secret, mask []byte
	in           []byte
	held         []byte // read and masked; its end may begin the secret
	err          error
}

// MaskReader replaces a secret in a stream with stars of the same length, even across two reads. It holds back only
// bytes that may begin the secret.
func MaskReader(from io.Reader, secret string) io.Reader {
	if len(secret) < minLength {
		return from
	}
	return &masking{from: from, secret: []byte(secret), mask: bytes.Repeat([]byte("*"), len(secret)), in: make([]byte, 4<<10)}
}

func (r *masking) Read(p []byte) (n int, err error) {
	for {
		ready := r.held
		if r.err == nil {
			ready = r.held[:len(r.held)-overlap(r.held, r.secret)]
		}
		if len(ready) > 0 {
			n = copy(p, ready)
			r.held = r.held[n:]
			return n, nil
		}
		if r.err != nil {
			return 0, r.err
		}
		n, r.err = r.from.Read(r.in)
		r.held = bytes.ReplaceAll(append(r.held, r.in[:n]...), r.secret, r.mask)
	}
}

// overlap returns the length of the longest suffix of a that is a prefix of b.
func overlap[S string | []byte](a, b S) int {
	for n := min(len(b), len(a)); n > 0; n-- {
		if string(a[len(a)-n:]) == string(b[:n]) {
			return n
		}
	}
	return 0
}
