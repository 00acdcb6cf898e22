package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoffFollowsTheFormulaOfTheIncident(t *testing.T) {
	want := map[int]time.Duration{
		1: 0, 9: 0, 10: 0,
		11: 2 * time.Second, 12: 4 * time.Second, 13: 8 * time.Second, 14: 16 * time.Second,
		15: 32 * time.Second, 16: 64 * time.Second, 17: 128 * time.Second, 18: 256 * time.Second,
		19: 300 * time.Second, 20: 300 * time.Second, 50: 300 * time.Second,
	}
	for n, pause := range want {
		if got := Backoff(n, 10, 300*time.Second); got != pause {
			t.Errorf("restart %d waits %s, want %s", n, got, pause)
		}
	}
}

func TestBackoffNeverShrinksAndStaysWithinItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-5, 1<<40).Draw(t, "restart")
		after := rapid.IntRange(0, 100).Draw(t, "after")
		most := time.Duration(rapid.Int64Range(0, int64(365*24*time.Hour)).Draw(t, "cap"))
		pause, next := Backoff(n, after, most), Backoff(n+1, after, most)
		if pause < 0 || pause > most || next < pause {
			t.Fatalf("restart %d waits %s and the next %s; the cap is %s", n, pause, next, most)
		}
		if n <= after && pause != 0 {
			t.Fatalf("restart %d waits %s, but waits begin after %d", n, pause, after)
		}
	})
}
