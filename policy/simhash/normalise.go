package simhash

import (
	"regexp"
	"strings"
)

// The definition of the fingerprint: the removals in this order, then single spaces and lower-case ASCII.
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

// Normalise removes text that differs between two equal attempts: UUIDs, cuid-like identifiers, time stamps, hashes
// of 8 to 64 hexadecimal digits, and line numbers. It is the slow definition of scan.
func Normalise(text string) string {
	for _, r := range removals {
		text = r.ReplaceAllLiteralString(text, "")
	}
	normal := []byte(strings.Trim(spaces.ReplaceAllLiteralString(text, " "), " "))
	for i, b := range normal {
		normal[i] = lower(b)
	}
	return string(normal)
}

// The first four removals as functions that return the number of bytes to remove at the start of a text.
//
// Rules 1, 2 and 4 match only whole maximal runs of word characters. Callers check the start of the run.

func uuidAt(text string) int {
	const form = "00000000-0000-0000-0000-000000000000"
	if !fits(text, form, isHex) {
		return 0
	}
	if leading(text[len(form):], isWord) > 0 {
		return 0
	}
	return len(form)
}

// identifierAt is rule 2 (cuid-like identifiers) for a run of n word characters.
func identifierAt(text string, n int) int {
	if n < 2+20 || n > 2+30 {
		return 0
	}
	if lower(text[0]) != 'c' {
		return 0
	}
	switch lower(text[1]) {
	case 'l', 'm', '_':
	default:
		return 0
	}
	if leading(text[2:n], isAlnum) < n-2 {
		return 0
	}
	return n
}

// timestampAt is rule 3, which may match inside a run.
func timestampAt(text string) int {
	const form = "0000-00-00T00:00:00"
	if !fits(text, form, isDigit) {
		return 0
	}
	return len(form) + leading(text[len(form):], isStamp)
}

// fits reports whether text begins like form, where 0 matches a byte of the classes.
func fits(text, form string, classes byte) bool {
	if len(text) < len(form) {
		return false
	}
	for i := range len(form) {
		switch form[i] {
		case '0':
			if !is(text[i], classes) {
				return false
			}
		case text[i]:
		default:
			return false
		}
	}
	return true
}

// hashAt is rule 4 for a run of n word characters that share the given classes.
func hashAt(n int, shared byte) int {
	if n < 8 || n > 64 {
		return 0
	}
	if shared&isHex == 0 {
		return 0
	}
	return n
}

// Classes of bytes. Bytes from 0x80 on have no class: \b, \d and \s are ASCII in Go's regexp syntax.
const (
	isDigit byte = 1 << iota // \d
	isHex                    // [0-9A-Fa-f]
	isAlnum                  // [0-9A-Za-z]
	isWord                   // [0-9A-Za-z_], for \b
	isSpace                  // \s
	isUpper                  // [A-Z]; equals the bit that makes a letter lower-case
	isStamp                  // [.\dZ], the end of a time stamp
)

// class maps each byte to its classes. It is read-only.
var class = func() (table [256]byte) {
	for _, of := range []struct {
		bytes   string
		classes byte
	}{
		{"0123456789", isDigit | isHex | isAlnum | isWord | isStamp},
		{"abcdef", isHex | isAlnum | isWord},
		{"ABCDEF", isHex | isAlnum | isWord | isUpper},
		{"ghijklmnopqrstuvwxyz", isAlnum | isWord},
		{"GHIJKLMNOPQRSTUVWXY", isAlnum | isWord | isUpper},
		{"Z", isAlnum | isWord | isUpper | isStamp},
		{".", isStamp},
		{"_", isWord},
		{"\t\n\f\r ", isSpace},
	} {
		for _, b := range []byte(of.bytes) {
			table[b] = of.classes
		}
	}
	return table
}()

func is(b, classes byte) bool { return class[b]&classes != 0 }

// lower returns a byte's lower-case ASCII letter, or the byte.
func lower(b byte) byte { return b | class[b]&isUpper }

// run returns the length of text's leading run of word characters, and their common classes.
func run(text string) (n int, shared byte) {
	shared = 0xff
	for n < len(text) && is(text[n], isWord) {
		shared &= class[text[n]]
		n++
	}
	return n, shared
}

// leading returns the length of text's leading run of bytes of the given classes.
func leading(text string, classes byte) int {
	n := 0
	for n < len(text) && is(text[n], classes) {
		n++
	}
	return n
}
