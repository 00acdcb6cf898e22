package main

import (
	"testing"
)

func TestTextWithoutFingerprintMatchesNothing(t *testing.T) {
	for _, pair := range [][2]string{{"", ""}, {"", "a b c"}, {"2025-11-13T09:01:00Z", " \n"}} {
		if s, known := byPrint("diff", pair[0], pair[1]); s != 0 || known {
			t.Errorf("%q: similarity %v, known %v", pair, s, known)
		}
	}
	if s, known := byPrint("diff", "a b c", "a b c"); s != 1 || !known {
		t.Errorf("equal texts: similarity %v, known %v", s, known)
	}
}
