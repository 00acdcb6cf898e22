package simhash

import (
	"crypto/hmac"
	"crypto/sha256"
	"os"
	"strings"
	"testing"
)

// benchTexts returns the two texts for which we publish the speed of Fingerprint: words (nothing is removed) and log
// lines (much is removed).
func benchTexts(b *testing.B) map[string]string {
	b.Helper()
	log, err := os.ReadFile("testdata/log.txt")
	if err != nil {
		b.Fatal(err)
	}
	words := "the quick brown fox jumps over a lazy dog while some other animals of the forest look on and say nothing\n"
	const size = 1 << 20
	fill := func(text string) string { return strings.Repeat(text, size/len(text)+1)[:size] }
	return map[string]string{"words": fill(words), "log": fill(string(log))}
}

func BenchmarkFingerprint(b *testing.B) {
	for name, text := range benchTexts(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Fingerprint(text)
			}
		})
	}
}

func BenchmarkReference(b *testing.B) {
	for name, text := range benchTexts(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				referenceFingerprint(text)
			}
		})
	}
}

// BenchmarkHMAC is the baseline: the cost of checking a webhook's signature for the same bytes.
func BenchmarkHMAC(b *testing.B) {
	for name, text := range benchTexts(b) {
		b.Run(name, func(b *testing.B) {
			data := []byte(text)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				h := hmac.New(sha256.New, []byte("It's a Secret to Everybody"))
				h.Write(data)
				h.Sum(nil)
			}
		})
	}
}
