package agent

import (
	"fmt"
	"io"
)

// transcriptTail is how much of the end of an overlong transcript is kept, at
// most: the end holds the final event.
const transcriptTail = 256 << 10

// transcript copies a stream to w as it comes, up to a limit. What goes beyond
// it is left out in the middle, with a note at the cut.
type transcript struct {
	w     io.Writer
	limit int64
	wrote int64
	rest  headTail // what came after the head
	err   error
}

// newTranscript returns a transcript of at most limit bytes and the note. A
// limit of zero means none; a nil writer keeps nothing.
func newTranscript(w io.Writer, limit int64) *transcript {
	t := &transcript{w: w, limit: limit}
	if limit > 0 {
		t.rest.tailMax = int(min(transcriptTail, limit/2))
	}
	return t
}

// Write never fails, because a full disk must not stop the agent's output from
// being read; close tells of the error.
func (t *transcript) Write(p []byte) (int, error) {
	n := len(p)
	if t.w == nil || t.err != nil {
		return n, nil
	}
	take := len(p)
	if t.limit > 0 {
		take = int(min(int64(take), max(0, t.limit-int64(t.rest.tailMax)-t.wrote)))
	}
	if take > 0 {
		_, t.err = t.w.Write(p[:take])
		t.wrote += int64(take)
	}
	if take < len(p) {
		t.rest.Write(p[take:])
	}
	return n, nil
}

// close writes the note and the end, and returns the first error.
func (t *transcript) close() error {
	if t.w == nil || t.err != nil || t.rest.total == 0 {
		return t.err
	}
	if missing := t.rest.missing(); missing > 0 {
		note := fmt.Sprintf("\n[pawl: %d bytes are left out here; the limit of a transcript is %d bytes]\n", missing, t.limit)
		if _, t.err = io.WriteString(t.w, note); t.err != nil {
			return t.err
		}
	}
	_, t.err = t.w.Write(t.rest.end())
	return t.err
}
