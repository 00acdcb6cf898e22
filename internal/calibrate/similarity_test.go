package calibrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTrigramsAreSharedByHand(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"a b c d", "a b c e", 1.0 / 3},   // abc, bcd; abc, bce
		{"a b c a b c", "a b c", 1.0 / 3}, // abc, bca, cab; abc
		{"a b", "A  b\n", 1},              // shorter than three words: the whole
		{"a b", "a b c", 0},
		{"a", "b", 0},
		{"", "a", 0},
		{"", "", 0},
	} {
		if got := byTrigrams(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestTrigramsAreThoseOfTheWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[ab]{1,3}`)).Draw(t, "words")
		want := map[string]bool{}
		for i := range max(0, len(words)-2) {
			want[strings.Join(words[i:i+3], " ")] = true
		}
		if len(words) == 1 || len(words) == 2 {
			want[strings.Join(words, " ")] = true
		}
		if diff := cmp.Diff(want, trigrams(strings.Join(words, " "))); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestTextWithoutAFingerprintIsLikeNothing(t *testing.T) {
	for _, pair := range [][2]string{{"", ""}, {"", "a b c"}, {"2025-11-13T09:01:00Z", " \n"}} {
		if s, known := byPrint("diff", pair[0], pair[1]); s != 0 || known {
			t.Errorf("%q: similarity %v, known %v", pair, s, known)
		}
	}
	if s, known := byPrint("diff", "a b c", "a b c"); s != 1 || !known {
		t.Errorf("equal texts: similarity %v, known %v", s, known)
	}
}
