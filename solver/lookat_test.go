package solver

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

func TestCheckResultsPostponeTheLookForTenMinutes(t *testing.T) {
	first := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		last, now time.Duration // since the first failure
		next      time.Duration // 0: now
		urgent    bool
	}{
		"a result just now":                     {time.Minute, time.Minute, 70 * time.Second, false},
		"no result for ten seconds":             {time.Minute, 70 * time.Second, 0, false},
		"a result per second for ten minutes":   {600 * time.Second, 600 * time.Second, 0, true},
		"a result per second for slightly less": {595 * time.Second, 595 * time.Second, 600 * time.Second, false},
		"a result with a time in the future":    {time.Hour, time.Minute, 0, false},
	} {
		next, urgent, due := lookAt(thread.Red{First: first, Last: first.Add(tc.last)}, first.Add(tc.now))
		want := time.Time{}
		if tc.next > 0 {
			want = first.Add(tc.next)
		}
		if !next.Equal(want) || urgent != tc.urgent || due != want.IsZero() {
			t.Errorf("%s: next %v, urgent %t, due %t; want %v, %t", name, next, urgent, due, want, tc.urgent)
		}
	}
}
