package simhash

import (
	"regexp"
	"strings"
	"unicode"
)

// paths matches a path and takes its last part apart; numbered matches what holds a
// digit: a number, a duration, an address, an identifier.
var (
	paths    = regexp.MustCompile(`[\w.~@+:-]*[/\\][\w.~@+/\\-]*?([\w.@+-]*\.[A-Za-z]{1,6}\b)?(?:[^\w.~@+/\\-]|$)`)
	numbered = regexp.MustCompile(`[\w-]*\d[\w-]*`)
)

// minWord is the length of words, in letters, from which they count: units of time and
// size have one or two.
const minWord = 3

// failureHalf is how much of the beginning and of the end of a long text counts, in
// bytes: what failed stands there.
const failureHalf = 64 << 10

func lettersOnly(r rune) rune {
	if unicode.IsLetter(r) {
		return r
	}
	return -1
}

// Failure returns the fingerprint of a failure's text: that of the text without what
// differs between two runs that fail in the same way. Beside what Fingerprint leaves out
// that are words with digits in them (identifiers, ports, process numbers, durations,
// addresses) and the folders of paths; of a path the file's name stays, where it has an
// ending. Words of one or two letters do not count.
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

// ends leaves the middle of a long text out.
func ends(text string) string {
	if len(text) > 2*failureHalf {
		text = text[:failureHalf] + "\n" + text[len(text)-failureHalf:]
	}
	return text
}
