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

// class gives the classes of each byte. It is never written to.
var class = func() (table [256]byte) {
	for _, of := range []struct {
		bytes   string
		classes byte
	}{
		{"0123456789", isDigit | isHex | isAlnum | isWord},
		{"abcdef", isHex | isAlnum | isWord},
		{"ABCDEF", isHex | isAlnum | isWord | isUpper},
		{"ghijklmnopqrstuvwxyz", isAlnum | isWord},
		{"GHIJKLMNOPQRSTUVWXYZ", isAlnum | isWord | isUpper},
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
