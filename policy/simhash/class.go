package simhash

// The classes of bytes that the rules of the fingerprint distinguish. Bytes of 0x80 and
// more are in no class: \b, \d and \s are ASCII in Go's regexp syntax.
const (
	isDigit byte = 1 << iota // \d
	isHex                    // [0-9A-Fa-f]
	isAlnum                  // [0-9A-Za-z]
	isWord                   // [0-9A-Za-z_], what \b looks at
	isSpace                  // \s
	isUpper                  // [A-Z]; equals the bit that makes a letter lower-case
)

const (
	digit = isDigit | isHex | isAlnum | isWord
	lowAF = isHex | isAlnum | isWord
	lowGZ = isAlnum | isWord
	upAF  = lowAF | isUpper
	upGZ  = lowGZ | isUpper
)

// class gives the classes of each byte. It is never written to.
var class = [256]byte{
	'\t': isSpace, '\n': isSpace, '\f': isSpace, '\r': isSpace, ' ': isSpace, '_': isWord,

	'0': digit, '1': digit, '2': digit, '3': digit, '4': digit,
	'5': digit, '6': digit, '7': digit, '8': digit, '9': digit,

	'a': lowAF, 'b': lowAF, 'c': lowAF, 'd': lowAF, 'e': lowAF, 'f': lowAF,
	'g': lowGZ, 'h': lowGZ, 'i': lowGZ, 'j': lowGZ, 'k': lowGZ, 'l': lowGZ, 'm': lowGZ, 'n': lowGZ, 'o': lowGZ, 'p': lowGZ,
	'q': lowGZ, 'r': lowGZ, 's': lowGZ, 't': lowGZ, 'u': lowGZ, 'v': lowGZ, 'w': lowGZ, 'x': lowGZ, 'y': lowGZ, 'z': lowGZ,

	'A': upAF, 'B': upAF, 'C': upAF, 'D': upAF, 'E': upAF, 'F': upAF,
	'G': upGZ, 'H': upGZ, 'I': upGZ, 'J': upGZ, 'K': upGZ, 'L': upGZ, 'M': upGZ, 'N': upGZ, 'O': upGZ, 'P': upGZ,
	'Q': upGZ, 'R': upGZ, 'S': upGZ, 'T': upGZ, 'U': upGZ, 'V': upGZ, 'W': upGZ, 'X': upGZ, 'Y': upGZ, 'Z': upGZ,
}

// is reports whether b is in one of the classes.
func is(b, classes byte) bool { return class[b]&classes != 0 }

// lower makes an ASCII letter lower-case and leaves every other byte alone.
func lower(b byte) byte { return b | class[b]&isUpper }

// run returns the length of the run of word characters at the start of text
// and the classes that all of them share; a run of length 0 shares all.
func run(text string) (n int, shared byte) {
	shared = 0xff
	for n < len(text) && is(text[n], isWord) {
		shared &= class[text[n]]
		n++
	}
	return n, shared
}

// leading returns the length of the run of bytes of the given classes at the
// start of text.
func leading(text string, classes byte) int {
	n := 0
	for n < len(text) && is(text[n], classes) {
		n++
	}
	return n
}
