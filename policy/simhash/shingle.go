package simhash

import "strings"

// The parameters of 64-bit FNV-1a.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

func printOf(normal string) Print {
	var s shingles
	for word := range strings.FieldsFuncSeq(normal, func(r rune) bool { return r == ' ' }) {
		s.begin()
		s.extend(word)
		s.end()
	}
	return s.print()
}

// shingles hashes every three consecutive words while the words go by. Three chains are open at a time: one
// started two words ago, one started one word ago, and one started with this word. They do not wait for each
// other, which makes the three together about as fast as one.
//
// Its use is begin, any number of extend, end, for each word; then print.
type shingles struct {
	third, second, first uint64 // the chains of which this is the third, second, first word
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
