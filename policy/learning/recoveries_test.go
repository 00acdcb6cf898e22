package learning_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

func TestRecoveriesAreCountedByWeeks(t *testing.T) {
	now := time.Date(2026, 3, 30, 9, 0, 0, 0, time.UTC)
	rung := func(n, times, helped int, recovered, unneeded bool) policy.Rung {
		return policy.Rung{Rung: n, Times: times, Helped: helped, Recovered: recovered, Unneeded: unneeded}
	}
	similar := func(v float64) *float64 { return &v }
	rows := []learning.Graded{
		{At: now.Add(-time.Hour), Fired: learning.FiredIn([]policy.Rung{rung(1, 4, 2, false, false), rung(2, 0, 0, true, false)}), Similarity: similar(1)},
		{At: now.Add(-2 * time.Hour), Fired: learning.FiredIn([]policy.Rung{rung(2, 0, 0, false, false), rung(4, 3, 0, true, true)}), Similarity: similar(0.52)},
		{At: now.Add(-20 * 24 * time.Hour), Fired: learning.FiredIn([]policy.Rung{rung(3, 1, 1, true, false), rung(9, 1, 1, true, false)}), Similarity: similar(0.5)},
		{At: now.Add(-100 * 24 * time.Hour), Fired: learning.FiredIn([]policy.Rung{rung(3, 1, 1, true, false)})},
	}
	for i := range rows {
		rows[i].ID = fmt.Sprint("o/r#", i)
	}
	l := learning.Learn(rows, now)
	var got []string
	for _, w := range l.Weeks() {
		s := fmt.Sprint(w.Attempts)
		for _, f := range w.Rungs {
			s += fmt.Sprintf(" %d/%d", f.Recovered, f.Times)
		}
		got = append(got, s)
	}
	if diff := cmp.Diff([]string{"2 2/4 1/2 0/0 0/0", "0 0/0 0/0 0/0 0/0", "1 0/0 0/0 1/1 0/0"}, got); diff != "" {
		t.Error(diff)
	}
	bins := l.Similarities()
	if len(bins) != 20 || bins[10] != 2 || bins[19] != 1 {
		t.Errorf("similarities %v", bins)
	}
	if none := learning.Learn(nil, now); len(none.Weeks()) > 0 || len(none.Similarities()) > 0 {
		t.Error("without attempts there is nothing to show")
	}
}
