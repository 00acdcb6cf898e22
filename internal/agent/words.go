package agent

import (
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// words gives the text to emit as lower-case words with one space before each
// and one after the last, until emit answers false. A word is a run of letters
// and digits; everything else separates words. So do the escapes \n, \r and \t,
// while \uXXXX is the character that it names, however many backslashes the
// layers of quoting put before it.
func words(text string, emit func(byte) bool) {
	apart, begun := true, false
	var high rune // the first half of a surrogate pair
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == '\\' {
			r, n = escape(text[i:])
		}
		i += n
		if utf16.IsSurrogate(r) {
			if high != 0 {
				r = utf16.DecodeRune(high, r)
			}
			if high = r; utf16.IsSurrogate(r) {
				continue
			}
		}
		high = 0
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			apart = true
			continue
		}
		if apart && !emit(' ') {
			return
		}
		apart, begun = false, true
		var buf [utf8.UTFMax]byte
		for _, b := range buf[:utf8.EncodeRune(buf[:], unicode.ToLower(r))] {
			if !emit(b) {
				return
			}
		}
	}
	if begun {
		emit(' ')
	}
}

// escape reads a run of backslashes with what it escapes, as one character: a
// space for anything but \uXXXX.
func escape(s string) (rune, int) {
	n := 0
	for n < len(s) && s[n] == '\\' {
		n++
	}
	if n == len(s) {
		return ' ', n
	}
	switch s[n] {
	case 'n', 'r', 't':
		return ' ', n + 1
	case 'u':
		if len(s) >= n+5 {
			if v, err := strconv.ParseUint(s[n+1:n+5], 16, 16); err == nil {
				return rune(v), n + 5
			}
		}
	}
	return ' ', n
}
