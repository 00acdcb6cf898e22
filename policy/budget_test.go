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
		f.Limits.TokensPerDay = rapid.Int64Range(0, 5000).Draw(t, "tokens a day")
		f.Limits.USDPerDay = rapid.Float64Range(0, 5).Draw(t, "USD a day")
		var recent int64
		for range rapid.IntRange(0, 5).Draw(t, "attempts") {
			age := time.Duration(rapid.IntRange(0, 48).Draw(t, "age")) * time.Hour
			a := Attempt{StartedAt: now.Add(-age), Tokens: rapid.Int64Range(0, 2000).Draw(t, "tokens"), CostUSD: rapid.Float64Range(0, 2).Draw(t, "USD")}
			f.Attempts = append(f.Attempts, a)
			if age < day {
				recent += a.Tokens
			}
		}
		tokens, usd := Left(f)
		if (tokens == 0) != (f.Limits.TokensPerDay == 0) || (usd == 0) != (f.Limits.USDPerDay == 0) {
			t.Fatalf("%d tokens and %f USD are left of %d and %f; only no bound is 0", tokens, usd, f.Limits.TokensPerDay, f.Limits.USDPerDay)
		}
		if _, stopped := budget(f); !stopped && tokens > 0 && recent+tokens != f.Limits.TokensPerDay {
			t.Fatalf("%d tokens were used, %d are left, and an attempt may start on a budget of %d", recent, tokens, f.Limits.TokensPerDay)
		}
	})
}
