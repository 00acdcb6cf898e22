package policy

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRemainingDailyLimitsMatchTheRule(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		f := Facts{Now: now, Limits: Defaults(), Fresh: []Request{{Seq: 1}}}
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
		if got := f.Thread().Tokens; got != recent {
			t.Fatalf("%d tokens count, %d were used in a day", got, recent)
		}
		slices.SortFunc(f.Attempts, func(a, b Attempt) int { return a.StartedAt.Compare(b.StartedAt) })
		d := day(f)
		if (d.Action != "") != (f.Thread().Spent() != "") {
			t.Fatalf("%+v, with %s", d, f.Thread())
		}
		if d.Action == "" {
			return
		}
		before, then, raised := f, f, f
		before.Now, then.Now, raised.Raised = d.Until.Add(-time.Nanosecond), d.Until, len(f.Attempts)
		if before.Thread().Spent() == "" || then.Thread().Spent() != "" || raised.Thread().Spent() != "" {
			t.Fatalf("a wait from %s to %s: before its end %s, then %s, after a raise %s", f.Now, d.Until, before.Thread(), then.Thread(), raised.Thread())
		}
	})
}

func TestFailingChecksStopAfterTheLadder(t *testing.T) {
	byChecks := Attempt{Receipt: Receipt{Ending: Completed, Outcome: WorkUnverified, StartTree: "before", EndTree: moved}, NewInput: true, ByChecks: true}
	byPeople := byChecks
	byPeople.ByChecks = false
	again := Attempt{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Verify: []Verified{{}}, StartTree: "before", EndTree: moved}}
	fails := func(f Facts) Facts {
		f.Fresh = append(f.Fresh, Request{Seq: 1, At: noon, Source: FromCheckRun})
		return f
	}
	attempt := Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}
	stop := Decision{Action: DoStop, Rule: "checks_failed"}
	read(t, []sentence{
		{"the first failing check starts an attempt", fails(given(byPeople)), attempt},
		{"the third starts an attempt", fails(given(byPeople, byChecks, byChecks)), attempt},
		{"the fourth does not", fails(given(byPeople, byChecks, byChecks, byChecks)), stop},
		{"Pawl's own retries do not restart the count", fails(given(byPeople, byChecks, again, byChecks, again, byChecks)), stop},
		{"a user's feedback restarts the count", fails(given(byChecks, byChecks, byChecks, byPeople)), attempt},
		{"a user's command starts an attempt after the limit", fails(given(byChecks, byChecks, byChecks)).asked("solve"), attempt},
	})
}

func TestUnattendedEventsStartFiveAttempts(t *testing.T) {
	begun := func(n int, typed bool) Attempt {
		a := finished()
		a.N, a.Run, a.NewInput, a.Typed = n, n, true, typed
		return a
	}
	after := func(all ...Attempt) Facts {
		f := given(all...)
		for i := range f.Attempts {
			f.Attempts[i].Run = i + 1
		}
		f.Run = len(all) + 1
		return f
	}
	robots := []Attempt{begun(1, true), begun(2, false), begun(3, false), begun(4, false), begun(5, false)}
	goesOn := Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}
	stops := Decision{Action: DoStop, Rule: "unattended", Reasons: wanted("5 attempts in a row came from repeated comments or from what may be a program; the limit is 5")}
	decides(t, untyped(after(robots...).asked("")), goesOn)
	robots = append(robots, begun(6, false))
	decides(t, untyped(after(robots...).asked("")), stops)
	decides(t, untyped(after(robots...).asked("retry")), stops)
	decides(t, after(robots...).asked(""), goesOn)
	decides(t, untyped(after(append(robots, begun(7, true))...).asked("")), goesOn)
	// Attempts that only continue a run do not count as unattended.
	decides(t, after(append(robots[:5:5], fruitless())...).with(func(f *Facts) { f.Run = 6 }), Decision{Action: DoStop, Rule: "no_progress"})
}

func TestDailyCapUsedUpTwiceNeedsAUser(t *testing.T) {
	spread := func(over time.Duration, n int) Facts {
		all := make([]Attempt, n)
		for i := range all {
			all[i] = finished()
		}
		f := given(all...)
		for i := range f.Attempts {
			a := &f.Attempts[i]
			a.Run, a.NewInput, a.Typed = i+1, true, i%3 == 0
			a.StartedAt = noon.Add(-over + time.Duration(i+1)*over/time.Duration(n+1))
			a.EndedAt = a.StartedAt.Add(time.Minute)
		}
		f.Run = n + 1
		return f
	}
	stop := Decision{Action: DoStop, Rule: "daily_cap", Reasons: wanted("used up two days in a row")}
	goesOn := Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}
	decides(t, untyped(spread(2*Day+50*time.Minute, 120).asked("")), stop)
	decides(t, spread(2*Day+50*time.Minute, 120).asked(""), goesOn)
	decides(t, untyped(spread(2*Day+50*time.Minute, 119).asked("")), goesOn)
	decides(t, untyped(spread(3*Day, 120).asked("")), goesOn)
}
