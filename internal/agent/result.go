package agent

import (
	"regexp"
	"unicode/utf8"
)

// lasted matches durations and times in what commands print.
var lasted = regexp.MustCompile(`\b\d+(?:\.\d+)?(?:ns|µs|us|ms|s|secs?|seconds?|m)\b`)

// resultHalf is how much of the beginning and of the end of an output tells it
// from another, in bytes: commands say there what failed.
const resultHalf = 4 << 10

// foldResult reduces what a command printed, as it stands in the JSON, to a key.
// White space, blank lines, points in time and durations do not count, nor what
// stands between the beginning and the end of a long output.
func foldResult(raw []byte) uint64 {
	if len(raw) <= 2*resultHalf {
		return foldText(fnvBasis, raw)
	}
	return foldText(foldText(fnvBasis, raw[:resultHalf]), raw[len(raw)-resultHalf:])
}

// foldText adds a text to a key. It is read once, and only words with digits are
// looked at again.
func foldText(key uint64, raw []byte) uint64 {
	line := uint64(fnvBasis)
	start, h, digit := 0, uint64(fnvBasis), false
	for i := 0; i <= len(raw); {
		space, newline := 0, false
		switch {
		case i == len(raw):
			space, newline = 1, true
		case raw[i] <= ' ':
			space = 1
		case raw[i] == '\\':
			space, newline = escapedSpace(raw[i:])
		}
		if space == 0 {
			c := raw[i]
			h = (h ^ uint64(c)) * fnvPrime
			digit = digit || c-'0' <= 9
			if i++; c == '\\' && i < len(raw) { // the other half of the escape
				h = (h ^ uint64(raw[i])) * fnvPrime
				i++
			}
			continue
		}
		if i > start {
			if digit {
				line = foldTimed(line, h, raw[start:i])
			} else {
				line = mixKeys(line, h)
			}
		}
		if newline && line != fnvBasis {
			key, line = mixKeys(key, line), fnvBasis
		}
		i += space
		start, h, digit = i, fnvBasis, false
	}
	return key
}

// escapedSpace returns the length of the escape that raw begins with, where it
// stands for white space.
func escapedSpace(raw []byte) (length int, newline bool) {
	if len(raw) < 2 {
		return 0, false
	}
	switch raw[1] {
	case 'n':
		return 2, true
	case 't', 'r', 'f':
		return 2, false
	}
	return 0, false
}

// foldTimed adds a word with digits, and with the hash h, to the key of a line,
// without the points in time and durations in it.
func foldTimed(line, h uint64, word []byte) uint64 {
	stamped, measured := timed(word, 5)
	if !stamped && !measured {
		return mixKeys(line, h)
	}
	if stamped {
		word = stamp.ReplaceAll(word, nil)
	}
	if measured {
		word = lasted.ReplaceAll(word, nil)
	}
	if len(word) == 0 {
		return line
	}
	return mixKeys(line, hashOf(string(word)))
}

// timed reports whether a word with at least so many digits may hold what stamp
// matches, and whether it may hold what lasted matches.
func timed[text string | []byte](word text, atLeast int) (stamped, measured bool) {
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
	return marked && digits >= atLeast, measured
}
