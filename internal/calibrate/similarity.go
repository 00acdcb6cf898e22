package calibrate

import (
	"iter"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// byPrint is the similarity that policy decides by. A text without a fingerprint
// is like nothing, as in policy; known is then false.
func byPrint(a, b string) (similarity float64, known bool) {
	p, q := policy.Fingerprint(a), policy.Fingerprint(b)
	if p == 0 || q == 0 {
		return 0, false
	}
	return policy.Similarity(p, q), true
}

// byTrigrams is the yardstick that the fingerprint estimates: the number of
// three-word sequences that two normalised texts share, as a share of those
// that either has. Empty text is like nothing.
func byTrigrams(a, b string) float64 {
	const inA, inB = 1, 2
	seen := map[string]uint8{}
	for t := range trigrams(policy.Normalise(a)) {
		seen[t] = inA
	}
	both := 0
	for t := range trigrams(policy.Normalise(b)) {
		if seen[t] == inA {
			both++
		}
		seen[t] |= inB
	}
	if len(seen) == 0 {
		return 0
	}
	return float64(both) / float64(len(seen))
}

// trigrams yields every three consecutive words of a normalised text; a shorter
// text is yielded whole.
func trigrams(normal string) iter.Seq[string] {
	return func(yield func(string) bool) {
		first, second, words := 0, 0, 0 // where the two words before this one start
		for at := 0; at < len(normal); words++ {
			end := len(normal)
			if n := strings.IndexByte(normal[at:], ' '); n >= 0 {
				end = at + n
			}
			if words >= 2 && !yield(normal[first:end]) {
				return
			}
			first, second, at = second, at, end+1
		}
		if words == 1 || words == 2 {
			yield(normal)
		}
	}
}
