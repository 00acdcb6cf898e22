package simhash

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// paths matches a path with its last part as a group. numbered matches words with a digit.
var (
	paths    = regexp.MustCompile(`[\w.~@+:-]*[/\\][\w.~@+/\\-]*?([\w.@+-]*\.[A-Za-z]{1,6}\b)?(?:[^\w.~@+/\\-]|$)`)
	numbered = regexp.MustCompile(`[\w-]*\d[\w-]*`)
)

// minWord is the least number of letters of a counted word: units of time and size have one or two.
const minWord = 3

// failureHalf limits the counted beginning and end of a long text, in bytes.
const failureHalf = 64 << 10

func lettersOnly(r rune) rune {
	if unicode.IsLetter(r) {
		return r
	}
	return -1
}

// Failure returns the fingerprint of a failure's text. In addition to Fingerprint's removals it drops words with
// digits, paths' folders, and words of one or two letters. A file's name with an extension stays.
func Failure(text string) Print {
	var b strings.Builder
	for word := range strings.FieldsSeq(ends(text)) {
		if strings.ContainsAny(word, `/\`) {
			word = paths.ReplaceAllString(word, "$1 ")
		}
		if strings.ContainsAny(word, "0123456789") {
			word = numbered.ReplaceAllString(word, "")
		}
		if letters := strings.Map(lettersOnly, word); len(letters) >= minWord {
			b.WriteString(word)
			b.WriteByte(' ')
		}
	}
	return Fingerprint(b.String())
}

func ends(text string) string {
	if len(text) > 2*failureHalf {
		text = text[:failureHalf] + "\n" + text[len(text)-failureHalf:]
	}
	return text
}

// frame matches a stack frame with its file and, if present, its function: Python; JavaScript or Java (two forms);
// Go; Rust (two forms).
var frame = regexp.MustCompile(`(?m)File "([^"\n]+)", line \d+, in (\S+)` +
	`|\bat (?:async |new )?([\w.$<>/ ]+?) ?\(([^()\n]+?)(?::\d+)+\)` +
	`|^\s*at (?:async )?(\S+?):\d+:\d+$` +
	`|^([^\s(]+(?:\(\*\w+\)[^\s(]*)?)\([^\n]*\)\n\s+(\S+\.go):\d+` +
	`|^\s*\d+: +([\w:<>{}]+)\n\s+at (\S+\.rs):\d+` +
	`|panicked at ([^\s:]+\.rs):\d+`)

const (
	nearFrames = 3  // of each trace, nearest to the failure
	maxFrames  = 64 // of a text
	maxGap     = 3  // source lines between two frames of a trace
)

// Frames returns sorted hashes of each stack trace's frames nearest to the failure: function and file name. It is
// empty without a trace.
func Frames(text string) []Print {
	var all, trace []Print
	last, python := 0, false
	end := func() {
		if python { // Python prints the nearest frame last
			slices.Reverse(trace)
		}
		all = append(all, trace[:min(len(trace), nearFrames)]...)
		trace = trace[:0]
	}
	text = ends(text)
	for _, m := range frame.FindAllStringSubmatchIndex(text, -1) {
		gap := text[last:m[0]]
		if strings.Contains(gap, "\n\n") || strings.Contains(gap, "Traceback") || strings.Count(gap, "\n") > maxGap {
			end()
		}
		var parts []string
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				part := text[m[i]:m[i+1]]
				parts = append(parts, part[strings.LastIndexAny(part, `/\`)+1:])
			}
		}
		trace = append(trace, Fingerprint(strings.Join(parts, " ")))
		last, python = m[1], m[2] >= 0
	}
	end()
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxFrames)]
}

// Shared returns the share of two lists' elements that both contain; NaN if both lists are empty.
func Shared[E comparable](a, b []E) float64 {
	both := 0
	for _, e := range a {
		if slices.Contains(b, e) {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
