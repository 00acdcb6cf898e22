// Package edit reduces an agent's edits and command outputs to hashes. Times, durations and white space do not count.
// It keeps no content.
package edit

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlbot/pawl/policy"
)

// maxEditLines limits the kept lines of one edit; the longest recorded file has some 1,500. Max limits the edits of
// one call.
const (
	maxEditLines = 2_000
	Max          = 1_000
)

// minLine is the minimum length of a meaningful line, in bytes.
const minLine = 4

// File returns an edit with only the file's new content.
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
		// Only white space or a time stamp changes: compare the bytes.
		old, text = policy.Hash(before), policy.Hash(after)
	}
	return policy.Edit{
		Path:    path,
		Key:     policy.Mix(old, text),
		Added:   policy.LinesWithout(added, removed),
		Removed: policy.LinesWithout(removed, added),
	}
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
	// stamp matches timestamps.
	stamp = regexp.MustCompile(`\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?` +
		`|\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?Z?\b|\b20\d{6}[T_-]?\d{6}Z?\b|\b1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b`)
	// lasted matches durations in command outputs.
	lasted = regexp.MustCompile(`\b\d+(?:\.\d+)?(?:ns|µs|us|ms|s|secs?|seconds?|m)\b`)
)

// fold reduces a text to a hash and, except for output, to hashes of its first maxEditLines meaningful lines. White
// space, blank lines, timestamps and (in output) durations do not count. An empty text's hash is not zero.
func fold(text string, printed bool) (key uint64, lines []uint64) {
	key = policy.Hash("")
	for line := range strings.Lines(text) {
		h, size := foldLine(line, printed)
		if size == 0 {
			continue
		}
		key = policy.Mix(key, h)
		wanted := !printed && len(lines) < maxEditLines
		if wanted && size >= minLine {
			lines = append(lines, h)
		}
	}
	return key, lines
}

// foldLine reduces a line to a hash and the number of counted bytes.
func foldLine(line string, printed bool) (key uint64, size int) {
	key = policy.Hash("")
	for word := range strings.FieldsSeq(line) {
		stamped, measured := timed(word)
		if stamped {
			word = stamp.ReplaceAllString(word, "")
		}
		if measured && printed {
			word = lasted.ReplaceAllString(word, "")
		}
		if word != "" {
			key = policy.Mix(key, policy.Hash(word))
			size += len(word)
		}
	}
	return key, size
}

// timed reports whether a word may match stamp or lasted. It is ten times faster than matching.
func timed(word string) (stamped, measured bool) {
	digits, run, marked := 0, 0, false
	for i := range len(word) {
		c := word[i]
		if c-'0' <= 9 {
			digits++
			run++
			if run == epochDigits {
				marked = true
			}
			continue
		}
		switch c {
		case '-', ':', 'T', '_':
			marked = true
		}
		if run > 0 && beginsUnit(c) {
			measured = true
		}
		run = 0
	}
	return marked && digits >= 5, measured
}

const epochDigits = 10

// beginsUnit reports whether a byte begins a unit of lasted; µ is the only one beyond ASCII.
func beginsUnit(c byte) bool {
	switch c {
	case 'n', 'u', 'm', 's':
		return true
	}
	return c >= utf8.RuneSelf
}

// resultHalf limits the beginning and the end of an output that count, in bytes each.
const resultHalf = 2 << 10

var spaced = strings.NewReplacer(`\\`, `\\`, `\n`, "\n", `\t`, " ", `\r`, " ", `\f`, " ")

// Result hashes a command's output in its JSON form. White space, timestamps, durations and the middle of a long output
// do not count.
func Result(raw string) uint64 {
	if len(raw) > 2*resultHalf {
		return policy.Mix(Result(raw[:resultHalf]), Result(raw[len(raw)-resultHalf:]))
	}
	key, _ := fold(spaced.Replace(raw), true)
	return key
}

// Patch parses a "*** Begin Patch" in a text: one edit per file section.
func Patch(patch string) []policy.Edit {
	var all []policy.Edit
	file := &section{}
	add := func() {
		if file.path != "" && len(all) < Max {
			all = append(all, file.edit())
		}
		file = &section{}
	}
	for line := range strings.Lines(patch) {
		rest, marked := strings.CutPrefix(line, "*** ")
		if !marked {
			file.take(line)
			continue
		}
		verb, name, _ := strings.Cut(rest, " File: ")
		switch verb {
		case "Add", "Update", "Delete":
			add()
			file.begin(verb, strings.TrimSpace(name))
			continue
		}
		if strings.HasPrefix(rest, "End Patch") {
			add()
		}
	}
	add()
	return all
}

// section is the part of a patch for one file; without a path, it is the surrounding text.
type section struct {
	verb, path          string
	body, before, after strings.Builder
}

func (s *section) begin(verb, path string) {
	s.verb = verb
	s.path = path
	s.body.WriteString(verb + "\n")
}

func (s *section) take(line string) {
	if s.path == "" {
		return
	}
	s.body.WriteString(line)
	switch line[0] {
	case '-':
		s.before.WriteString(line[1:])
	case '+':
		s.after.WriteString(line[1:])
	}
}

func (s *section) edit() policy.Edit {
	e := Replaced(s.path, s.before.String(), s.after.String())
	if s.verb == "Add" { // replaces the file's content
		e = Written(s.path, s.after.String())
	}
	// The context lines distinguish equal edits at different places.
	whole, _ := fold(s.body.String(), false)
	e.Key = policy.Mix(e.Key, whole)
	return e
}

// silence matches CLIs' texts for an empty output (Claude Code, older versions).
var silence = regexp.MustCompile(`(?i)\b(?:no|without) output\b`)

// Silent reports whether an answer, in its JSON form, has no output.
func Silent(raw string) bool {
	if !strings.ContainsFunc(raw[:min(len(raw), resultHalf)], func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return true
	}
	return len(raw) < maxSilence && silence.MatchString(raw)
}

// maxSilence limits an empty answer's text in bytes.
const maxSilence = 80
