// Package edit reduces what an agent changed, and what failed commands printed, to keys: equal content has
// equal keys; points in time, durations and white space do not count. It keeps no content.
package edit

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pawlbot/pawl/policy"
)

// maxEditLines bounds what is kept of one edit: the longest file that a recorded
// session wrote has some 1,500 lines. Max bounds the edits of one call.
const (
	maxEditLines = 2_000
	Max          = 1_000
)

// minLine is the length in bytes below which a line says nothing: brackets stand everywhere.
const minLine = 4

// File is an edit of which only the file's content afterwards is known.
// White space, blank lines and points in time in it do not count.
func File(path, content string) policy.Edit {
	key, lines := fold(content, false)
	return policy.Edit{Path: path, State: key, Added: lines, Whole: true}
}

func Written(path, content string) policy.Edit {
	e := File(path, content)
	e.Key = policy.Mix(e.State, 1)
	return e
}

func Replaced(path, before, after string) policy.Edit {
	old, removed := fold(before, false)
	text, added := fold(after, false)
	if old == text {
		// Only white space or a time stamp changes: the bytes must tell such edits apart.
		old, text = policy.Hash(before), policy.Hash(after)
	}
	return policy.Edit{Path: path, Key: policy.Mix(old, text), Added: policy.LinesWithout(added, removed), Removed: policy.LinesWithout(removed, added)}
}

func Joined(path string, edits []policy.Edit) policy.Edit {
	all := policy.Edit{Path: path}
	for _, e := range edits {
		all.Key = policy.Mix(all.Key, e.Key)
		all.Added = append(all.Added, e.Added...)
		all.Removed = append(all.Removed, e.Removed...)
	}
	return all
}

var (
	// stamp matches points in time, which differ each time the same text is written.
	stamp = regexp.MustCompile(`\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?` +
		`|\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?Z?\b|\b20\d{6}[T_-]?\d{6}Z?\b|\b1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b`)
	// lasted matches durations and times in what commands print.
	lasted = regexp.MustCompile(`\b\d+(?:\.\d+)?(?:ns|µs|us|ms|s|secs?|seconds?|m)\b`)
)

// fold reduces a text to a key and to keys of its lines, the first maxEditLines
// of them, which are of no use of what was printed. White space, blank lines and points in time do not count, nor do
// durations in what was printed. The key of no text is not zero.
func fold(text string, printed bool) (key uint64, lines []uint64) {
	key = policy.Hash("")
	for line := range strings.Lines(text) {
		h, size := policy.Hash(""), 0
		for word := range strings.FieldsSeq(line) {
			stamped, measured := timed(word)
			if stamped {
				word = stamp.ReplaceAllString(word, "")
			}
			if measured && printed {
				word = lasted.ReplaceAllString(word, "")
			}
			if word != "" {
				h = policy.Mix(h, policy.Hash(word))
				size += len(word)
			}
		}
		if size == 0 {
			continue
		}
		key = policy.Mix(key, h)
		if size >= minLine && !printed && len(lines) < maxEditLines {
			lines = append(lines, h)
		}
	}
	return key, lines
}

// timed reports whether a word may hold what stamp and what lasted matches. Most hold neither, and to know that
// is a tenth of the work.
func timed(word string) (stamped, measured bool) {
	digits, run, marked := 0, 0, false
	for i := range len(word) {
		c := word[i]
		if c-'0' <= 9 {
			digits++
			run++
			marked = marked || run >= 10 // seconds since 1970
			continue
		}
		marked = marked || c == '-' || c == ':' || c == 'T' || c == '_'
		measured = measured || run > 0 && (c == 'n' || c == 'u' || c == 'm' || c == 's' || c >= utf8.RuneSelf)
		run = 0
	}
	return marked && digits >= 5, measured
}

// resultHalf is how much of an output's beginning and end tell it from another, in bytes.
const resultHalf = 2 << 10

// spaced writes the escapes of JSON that stand for white space as such.
var spaced = strings.NewReplacer(`\\`, `\\`, `\n`, "\n", `\t`, " ", `\r`, " ", `\f`, " ")

// Result reduces what a command printed, as it stands in the JSON, to a key. White space, times and durations
// do not count, nor the middle of a long output.
func Result(raw string) uint64 {
	if len(raw) > 2*resultHalf {
		return policy.Mix(Result(raw[:resultHalf]), Result(raw[len(raw)-resultHalf:]))
	}
	key, _ := fold(spaced.Replace(raw), true)
	return key
}

// Patch reads a "*** Begin Patch", with any text around it: one edit for each file section.
func Patch(patch string) []policy.Edit {
	var all []policy.Edit
	var verb, path string
	var body, before, after strings.Builder
	add := func() {
		if path != "" && len(all) < Max {
			e := Replaced(path, before.String(), after.String())
			if verb == "Add" { // in the place of whatever the file held
				e = Written(path, after.String())
			}
			// The lines around a change tell one place from another.
			whole, _ := fold(body.String(), false)
			e.Key = policy.Mix(e.Key, whole)
			all = append(all, e)
		}
		path = ""
		body.Reset()
		before.Reset()
		after.Reset()
	}
	for line := range strings.Lines(patch) {
		if rest, ok := strings.CutPrefix(line, "*** "); ok {
			does, name, _ := strings.Cut(rest, " File: ")
			switch {
			case does == "Add" || does == "Update" || does == "Delete":
				add()
				verb, path = does, strings.TrimSpace(name)
				body.WriteString(verb + "\n")
			case strings.HasPrefix(rest, "End Patch"):
				add()
			}
			continue
		}
		if path == "" {
			continue
		}
		body.WriteString(line)
		switch line[0] {
		case '-':
			before.WriteString(line[1:])
		case '+':
			after.WriteString(line[1:])
		}
	}
	add()
	return all
}
