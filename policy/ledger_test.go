package policy

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGlobalLimitMakesAThreadWait(t *testing.T) {
	first := noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		used Usage
		rule Rule // empty if the thread may continue
		why  string
	}{
		"below every limit":           {Usage{Used{99, 99e6, 49, first}, Used{299, 199e6, 99, first}, Used{499, 399e6, 199, first}, nil}, "", ""},
		"the repository's attempts":   {Usage{Repository: Used{Attempts: 100, First: first}}, RuleCap, "100 attempts on this repository in 24 hours; its limit is 100"},
		"the repository's money":      {Usage{Repository: Used{USD: 50, First: first}}, RuleBudget, "50.00 USD on this repository in 24 hours; its budget is 50.00"},
		"the installation's attempts": {Usage{Installation: Used{Attempts: 300, First: first}}, RuleCap, "this installation"},
		"the installation's money":    {Usage{Installation: Used{USD: 100, First: first}}, RuleBudget, "100.00 USD on this installation of the App in 24 hours; its budget is 100.00"},
		"the server's attempts":       {Usage{Server: Used{Attempts: 500, First: first}}, RuleCap, "this server"},
		"the server's money":          {Usage{Server: Used{USD: 200.5, First: first}}, RuleBudget, "200.50 USD on this server"},
	} {
		t.Run(name, func(t *testing.T) {
			f := given().asked("resume") // a user's command does not lift the limit
			f.GlobalLimits = f.Limits.Ledgers(c.used)
			d := Next(f)
			if c.rule == "" {
				if d.Action != DoAttempt {
					t.Fatalf("%+v", d)
				}
				return
			}
			if d.Action != DoWait || d.Rule != c.rule || !d.Until.IsZero() || !strings.Contains(d.Reasons.String(), c.why) || c.rule.Words().Waits == "" {
				t.Errorf("%+v; want a wait by %s because %s", d, c.rule, c.why)
			}
			if last := d.Reasons[len(d.Reasons)-1]; !last.Until.Equal(first.Add(Day)) {
				t.Errorf("%v does not say when the oldest attempt leaves the window", d.Reasons)
			}
		})
	}
}

// If an account's limit is used up, its backends wait, even after a user's command.
func TestAccountLimitStopsItsBackends(t *testing.T) {
	used := func(accounts map[string]Used) Facts {
		f := given().asked("resume")
		f.Limits.Caps.PerAccountPerDay, f.Limits.Budget.USDPerAccountPerDay = 10, 20
		for i, b := range f.Backends {
			f.Backends[i].Day = f.Limits.Account(b.Account, Usage{Accounts: accounts})
		}
		return f
	}
	read(t, []sentence{
		{"room on both accounts", used(map[string]Used{"main": {Attempts: 9, USD: 19.9}}), Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "codex"}},
		{"no room on the first account", used(map[string]Used{"main": {Attempts: 10}}), Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "claude"}},
		{"the first account's money is spent", used(map[string]Used{"main": {USD: 20}}), Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "claude"}},
		{"no room on either account", used(map[string]Used{"main": {USD: 20}, "spare": {Attempts: 10}}), Decision{Action: DoWait, Rule: RuleBudget}},
	})
	for pause, until := range map[time.Duration]time.Time{time.Minute: noon.Add(time.Minute), time.Hour: {}} { // Pawl checks the daily limit every few minutes
		f := used(map[string]Used{"main": {USD: 20}})
		f.Backends[1].Cooldown.Until, f.Fresh = noon.Add(pause), given().asked("").Fresh
		if d := Next(f); d.Action != DoWait || !d.Until.Equal(until) {
			t.Errorf("with the other account in cooldown for %s: %+v, want a wait until %s", pause, d, until)
		}
	}
	d := Next(used(map[string]Used{"main": {USD: 20}, "spare": {Attempts: 10}}))
	for _, why := range []string{"20.00 USD on account main in 24 hours; its budget is 20.00", "10 attempts on account spare in 24 hours; its limit is 10"} {
		if !strings.Contains(d.Reasons.String(), why) || !d.Until.IsZero() {
			t.Errorf("%+v does not say %q", d, why)
		}
	}
	if d.Hint != hintRoom {
		t.Errorf("%q, for a wait that no command ends", d.Hint)
	}
	cooling := used(map[string]Used{"main": {USD: 20}})
	cooling.Fresh, cooling.Backends[1].Cooldown.Until = nil, noon.Add(time.Hour)
	if d := cooling.holdBack(cooling.Backends, Decision{}); !strings.Contains(d.Hint, "/pawl resume") {
		t.Errorf("%q, although a user may skip the cooldown", d.Hint)
	}
}

func TestTokensHaveGlobalLimits(t *testing.T) {
	l := Defaults()
	l.Budget.TokensPerServerPerDay = 1000
	if b := Defaults().Budget; b.TokensPerRepositoryPerDay == 0 || b.TokensPerInstallationPerDay == 0 || b.TokensPerServerPerDay == 0 {
		t.Errorf("%+v has no token limit, although no budget is configured and agents with an account's login report no cost", b)
	}
	server := l.Ledgers(Usage{Server: Used{Tokens: 1000, Attempts: 2}})[2]
	if why, by := server.Full(); by != RuleBudget || !strings.Contains(why, "1,000 tokens on this server") {
		t.Errorf("%s: %s", by, why)
	}
	if got := server.String(); got != "2 of 500 attempts (498 left), 0.00 of 200.00 USD (200.00 left), 1,000 of 1,000 tokens (0 left)" {
		t.Error(got)
	}
}

func TestChainOfPawlsWorkNeedsAUser(t *testing.T) {
	of := func(generations ...int) Facts {
		return given().asked(make([]string, len(generations))...).with(func(f *Facts) {
			for i, g := range generations {
				f.Fresh[i].Generation, f.Fresh[i].Cause = g, "it refers to Pawl's own work on acme/widgets#1"
			}
		})
	}
	read(t, []sentence{
		{"a follow-up of a follow-up", of(2), Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "codex"}},
		{"a follow-up of that one", of(3), Decision{Action: DoStop, Rule: RuleGenerations}},
		{"a follow-up that a user also requested", of(3, 0), Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "codex"}},
	})
}

// The operator sees the used and the remaining amount for each level.
func TestDailyUseIsListedByLevel(t *testing.T) {
	l := Defaults()
	l.Caps, l.Budget = Caps{PerRepositoryPerDay: 3, PerInstallationPerDay: 10, PerServerPerDay: 20, PerAccountPerDay: 6}, Budget{USDPerRepositoryPerDay: 5, TokensPerInstallationPerDay: 1000}
	at := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	all := []RepoUsed{
		{"acme/site", 7, "paid", Used{Attempts: 1, Tokens: 100, USD: 0.5, First: at.Add(time.Hour)}},
		{"acme/shop", 7, "paid", Used{Attempts: 4, Tokens: 500, USD: 6, First: at}},
		{"octo/cat", 8, "free", Used{Attempts: 2, Tokens: 50, First: at.Add(2 * time.Hour)}},
	}
	var got []string
	for _, d := range l.Day(all, 2) {
		got = append(got, d.Level+": "+d.String())
	}
	want := []string{
		"this server: 7 of 20 attempts (13 left), 6.50 USD, 650 tokens",
		"account free: 2 of 6 attempts (4 left), 0.00 USD, 50 tokens",
		"account paid: 5 of 6 attempts (1 left), 6.50 USD, 600 tokens",
		"installation 7 of acme: 5 of 10 attempts (5 left), 6.50 USD, 600 of 1,000 tokens (400 left)",
		"installation 8 of octo: 2 of 10 attempts (8 left), 0.00 USD, 50 of 1,000 tokens (950 left)",
		"acme/shop: 4 of 3 attempts (0 left), 6.00 of 5.00 USD (0.00 left), 500 tokens",
		"octo/cat: 2 of 3 attempts (1 left), 0.00 of 5.00 USD (5.00 left), 50 tokens",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	u := UsageOf(all, "acme/shop", 7)
	if !u.Server.First.Equal(at) || u.Installation.Attempts != 5 || u.Repository.USD != 6 {
		t.Errorf("usage %+v", u)
	}
	if empty := l.Day(nil, 2); len(empty) != 1 || empty[0].Attempts != 0 {
		t.Errorf("without attempts: %+v", empty)
	}
}
