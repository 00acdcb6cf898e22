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
	costs := func(r policy.Rung, tokens int64, usd *float64, ms int64) policy.Rung {
		r.Tokens, r.CostUSD, r.MS = tokens, usd, ms
		return r
	}
	rows := []learning.Graded{
		{At: now.Add(-time.Hour), Fired: learning.FiredIn([]policy.Rung{costs(rung(1, 4, 2, false, false), 900, nil, 0), costs(rung(2, 0, 0, true, false), 5000, similar(0.25), 60_000)}), Similarity: similar(1)},
		{At: now.Add(-2 * time.Hour), Fired: learning.FiredIn([]policy.Rung{costs(rung(2, 0, 0, false, false), 7000, similar(0.5), 30_000), rung(4, 3, 0, true, true)}), Similarity: similar(0.52)},
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
	got = nil
	for _, f := range learning.Rungs(l.Weeks()) {
		usd := "unknown"
		if f.CostUSD != nil {
			usd = fmt.Sprint(*f.CostUSD)
		}
		got = append(got, fmt.Sprintf("%d/%d, %d tokens of %d, %s USD of %d, %s", f.Recovered, f.Times, f.Tokens, f.Counted, usd, f.Priced, f.Took()))
	}
	if diff := cmp.Diff([]string{
		"2/4, 900 tokens of 4, unknown USD of 0, 0s", "1/2, 12000 tokens of 2, 0.75 USD of 2, 1m30s",
		"1/1, 0 tokens of 0, unknown USD of 0, 0s", "0/0, 0 tokens of 0, unknown USD of 0, 0s",
	}, got); diff != "" {
		t.Error(diff)
	}
	bins := l.Similarities()
	if len(bins) != 20 || bins[10] != 2 || bins[19] != 1 {
		t.Errorf("similarities %v", bins)
	}
	if none := learning.Learn(nil, now); len(none.Weeks())+len(none.Similarities())+len(none.FirstTries()) > 0 {
		t.Error("recoveries are shown without attempts")
	}
}

// passes is a receipt of work that passes its verify commands.
func passes() policy.Receipt {
	return policy.Receipt{
		Ending: policy.Completed, Outcome: policy.WorkVerified, StartTree: "1", EndTree: "2",
		Verify: []policy.Verified{{Passed: true, Runner: "go"}},
	}
}

func TestFirstTryPassesWithoutARecovery(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*policy.Receipt)
		want   string
	}{
		{"verified", func(*policy.Receipt) {}, "passed"},
		{"commands exit with 0, and no runner is recognised", func(r *policy.Receipt) {
			r.Outcome, r.Verify[0].Runner = policy.WorkUnverified, ""
		}, "passed"},
		{"the runner ran no test", func(r *policy.Receipt) { r.Outcome, r.Verify[0].NoTests = policy.WorkUnverified, true }, "not"},
		{"a test fails as it did on the base", func(r *policy.Receipt) {
			r.Outcome, r.Verify[0] = policy.WorkUnverified, policy.Verified{Exit: 1, Runner: "go", Known: []string{"TestA"}}
		}, "not"},
		{"verification failed", func(r *policy.Receipt) {
			r.Outcome, r.Verify[0] = policy.VerifyFailed, policy.Verified{Exit: 1, Runner: "go", Failing: []policy.Failing{{Name: "TestA"}}}
		}, "not"},
		{"the gateway retried", func(r *policy.Receipt) { r.Rungs = []policy.Rung{{Rung: 1, Times: 1, Helped: 1, Recovered: true}} }, "not"},
		{"the agent's own tests failed first", func(r *policy.Receipt) { r.Rungs = []policy.Rung{{Rung: 4, Times: 2, Recovered: true}} }, "not"},
		{"the agent's own tests passed at once", func(r *policy.Receipt) { r.Rungs = []policy.Rung{{Rung: 4, Times: 2, Unneeded: true}} }, "passed"},
		{"nothing changed", func(r *policy.Receipt) { r.Outcome, r.Verify, r.EndTree = policy.NoChange, nil, "1" }, "not"},
		{"an edit loop", func(r *policy.Receipt) { r.Outcome, r.Verify = policy.EditLoop, nil }, "not"},
		{"a command cannot work", func(r *policy.Receipt) {
			r.Outcome, r.Verify[0] = policy.VerifyFailed, policy.Verified{Exit: 127, Broken: "make is missing"}
		}, "not counted"},
		{"a usage limit", func(r *policy.Receipt) { r.Ending, r.Outcome, r.Verify = policy.UsageLimit, policy.WasUsageLimit, nil }, "not counted"},
		{"a question", func(r *policy.Receipt) { r.Outcome, r.Verify = policy.Asked, nil }, "not counted"},
	} {
		r := passes()
		tc.change(&r)
		got := "not counted"
		if try := (learning.AttemptFacts{Outcome: r.Outcome}).FirstTry(r); try != nil {
			got = map[bool]string{true: "passed", false: "not"}[*try]
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestFirstTriesAreCountedByBackend(t *testing.T) {
	now := time.Date(2026, 3, 30, 9, 0, 0, 0, time.UTC)
	yes, no := true, false
	var rows []learning.Graded
	for i, row := range []struct {
		backend string
		try     *bool
		days    int
	}{
		{"codex", &yes, 1}, {"codex", &no, 2}, {"codex", nil, 2}, {"codex", &yes, 50},
		{"claude", &no, 1}, {"gemini", nil, 1}, {"gemini", &yes, 57},
	} {
		rows = append(rows, learning.Graded{ID: fmt.Sprint("o/r#", i), At: now.AddDate(0, 0, -row.days), Backend: row.backend, FirstTry: row.try})
	}
	want := []learning.FirstTries{{Backend: "claude", Runs: 1}, {Backend: "codex", Runs: 3, Passed: 2}}
	if diff := cmp.Diff(want, learning.Learn(rows, now).FirstTries()); diff != "" {
		t.Error(diff)
	}
}
