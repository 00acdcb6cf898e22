package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHeadroomHoldsAnAccount(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	reset, week := now.Add(2*time.Hour), now.Add(72*time.Hour)
	user, bot, event := Request{Typed: true}, Request{Typed: true, Bot: true}, Request{}
	window := func(name string, used float64, resets time.Time, uses ...float64) Meter {
		return Meter{Window{Name: name, Used: used, ResetsAt: resets, SeenAt: now}, map[string][]float64{"codex": uses}}
	}
	for name, c := range map[string]struct {
		meters []Meter
		fresh  Request
		until  time.Time // zero: it begins
		why    string
		firm   bool
	}{
		"no window":                    {fresh: event},
		"room for anybody":             {[]Meter{window("5h", 0.84, reset)}, event, time.Time{}, "", false},
		"the reserve, for an event":    {[]Meter{window("5h", 0.86, reset)}, event, reset, "account main: 86 % of the 5h window is used, and 85 % may be; nothing is left until", false},
		"the reserve, for a bot":       {[]Meter{window("5h", 0.86, reset)}, bot, reset, "account main: 86 % of the 5h window is used, and 85 % may be; nothing is left until", false},
		"the reserve, for a user":      {[]Meter{window("5h", 0.86, reset)}, user, time.Time{}, "", false},
		"at the hold":                  {[]Meter{window("5h", 0.95, reset)}, user, reset, "account main: 95 % of the 5h window is used, and 95 % may be; nothing is left until", true},
		"above full":                   {[]Meter{window("5h", 1.2, reset)}, user, reset, "account main: 120 % of the 5h window is used, and 95 % may be; nothing is left until", true},
		"too little for an attempt":    {[]Meter{window("5h", 0.91, reset, 0.01, 0.06, 0.9)}, user, reset, "account main: an attempt uses about 6 % of the 5h window; 4 % is left until", true},
		"enough for an attempt":        {[]Meter{window("5h", 0.88, reset, 0.01, 0.06, 0.9)}, user, time.Time{}, "", false},
		"another backend uses more":    {[]Meter{{Window{Name: "5h", Used: 0.5, ResetsAt: reset}, map[string][]float64{"claude": {0.9}}}}, user, time.Time{}, "", false},
		"a reset that has passed":      {[]Meter{window("5h", 1, now)}, event, time.Time{}, "", false},
		"a reset that nobody reported": {[]Meter{window("5h", 1, time.Time{})}, event, time.Time{}, "", false},
		"the later of two resets":      {[]Meter{window("5h", 1, reset), window("7d", 0.9, week)}, event, week, "account main: 90 % of the 7d window is used, and 85 % may be; nothing is left until", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := Backend{Name: "codex", Account: "main", Meters: c.meters}
			f := Facts{Now: now, Limits: Defaults(), Backends: []Backend{b}, Fresh: []Request{c.fresh}}
			got := f.heldByHeadroom(b)
			var want *hold
			if !c.until.IsZero() {
				want = &hold{Reason{RuleHeadroom, c.why, c.until}, c.until, RuleHeadroom, c.firm}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(hold{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHeldAccountLeavesTheAttemptToAnother(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	full := []Meter{{Window: Window{Name: "5h", Used: 0.97, ResetsAt: now.Add(time.Hour)}}}
	f := Facts{
		Now: now, Limits: Defaults(), Run: 1, Fresh: []Request{{Typed: true}},
		Backends: []Backend{{Name: "a", Account: "a", Meters: full}, {Name: "b", Account: "b"}},
	}
	if d := Next(f); d.Action != DoAttempt || d.Backend != "b" {
		t.Errorf("%+v, want an attempt on b", d)
	}
	f.Pinned = "a"
	got := Next(f)
	got.Reasons, got.Purpose = nil, ""
	want := Decision{Action: DoWait, Rule: RuleHeadroom, Until: now.Add(time.Hour), Hint: hintHeadroom}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAMeterKeepsTheNewestReadingAndTheLastUses(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	newer, older := Window{Name: "5h", Used: 0.3, SeenAt: now}, Window{Name: "5h", Used: 0.9, SeenAt: now.Add(-time.Second)}
	var m Meter
	m = m.Seen(newer).Seen(older)
	if m.Window != newer {
		t.Errorf("%+v, want the newer reading", m.Window)
	}
	for n := range 30 {
		m = m.Spent("codex", float64(n))
	}
	if got := m.Typical("codex"); len(m.Uses["codex"]) != maxUses || got != 20 {
		t.Errorf("%d uses with median %v, want %d with 20", len(m.Uses["codex"]), got, maxUses)
	}
}

func TestTheForecastOfAWindow(t *testing.T) {
	seen := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	hour := time.Hour
	for name, c := range map[string]struct {
		used         float64
		length, left time.Duration
		want         time.Duration // after seen; negative: not before the reset, or unknown
	}{
		"half used in two of five hours": {0.5, 5 * hour, 3 * hour, 2 * hour},
		"slow enough":                    {0.2, 5 * hour, 3 * hour, -1},
		"full":                           {1, 5 * hour, 3 * hour, 0},
		"nothing used":                   {0, 5 * hour, 3 * hour, -1},
		"an unknown length":              {0.5, 0, 3 * hour, -1},
	} {
		w := Window{Used: c.used, Length: c.length, SeenAt: seen, ResetsAt: seen.Add(c.left)}
		at, before := w.FullAt()
		if before != (c.want >= 0) || before && !at.Equal(seen.Add(c.want)) {
			t.Errorf("%s: full at %s (before the reset: %v), want %s", name, at, before, c.want)
		}
	}
}
