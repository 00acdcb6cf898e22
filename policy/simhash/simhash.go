package simhash

import (
	"fmt"
	"math/bits"
	"strconv"
)

// Print is the fingerprint of a text: 64 bits that differ in few places where
// two texts share most of their three-word sequences (a SimHash).
//
// The zero value is the fingerprint of empty text. It says nothing about
// likeness: whoever compares attempts must not call two zero prints similar.
type Print uint64

// Fingerprint returns the fingerprint of text. Time stamps, identifiers, hashes, line numbers, case and white
// space do not count: what Normalise leaves is split at spaces, every three consecutive words are hashed with
// 64-bit FNV-1a (fewer than three words are one shingle), and a bit of the fingerprint is set where more of
// these hashes have it set than clear.
//
// The definition is fixed, so that other implementations agree bit for bit and
// prints kept in a log stay comparable.
//
// Bytes that are not valid UTF-8 are ordinary characters that are neither
// white space nor part of a word, as in Go's regexp package.
//
// It does not allocate, except for the rare text in which removing a time stamp joins two words (see scan).
func Fingerprint(text string) Print {
	if p, ok := scan(text); ok {
		return p
	}
	return printOf(Normalise(text))
}

// Similarity is the share of bits, 0..1, in which two fingerprints agree. At 64
// bits a similarity of at least 0.85 means a distance of at most 9.
func Similarity(a, b Print) float64 {
	return 1 - float64(bits.OnesCount64(uint64(a^b)))/64
}

// String returns the fingerprint as 16 lower-case hexadecimal digits.
func (p Print) String() string {
	return fmt.Sprintf("%016x", uint64(p))
}

// MarshalText writes the form of String, so that JSON carries a string: many
// readers of JSON cannot hold a 64-bit number exactly.
func (p Print) MarshalText() ([]byte, error) {
	return []byte(p.String()), nil
}

// UnmarshalText reads the form of String; empty text is the zero Print.
func (p *Print) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = 0
		return nil
	}
	n, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return fmt.Errorf("fingerprint %q: want 16 hexadecimal digits", text)
	}
	*p = Print(n)
	return nil
}
