package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAClockThatWasAheadKeepsNobodyWaiting(t *testing.T) {
	year := 365 * 24 * time.Hour
	limited := Attempt{Receipt: Receipt{Ending: UsageLimit, Outcome: Outcome(UsageLimit)}}
	ahead := func(f *Facts) {
		f.Limits.UsageLimit.AutoContinue = true
		f.Attempts[0].StartedAt, f.Attempts[0].EndedAt, f.Attempts[0].Limit = noon.Add(year), noon.Add(year), &Limit{ResetsAt: noon.Add(year + time.Hour)}
		for i := range f.Backends {
			f.Backends[i].Breaker = Breaker{Kind: UsageLimit, Consecutive: 1, ResetsAt: noon.Add(year + time.Hour), At: noon.Add(year)}
			f.Backends[i].Rest.Until = noon.Add(year)
		}
	}
	handed := given().asked("").with(func(f *Facts) { f.Handed = HandOver{Times: 12, At: noon.Add(year)} })
	for _, f := range []Facts{given(limited).with(ahead), handed} {
		if d := Next(f); d.Action == DoWait && d.Until.After(noon.Add(maxAhead)) {
			t.Errorf("it waits until %s: %v", d.Until, d.Reasons)
		}
	}
}

// TestNoWaitIsLongerThanAnythingMayBeWaitedFor holds whatever clocks wrote.
func TestNoWaitIsLongerThanAnythingMayBeWaitedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Custom(func(t *rapid.T) time.Time {
			return noon.Add(time.Duration(rapid.Int64Range(-2*365*24, 2*365*24).Draw(t, "hours")) * time.Hour)
		})
		a := Attempt{Run: 1, Backend: "codex", Account: "main", StartedAt: at.Draw(t, "started"), EndedAt: at.Draw(t, "ended"), Receipt: Receipt{N: 1,
			Limit:  &Limit{ResetsAt: at.Draw(t, "reset"), Source: rapid.SampledFrom([]string{SourceStructured, SourceText}).Draw(t, "source")},
			Ending: rapid.SampledFrom([]Ending{UsageLimit, TimedOut, Completed, Killed}).Draw(t, "ending"),
		}}
		if rapid.Bool().Draw(t, "progress") {
			a.StartTree, a.EndTree = "before", moved
		}
		a.Outcome = Outcome(a.Ending)
		f := Facts{Now: noon, Limits: Defaults(), Run: 1, Attempts: []Attempt{a}, Handed: HandOver{Times: rapid.IntRange(0, 20).Draw(t, "handed over"), At: at.Draw(t, "handed over at")}, Backends: []Backend{{
			Name: "codex", Account: "main", Rest: Rest{Until: at.Draw(t, "cooldown")},
			Breaker: Breaker{Kind: UsageLimit, Consecutive: rapid.IntRange(0, 3).Draw(t, "limits"), ResetsAt: at.Draw(t, "breaker")}}}}
		f.Limits.UsageLimit.AutoContinue = rapid.Bool().Draw(t, "auto continue")
		if d := Next(f); d.Action == DoWait && d.Until.After(noon.Add(maxAhead)) {
			t.Fatalf("it waits until %s: %v", d.Until, d.Reasons)
		}
	})
}
