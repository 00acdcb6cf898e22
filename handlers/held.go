package handlers

import (
	"errors"
	"io"
)

// maxHeld bounds what has arrived of the bodies that are read at the same time, in
// bytes: a signature can be checked only when its body is there, and until then
// anybody may send. A body counts as it comes, not as it is announced.
const maxHeld = 64 << 20

const (
	// smallBody is what nearly every delivery stays below: a comment is at most
	// 64 KiB in a payload of some 20 KiB.
	smallBody = 1 << 20
	// heldForSmall is the part of maxHeld that only bodies below smallBody may
	// fill, so that large ones keep no ordinary delivery out.
	heldForSmall = 16 << 20
)

// errTooMany ends a body that does not fit beside the others.
var errTooMany = errors.New("too many payloads at the same time")

// countedBody counts what it reads among what the ingress holds.
type countedBody struct {
	io.ReadCloser
	in   *Ingress
	size int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size += int64(n)
	most := int64(maxHeld)
	if b.size > smallBody {
		most -= heldForSmall
	}
	if held := b.in.held.Add(int64(n)); n > 0 && held > most {
		return 0, errTooMany
	}
	return n, err
}

// giveBack is called when the body was answered.
func (b *countedBody) giveBack() { b.in.held.Add(-b.size) }
