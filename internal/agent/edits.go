package agent

import (
	"regexp"
	"strings"
)

// Edit is one edit operation as a stream tells it. Zero keys and nil lines are
// unknown. It holds no content, only what tells equal content from different.
type Edit struct {
	Path string
	// Key stands for what was replaced by what, State for the content of the
	// whole file afterwards.
	Key, State uint64
	// Added and Removed stand for the lines that it changed; with Whole, Added
	// stands for all lines of the file.
	Added, Removed []uint64
	Whole          bool
}

// Deed is one call that ended, as far as going in circles shows in it. A call
// that was refused or failed edits nothing.
type Deed struct {
	Edits []Edit
	// Call stands for the call with its arguments, Result for what it answered;
	// the latter is known of failures only.
	Call, Result uint64
	Failed       bool
	// Wrote is what the agent wrote to make the call, the head of it where it is long.
	Wrote string
}

// fail says that a call failed and what it answered.
func (e *Event) fail(failed bool, answer []byte) {
	if failed {
		e.Failed, e.Result = true, foldResult(answer)
	}
}

// Bounds of what is kept of one edit and of one call's text: the longest file
// that a recorded session wrote has some 1,500 lines.
const (
	maxEditLines = 2_000
	maxDeedText  = 4 << 10
	maxEdits     = 1_000
)

// minLine is the length in bytes below which a line says nothing of where it
// comes from: closing brackets stand everywhere.
const minLine = 4

// FileEdit is an edit of which only the file's content afterwards is known.
// White space, blank lines and points in time in it do not count.
func FileEdit(path, content string) Edit {
	key, lines := fold(content)
	return Edit{Path: path, State: key, Added: lines, Whole: true}
}

// written is an edit that gives a file new content.
func written(path, content string) Edit {
	e := FileEdit(path, content)
	e.Key = mixKeys(e.State, 1)
	return e
}

// replaced is an edit that puts a text in the place of another.
func replaced(path, before, after string) Edit {
	old, removed := fold(before)
	text, added := fold(after)
	if old == text {
		// Only white space or a time stamp changes: the bytes must tell one
		// such edit from another.
		old, text = hashOf(before), hashOf(after)
	}
	return Edit{Path: path, Key: mixKeys(old, text), Added: except(added, removed), Removed: except(removed, added)}
}

// joined makes one edit of several of the same file.
func joined(path string, edits []Edit) Edit {
	all := Edit{Path: path}
	for _, e := range edits {
		all.Key = mixKeys(all.Key, e.Key)
		all.Added = append(all.Added, e.Added...)
		all.Removed = append(all.Removed, e.Removed...)
	}
	return all
}

// except returns the lines of a that are not among those of b, counted as often
// as they occur.
func except(a, b []uint64) []uint64 {
	left := make(map[uint64]int, len(b))
	for _, l := range b {
		left[l]++
	}
	var rest []uint64
	for _, l := range a {
		if left[l] > 0 {
			left[l]--
			continue
		}
		rest = append(rest, l)
	}
	return rest
}

// stamp matches points in time, which differ each time the same text is written.
var stamp = regexp.MustCompile(`\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?` +
	`|\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?Z?\b|\b20\d{6}[T_-]?\d{6}Z?\b|\b1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b`)

// fold reduces a text to a key and to keys of its lines, the first maxEditLines
// of them. White space, blank lines and points in time do not count. The key of
// no text is not zero.
func fold(text string) (key uint64, lines []uint64) {
	key = fnvBasis
	for line := range strings.Lines(text) {
		h, size := uint64(fnvBasis), 0
		for word := range strings.FieldsSeq(line) {
			if stamped, _ := timed(word, 6); stamped {
				word = stamp.ReplaceAllString(word, "")
			}
			if word != "" {
				h = hashOn(h, word)*fnvPrime ^ ' '
				size += len(word)
			}
		}
		if size == 0 {
			continue
		}
		key = mixKeys(key, h)
		if size >= minLine && len(lines) < maxEditLines {
			lines = append(lines, h)
		}
	}
	return key, lines
}

// The parameters of 64-bit FNV-1a.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

func hashOf(s string) uint64 { return hashOn(fnvBasis, s) }

func hashOn(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// mixKeys joins two keys; their order matters (the finaliser of MurmurHash3).
func mixKeys(a, b uint64) uint64 {
	h := a*31 ^ b*0x9e3779b97f4a7c15
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
