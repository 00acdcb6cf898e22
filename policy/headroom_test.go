package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHeadroomHoldsAnAccount(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	reset, week := now.Add(2*time.Hour), now.Add(72*time.Hour)
	user, repeated := Request{Typed: true}, Request{Command: "solve"}
	bot, event := Request{Typed: true, Command: "solve", Bot: true}, Request{}
	window := func(name string, used float64, resets time.Time, uses ...float64) Meter {
		return Meter{Window: Window{Name: name, Used: used, ResetsAt: resets, SeenAt: now}, Uses: map[string][]float64{"codex": uses}}
	}
	for name, c := range map[string]struct {
		meters []Meter
		fresh  Request
		until  time.Time // zero if the attempt starts
		why    string
		firm   bool
	}{
		"no window":                           {fresh: event},
		"room for any attempt":                {[]Meter{window("5h", 0.84, reset)}, event, time.Time{}, "", false},
		"the reserve, for an event":           {[]Meter{window("5h", 0.86, reset)}, event, reset, "account main: 86 % of the 5h window is used, and 85 % may be; nothing is left until", false},
		"the reserve, for a bot":              {[]Meter{window("5h", 0.86, reset)}, bot, reset, "account main: 86 % of the 5h window is used, and 85 % may be; nothing is left until", false},
		"the reserve, for a user":             {[]Meter{window("5h", 0.86, reset)}, user, time.Time{}, "", false},
		"the reserve, for a repeated command": {[]Meter{window("5h", 0.86, reset)}, repeated, time.Time{}, "", false},
		"at the hold":                         {[]Meter{window("5h", 0.95, reset)}, user, reset, "account main: 95 % of the 5h window is used, and 95 % may be; nothing is left until", true},
		"above 100 %":                         {[]Meter{window("5h", 1.2, reset)}, user, reset, "account main: 120 % of the 5h window is used, and 95 % may be; nothing is left until", true},
		"too little for an attempt":           {[]Meter{window("5h", 0.91, reset, 0.01, 0.06, 0.9)}, user, reset, "account main: an attempt uses about 6 % of the 5h window; 4 % is left until", true},
		"enough for an attempt":               {[]Meter{window("5h", 0.88, reset, 0.01, 0.06, 0.9)}, user, time.Time{}, "", false},
		"another backend uses more":           {[]Meter{{Window: Window{Name: "5h", Used: 0.5, ResetsAt: reset}, Uses: map[string][]float64{"claude": {0.9}}}}, user, time.Time{}, "", false},
		"a reset that has passed":             {[]Meter{window("5h", 1, now)}, event, time.Time{}, "", false},
		"an unreported reset":                 {[]Meter{window("5h", 1, time.Time{})}, event, time.Time{}, "", false},
		"the later of two resets":             {[]Meter{window("5h", 1, reset), window("7d", 0.9, week)}, event, week, "account main: 90 % of the 7d window is used, and 85 % may be; nothing is left until", true},
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

func TestAttemptUsesAnotherAccountIfOneIsHeld(t *testing.T) {
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

func TestMeterKeepsTheNewestReadingAndTheLastUses(t *testing.T) {
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

// TestAnotherModelsWindowDoesNotHoldAnAttempt: an account's windows include windows of single models.
func TestAnotherModelsWindowDoesNotHoldAnAttempt(t *testing.T) {
	measured, some, none := make([]float64, maxUses), make([]float64, maxUses), make([]float64, maxUses)
	for i := range measured {
		measured[i] = 0.01
	}
	some[7] = 0.01
	for name, c := range map[string]struct {
		account, model []float64 // uses of the account's window and of the model's full window
		want           Action
	}{
		"nothing is measured":               {nil, nil, DoWait},
		"too few attempts":                  {measured[1:], nil, DoWait},
		"too few attempts, none used it":    {measured, none[1:], DoWait},
		"one of the attempts used it":       {measured, some, DoWait},
		"no attempt used it":                {measured, none, DoAttempt},
		"answers to the backend omit it":    {measured, nil, DoAttempt},
		"no attempt used any window so far": {none, none, DoWait},
	} {
		meters := slices.Concat(reading("7d", 0.2, Day), reading("7d_oi", 1, Day))
		meters[0].Uses = map[string][]float64{"claude": c.account, "fable": measured}
		meters[1].Uses = map[string][]float64{"claude": c.model, "fable": measured}
		f := twoAccounts(meters, nil)
		f.Backends = f.Backends[:1]
		if d := Next(f); d.Action != c.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Action, d.Reasons, c.want)
		}
		f.Backends[0].Meters[0].Length = 5 * time.Hour
		if d := Next(f); d.Action != DoWait {
			t.Errorf("%s: rounding may be the cause, but %s", name, d.Action)
		}
		f.Backends[0].Name = "fable"
		if d := Next(f); d.Action != DoWait {
			t.Errorf("%s: the window's own model gets %s", name, d.Action)
		}
	}
}

func TestUseOfAWindowBetweenTwoReadings(t *testing.T) {
	hour := time.Hour
	reading := func(used float64, at, resets time.Duration) Window {
		return Window{Name: "7d", Used: used, SeenAt: noon.Add(at), ResetsAt: noon.Add(resets)}
	}
	for name, c := range map[string]struct {
		from, to Window
		want     float64 // negative if unknown
		freed    bool
	}{
		"the same window":              {reading(0.3, 0, 9*hour), reading(0.5, hour, 9*hour), 0.2, false},
		"a late answer":                {reading(0.3, 0, 9*hour), reading(0.25, hour, 9*hour), 0, false},
		"a reset between the two":      {reading(0.3, 0, hour), reading(0.5, 2*hour, 9*hour), -1, false},
		"less used, after a reset":     {reading(1, 0, hour), reading(0.5, 2*hour, 9*hour), -1, false},
		"a rolling window":             {reading(0.3, 0, 168*hour), reading(0.5, hour, 169*hour), 0.2, false},
		"a rolling window forgets":     {reading(0.3, 0, 168*hour), reading(0.25, hour, 169*hour), -1, false},
		"quota given back":             {reading(1, 0, 9*hour), reading(0.03, hour, 9*hour), -1, true},
		"quota given back, new window": {reading(1, 0, 9*hour), reading(0.03, hour, 168*hour), -1, true},
	} {
		share, known := c.to.Since(c.from)
		if known != (c.want >= 0) || known && math.Abs(share-c.want) > 1e-9 {
			t.Errorf("%s: %v used (known: %t), want %v", name, share, known, c.want)
		}
		if freed := c.to.Freed(c.from); freed != c.freed {
			t.Errorf("%s: freed %t", name, freed)
		}
	}
}

func TestWindowForecast(t *testing.T) {
	seen := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	hour := time.Hour
	for name, c := range map[string]struct {
		used         float64
		length, left time.Duration
		want         time.Duration // time after the reading; negative if unknown, or if the window is not full before its reset
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

// twoAccounts returns facts with a user's request, a backend with two accounts, and a second backend.
func twoAccounts(first, second []Meter) Facts {
	return Facts{
		Now: noon, Limits: Defaults(), Run: 1, Fresh: []Request{{Typed: true, Command: "solve"}},
		Backends: []Backend{
			{Name: "claude", Account: "one", Meters: first},
			{Name: "claude", Account: "two", Meters: second},
			{Name: "codex", Account: "main"},
		},
	}
}

// reading returns a reading of a window of five hours or seven days.
func reading(name string, used float64, left time.Duration) []Meter {
	length := map[string]time.Duration{"5h": 5 * time.Hour, "7d": 7 * Day, "7d_oi": 7 * Day}[name]
	return []Meter{{Window: Window{Name: name, Used: used, ResetsAt: noon.Add(left), SeenAt: noon, Length: length}}}
}

func TestAttemptTakesTheAccountWithTheMostHeadroom(t *testing.T) {
	weekNearlyUsed := slices.Concat(reading("5h", 0.1, 4*time.Hour), reading("7d", 0.9, 6*Day))
	for name, c := range map[string]struct {
		first, second []Meter
		want          string // the account
	}{
		"the configured order without readings": {nil, nil, "one"},
		"less of one window is used":            {reading("5h", 0.6, time.Hour), reading("5h", 0.2, time.Hour), "two"},
		"equal use, but an earlier reset":       {reading("5h", 0.5, 4*time.Hour), reading("5h", 0.5, time.Hour), "two"},
		"more use, but a much earlier reset":    {reading("7d", 0.5, 6*Day), reading("7d", 0.7, 12*time.Hour), "two"},
		"the tightest window counts":            {weekNearlyUsed, reading("5h", 0.5, 4*time.Hour), "two"},
		"an unknown window is as good as empty": {reading("5h", 0.1, 4*time.Hour), nil, "two"},
		"a reset that has passed":               {reading("5h", 0.1, 4*time.Hour), reading("5h", 1, -time.Minute), "two"},
		"one account is full":                   {reading("5h", 0.96, 10*time.Minute), reading("5h", 0.9, 5*time.Hour), "two"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(twoAccounts(c.first, c.second))
			if d.Action != DoAttempt || d.Backend != "claude" || d.Account != c.want {
				t.Errorf("%+v, want an attempt of claude on %s", d, c.want)
			}
		})
	}
}

// Learning chooses among backends, not accounts. A backend is available if one of its accounts is.
func TestLearningChoosesBackendsNotAccounts(t *testing.T) {
	f := twoAccounts(reading("5h", 0.97, time.Hour), nil)
	var asked []Option
	f.Choose = func(options []Option) Choice {
		asked = options
		return Choice{Mode: ModeLearn, Chosen: "claude"}
	}
	d := Next(f)
	if diff := cmp.Diff([]Option{{Backend: "claude"}, {Backend: "codex"}}, asked); diff != "" {
		t.Error(diff)
	}
	if d.Backend != "claude" || d.Account != "two" {
		t.Errorf("%+v, want an attempt of claude on two", d)
	}
}

func TestContinuedSessionStaysOnItsAccount(t *testing.T) {
	last := finished()
	last.Backend, last.Account, last.Session, last.Resumable = "claude", "two", "s1", true
	after := func(meters []Meter) Facts {
		f := given(last)
		f.Backends, f.Fresh = twoAccounts(nil, meters).Backends, twoAccounts(nil, nil).Fresh
		return f
	}
	f := after(reading("5h", 0.9, 5*time.Hour))
	d := Next(f)
	if d.Account != "two" {
		t.Errorf("%+v, want account two", d)
	}
	if id, why := f.Resume(d, ""); id != "s1" {
		t.Errorf("session %q: %s", id, why)
	}
	f = after(reading("5h", 0.96, 5*time.Hour))
	d = Next(f)
	if d.Account != "one" {
		t.Errorf("%+v, want account one, as two is full", d)
	}
	if id, why := f.Resume(d, ""); id != "" || why != "a new session: another account" {
		t.Errorf("session %q: %s", id, why)
	}
}

func TestUsageLimitLeadsToTheNextAccount(t *testing.T) {
	reset := noon.Add(2 * time.Hour)
	f := twoAccounts(nil, nil)
	limited := atLimit(reset)
	limited.Backend, limited.Account = "claude", "one"
	g := given(limited).continuing()
	g.Backends, g.Fresh = f.Backends, nil
	g.Backends[0].Breaker = Breaker{Kind: UsageLimit, Consecutive: 1, ResetsAt: reset, At: noon}
	d := Next(g)
	if d.Action != DoAttempt || d.Backend != "claude" || d.Account != "two" {
		t.Fatalf("%+v, want an attempt of claude on two", d)
	}
	if want := "account one hit its usage limit; claude on account two is next"; d.Reasons.String() != want {
		t.Errorf("reasons %q, want %q", d.Reasons, want)
	}
	// Without a free account the wait ends when the first one is free.
	g.Backends = g.Backends[:2]
	g.Backends[1].Meters = reading("5h", 0.97, time.Hour)
	d = Next(g)
	if d.Action != DoWait || !d.Until.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v, want a wait until account two resets", d)
	}
	// Attempts in progress on the other account may end at any time.
	g.Backends[1].Meters = reading("5h", 0.75, 5*time.Hour)
	g.Backends[1].Meters[0].Uses = map[string][]float64{"claude": {0.06}}
	g.Backends[1].Running = 3
	d = Next(g)
	if d.Action != DoWait || !d.Until.IsZero() || d.Rule != RuleHeadroom {
		t.Errorf("%+v, want a wait without an end", d)
	}
}

func TestAttemptUsesAnotherAccountIfOneIsMisconfigured(t *testing.T) {
	broken := Attempt{Receipt: Receipt{Ending: Misconfigured, Outcome: WasConfig}, Backend: "claude", Account: "one"}
	f := given(broken)
	f.Backends = twoAccounts(nil, nil).Backends
	if d := Next(f); d.Action != DoAttempt || d.Account != "two" {
		t.Errorf("%+v, want an attempt on account two", d)
	}
}

func TestFullAccountIsNotProbed(t *testing.T) {
	f := given().asked("resume").alone().limited(3, time.Time{})
	f.Backends[0].Meters = reading("5h", 1, time.Hour)
	if d := Next(f); d.Action != DoWait || d.Rule != RuleHeadroom {
		t.Errorf("%+v, want a wait for headroom", d)
	}
}

func TestRunningAttemptsUseHeadroomToo(t *testing.T) {
	meters := reading("5h", 0.75, time.Hour)
	meters[0].Uses = map[string][]float64{"claude": {0.06}}
	for running, want := range map[int]Action{0: DoAttempt, 2: DoAttempt, 3: DoWait} {
		f := twoAccounts(meters, nil)
		f.Backends = f.Backends[:1]
		f.Backends[0].Running = running
		d := Next(f)
		if d.Action != want {
			t.Errorf("with %d running: %s (%s), want %s", running, d.Action, d.Reasons, want)
		}
		if want == DoWait && (!d.Until.IsZero() || d.Rule != RuleHeadroom) {
			t.Errorf("%+v, want a wait for the running attempts, whose end is unknown", d)
		}
	}
}

// After a reset, many waiting threads may not all start before an answer has reported the new window.
func TestFreshWindowIsNotOvercommitted(t *testing.T) {
	meters := reading("5h", 1, -time.Minute)
	meters[0].Uses = map[string][]float64{"claude": {0.3}}
	for running, want := range map[int]Action{0: DoAttempt, 2: DoAttempt, 3: DoWait, 12: DoWait} {
		f := twoAccounts(meters, nil)
		f.Backends = f.Backends[:1]
		f.Backends[0].Running = running
		d := Next(f)
		if d.Action != want || !d.Until.IsZero() {
			t.Errorf("with %d running: %s until %s (%s), want %s", running, d.Action, d.Until, d.Reasons, want)
		}
	}
}

// An agent can write anything into its session file, so a reading from it must not block other threads.
func TestAgentsUnconfirmedLimitHoldsOnlyItsThread(t *testing.T) {
	reset := noon.Add(time.Hour)
	window := func(used float64, minute int) Window {
		return Window{Name: "5h", Used: used, ResetsAt: reset, SeenAt: noon.Add(time.Duration(minute) * time.Minute)}
	}
	otherReset := window(1, 2)
	otherReset.ResetsAt = reset.Add(3 * time.Hour)
	var none Meter
	for name, c := range map[string]struct {
		meter        Meter
		own, another float64
	}{
		"one claim":                                 {none.Claimed("a", window(0.9, 0)), 0.9, 0},
		"a second thread reports more":              {none.Claimed("a", window(0.6, 0)).Claimed("b", window(0.9, 1)), 0.6, 0.6},
		"a second thread reports less":              {none.Claimed("b", window(0.9, 0)).Claimed("a", window(0.6, 1)), 0.6, 0.6},
		"one thread reports it twice":               {none.Claimed("a", window(0.6, 0)).Claimed("a", window(0.9, 1)), 0.9, 0},
		"two threads name different resets":         {none.Claimed("a", window(0.6, 0)).Claimed("b", otherReset), 0.6, 0},
		"the gateway saw a later reading":           {none.Claimed("a", window(0.9, 0)).Seen(window(0.5, 1)), 0.5, 0.5},
		"the gateway saw higher use":                {none.Seen(window(0.5, 0)).Claimed("a", window(0.1, 1)), 0.5, 0.5},
		"a report above the gateway's reading":      {none.Seen(window(0.5, 0)).Claimed("a", window(0.9, 1)), 0.9, 0.5},
		"a third thread confirms the newest report": {none.Claimed("a", window(0.2, 0)).Claimed("b", window(0.9, 1)).Claimed("c", window(0.95, 2)), 0.9, 0.9},
		"another thread reported less before":       {none.Claimed("b", window(0.6, 0)).Claimed("a", window(0.97, 1)), 0.97, 0.6},
	} {
		if got := c.meter.For("a").Used; got != c.own {
			t.Errorf("%s: the thread itself reads %v, want %v", name, got, c.own)
		}
		if got := c.meter.For("z").Used; got != c.another {
			t.Errorf("%s: another thread reads %v, want %v", name, got, c.another)
		}
	}
}

// The retry of an interrupted attempt, or of an attempt whose tests failed, is still the user's work and may use the reserve.
func TestRetryOfAUsersWorkUsesTheReserve(t *testing.T) {
	for name, c := range map[string]struct {
		attempts []Attempt
		want     bool
	}{
		"no attempt":                         {nil, false},
		"a user's attempt":                   {[]Attempt{{Run: 1, NewInput: true, ByUser: true}}, true},
		"a user's attempt, retried":          {[]Attempt{{Run: 1, NewInput: true, ByUser: true}, {Run: 1}}, true},
		"an event's attempt":                 {[]Attempt{{Run: 1, NewInput: true}}, false},
		"an event's attempt after a user's":  {[]Attempt{{Run: 1, NewInput: true, ByUser: true}, {Run: 1, NewInput: true}}, false},
		"a user's attempt in an earlier run": {[]Attempt{{NewInput: true, ByUser: true}}, false},
	} {
		f := Facts{Now: noon, Run: 1, Attempts: c.attempts}
		if got := f.byUser(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
		f.Fresh = []Request{{}}
		if f.byUser() {
			t.Errorf("%s, then an event: the event may use the reserve", name)
		}
	}
}

// Only users' work may use the reserve. So a wait of background work must not block a user's question.
func TestWaitingBackgroundWorkDelaysNoAnswer(t *testing.T) {
	reset := noon.Add(time.Hour)
	background := Request{Seq: 1, At: noon, Purpose: ToChange}
	question := Request{Seq: 2, At: noon, Purpose: ToAnswer, Command: "ask", By: "alice", Typed: true}
	f := twoAccounts(reading("5h", 0.9, time.Hour), nil)
	f.Backends = f.Backends[:1]
	f.Fresh = []Request{background}
	if d := Next(f); d.Action != DoWait || d.Rule != RuleHeadroom {
		t.Errorf("background work alone: %s by %s, want a wait for headroom", d.Action, d.Rule)
	}
	f.Fresh = []Request{background, question}
	if d := Next(f); d.Action != DoAttempt || d.Purpose != ToAnswer {
		t.Errorf("with a question: %s for %q (%s), want an attempt that answers", d.Action, d.Purpose, d.Reasons)
	}
	f.Backends[0].Meters[0].Used = 0.96
	if d := Next(f); d.Action != DoWait || !d.Until.Equal(reset) {
		t.Errorf("with a full account: %s until %s, want a wait until %s", d.Action, d.Until, reset)
	}
}

// After a reset no account has a reading, and all waiting threads start. They must be spread over the accounts.
func TestAccountsWithoutReadingsShareTheAttempts(t *testing.T) {
	f := twoAccounts(reading("5h", 1, -time.Minute), reading("5h", 1, -time.Minute))
	began := map[string]int{}
	for range 6 {
		d := Next(f)
		for i := range f.Backends {
			if f.Backends[i].Account == d.Account {
				f.Backends[i].Running++
				began[d.Account]++
			}
		}
	}
	for account, n := range began {
		if n != 3 {
			t.Errorf("%d of 6 attempts began on %s, want 3", n, account)
		}
	}
	f = twoAccounts(reading("5h", 0.2, time.Hour), reading("5h", 0.3, time.Hour))
	for i := range f.Backends[:2] {
		f.Backends[i].Meters[0].Uses = map[string][]float64{f.Backends[i].Name: {0.1}}
	}
	f.Backends[0].Running = 2
	if d := Next(f); d.Account != f.Backends[1].Account {
		t.Errorf("the attempt begins on %s, where two attempts in progress will use 20 %%", d.Account)
	}
}
