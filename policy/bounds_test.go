package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWhatIsLeftOfADayAndTheRuleAgree(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		f := Facts{Now: now, Limits: Defaults(), Fresh: []Trigger{{Seq: 1}}}
		f.Limits.Budget.TokensPerThreadPerDay = rapid.Int64Range(0, 5000).Draw(t, "tokens a day")
		f.Limits.Budget.USDPerThreadPerDay = rapid.Float64Range(0, 5).Draw(t, "USD a day")
		var recent int64
		for range rapid.IntRange(0, 5).Draw(t, "attempts") {
			age := time.Duration(rapid.IntRange(0, 48).Draw(t, "age")) * time.Hour
			in, out, cost := rapid.Int64Range(0, 1000).Draw(t, "in"), rapid.Int64Range(0, 1000).Draw(t, "out"), rapid.Float64Range(0, 2).Draw(t, "USD")
			a := Attempt{Receipt: Receipt{Tokens: Tokens{Input: in, Output: out}, CostUSD: &cost}, StartedAt: now.Add(-age)}
			f.Attempts = append(f.Attempts, a)
			if age < Day {
				recent += in + out
			}
		}
		tokens, usd := Left(f)
		if (tokens == 0) != (f.Limits.Budget.TokensPerThreadPerDay == 0) || (usd == 0) != (f.Limits.Budget.USDPerThreadPerDay == 0) {
			t.Fatalf("%d tokens and %f USD are left of %d and %f; only no bound is 0", tokens, usd, f.Limits.Budget.TokensPerThreadPerDay, f.Limits.Budget.USDPerThreadPerDay)
		}
		if _, stopped := budget(f); !stopped && tokens > 0 && recent+tokens != f.Limits.Budget.TokensPerThreadPerDay {
			t.Fatalf("%d tokens were used, %d are left, and an attempt may start on a budget of %d", recent, tokens, f.Limits.Budget.TokensPerThreadPerDay)
		}
	})
}

func TestFailingChecksAskNoMoreThanTheLadderAllows(t *testing.T) {
	byChecks := Attempt{Receipt: Receipt{Ending: Completed, Outcome: Edited, StartTree: "before", EndTree: moved}, NewInput: true, ByChecks: true}
	byPeople := byChecks
	byPeople.ByChecks = false
	again := Attempt{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Verify: []Verified{{}}, StartTree: "before", EndTree: moved}}
	fails := func(f Facts) Facts {
		f.Fresh = append(f.Fresh, Trigger{Seq: 1, At: noon.Add(-gatherChecks), Source: FromCheckRun})
		return f
	}
	attempt := Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}
	stop := Decision{Action: DoStop, Rule: "checks_failed"}
	read(t, []sentence{
		{"they ask for an attempt", fails(given(byPeople)), attempt},
		{"and for more", fails(given(byPeople, byChecks, byChecks)), attempt},
		{"but not without end", fails(given(byPeople, byChecks, byChecks, byChecks)), stop},
		{"whatever Pawl itself tried between", fails(given(byPeople, byChecks, again, byChecks, again, byChecks)), stop},
		{"a person begins it anew", fails(given(byChecks, byChecks, byChecks, byPeople)), attempt},
		{"and is always heard", fails(given(byChecks, byChecks, byChecks)).asked("solve"), attempt},
	})
}
