package simhash

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Parameters of 64-bit FNV-1a.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// shingles hashes every three consecutive words in one pass, with three open chains that started two, one and no
// words ago. Call begin, extend (any number of times) and end for each word; then print.
type shingles struct {
	third, second, first uint64 // this word is the chain's third, second, first one
	words                int
	votes                tally
}

func (s *shingles) begin() {
	s.third = (s.second ^ ' ') * fnvPrime
	s.second = (s.first ^ ' ') * fnvPrime
	s.first = fnvBasis
}

func (s *shingles) extend(part string) {
	third, second, first := s.third, s.second, s.first
	for i := range len(part) {
		b := uint64(lower(part[i]))
		third = (third ^ b) * fnvPrime
		second = (second ^ b) * fnvPrime
		first = (first ^ b) * fnvPrime
	}
	s.third, s.second, s.first = third, second, first
}

func (s *shingles) end() {
	s.words++
	if s.words >= 3 {
		s.votes.add(s.third)
	}
}

func (s *shingles) print() Print {
	switch s.words {
	case 0:
		return 0
	case 1:
		return Print(s.first)
	case 2:
		return Print(s.second)
	}
	return s.votes.majority()
}

// tally counts, for each of the 64 bits, the hashes that have it set. Bit-sliced counters: plane k holds bit k of all
// 64 counters. Each level holds every other plane, so an addition costs about one full adder (Harley and Seal).
type tally struct {
	n    uint64 // hashes added
	sum  [64]uint64
	held [64]uint64 // held[k] waits for its partner if bit k of n is set
}

func (t *tally) add(hash uint64) {
	n := t.n
	t.n++
	for k := range t.sum {
		if n>>k&1 == 0 {
			t.held[k] = hash
			return
		}
		odd := t.sum[k] ^ t.held[k]
		carry := t.sum[k]&t.held[k] | odd&hash
		t.sum[k] = odd ^ hash
		hash = carry
	}
}

func (t *tally) majority() Print {
	var p Print
	for bit := range 64 {
		var count uint64
		for k := 0; t.n>>k != 0; k++ {
			count += t.sum[k] >> bit & 1 << k
			if t.n>>k&1 == 1 {
				count += t.held[k] >> bit & 1 << k
			}
		}
		if 2*count > t.n {
			p |= 1 << bit
		}
	}
	return p
}

// Print is a text's 64-bit SimHash: similar texts differ in few bits. Zero is the fingerprint of empty text; do not
// compare it.
type Print uint64

// Fingerprint returns the fingerprint of text. Normalise's result is split at spaces, and every three consecutive
// words are hashed with 64-bit FNV-1a; fewer words are one shingle. A bit is set if most hashes have it set.
//
// The definition is fixed: stored prints and other implementations must agree bit for bit. Invalid UTF-8 bytes are
// ordinary characters outside words, as in Go's regexp package.
func Fingerprint(text string) Print {
	if p, ok := scan(text); ok {
		return p
	}
	var s shingles
	for word := range strings.FieldsFuncSeq(Normalise(text), func(r rune) bool { return r == ' ' }) {
		s.begin()
		s.extend(word)
		s.end()
	}
	return s.print()
}

// Similarity returns the share of equal bits, 0..1. At least 0.85 means at most 9 different bits of 64.
func Similarity(a, b Print) float64 {
	return 1 - float64(bits.OnesCount64(uint64(a^b)))/64
}

// String returns 16 lower-case hexadecimal digits.
func (p Print) String() string {
	return fmt.Sprintf("%016x", uint64(p))
}

// MarshalText writes String's form: many JSON readers cannot hold a 64-bit number exactly.
func (p Print) MarshalText() ([]byte, error) {
	return []byte(p.String()), nil
}

// UnmarshalText reads String's form; empty text is zero.
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

// Words counts the words behind text's fingerprint.
func Words(text string) int {
	n := 0
	for range strings.FieldsFuncSeq(Normalise(text), func(r rune) bool { return r == ' ' }) {
		n++
	}
	return n
}
