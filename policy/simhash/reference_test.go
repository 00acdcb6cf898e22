package simhash

import (
	"hash/fnv"
	"regexp"
	"strings"
)

// The definition of the fingerprint, to the letter: these replacements, in this
// order, each with the empty string. The shipped scanner is right where it
// agrees with them.
var (
	removals = []*regexp.Regexp{
		regexp.MustCompile(`\b[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b`),
		regexp.MustCompile(`\b(?:[Cc][LlMm]|[Cc]_)[0-9A-Za-z]{20,30}\b`),
		regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[.\dZ]*`),
		regexp.MustCompile(`\b[0-9A-Fa-f]{8,64}\b`),
		regexp.MustCompile(`(?m)^\s*\d+[\t|:]\s*`),
	}
	spaces = regexp.MustCompile(`\s+`)
)

func referenceNormalise(text string) string {
	for _, r := range removals {
		text = r.ReplaceAllLiteralString(text, "")
	}
	text = strings.Trim(spaces.ReplaceAllLiteralString(text, " "), " ")
	lower := []byte(text)
	for i, b := range lower {
		if 'A' <= b && b <= 'Z' {
			lower[i] = b - 'A' + 'a'
		}
	}
	return string(lower)
}

func referenceFingerprint(text string) Print {
	text = referenceNormalise(text)
	if text == "" {
		return 0
	}
	words := strings.Split(text, " ")
	shingles := []string{strings.Join(words, " ")}
	if len(words) >= 3 {
		shingles = nil
		for i := range len(words) - 2 {
			shingles = append(shingles, strings.Join(words[i:i+3], " "))
		}
	}
	var set [64]int
	for _, s := range shingles {
		h := fnv.New64a()
		h.Write([]byte(s))
		sum := h.Sum64()
		for bit := range set {
			set[bit] += int(sum >> bit & 1)
		}
	}
	var p Print
	for bit, n := range set {
		if n > len(shingles)-n {
			p |= 1 << bit
		}
	}
	return p
}
