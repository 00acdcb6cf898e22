package simhash

import (
	"hash/fnv"
	"strings"
)

// referenceFingerprint implements the fingerprint's definition literally. The shipped scanner must agree with it.
func referenceFingerprint(text string) Print {
	text = Normalise(text)
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
