package simhash

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// The parameters of 64-bit FNV-1a.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// shingles hashes every three consecutive words while the words go by. Three chains are open at a time: one
// started two words ago, one started one word ago, and one started with this word. They do not wait for each
// other, which makes the three together about as fast as one.
//
// Its use is begin, any number of extend, end, for each word; then print.
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

// tally counts, for each of the 64 bits, in how many hashes it is set. The counters are bit-sliced: plane k
// holds bit k of all 64 counters. Each level holds back every other plane, so that a full adder takes two at
// a time and an addition costs about one full adder on average (Harley and Seal).
type tally struct {
	n    uint64 // hashes added
	sum  [64]uint64
	held [64]uint64 // held[k] waits for its partner where bit k of n is set
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

// Print is the fingerprint of a text: 64 bits that differ in few places if two texts share most of their three-word
// sequences (a SimHash).
//
// The zero value is the fingerprint of empty text. It says nothing about likeness: callers must not call two zero
// prints similar.
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
	var s shingles
	for word := range strings.FieldsFuncSeq(Normalise(text), func(r rune) bool { return r == ' ' }) {
		s.begin()
		s.extend(word)
		s.end()
	}
	return s.print()
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

// Words is the number of words of text that its fingerprint is made of.
func Words(text string) int {
	n := 0
	for range strings.FieldsFuncSeq(Normalise(text), func(r rune) bool { return r == ' ' }) {
		n++
	}
	return n
}
