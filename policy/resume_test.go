package policy

import (
	"strings"
	"testing"
)

func TestASessionIsContinuedWhereThatPromisesMore(t *testing.T) {
	last := Attempt{N: 1, Run: 1, Backend: "codex", Ending: Completed, Outcome: VerifyFailed, Session: "s-1", Start: "base", Commit: "work", Progress: true, Context: 9_000}
	next := Decision{Action: DoAttempt, Backend: "codex", Rung: RungVerify}
	for _, c := range []struct {
		name    string
		change  func(a *Attempt, d *Decision, f *Facts)
		start   string
		session string
		reason  string
	}{
		{"after a failed verification", nil, "work", "s-1", "continues the session of attempt 1"},
		{"after an attempt that changed nothing", func(a *Attempt, _ *Decision, _ *Facts) { a.Commit = "" }, "base", "s-1", "continues"},
		{"not after somebody pushed", nil, "other", "", "not as the last one left them"},
		{"not with another backend", func(_ *Attempt, d *Decision, _ *Facts) { d.Backend = "claude" }, "work", "", "another backend"},
		{"not when it is to differ", func(_ *Attempt, d *Decision, _ *Facts) { d.Different = true }, "work", "", "is to differ"},
		{"not at the escalated effort", func(_ *Attempt, d *Decision, _ *Facts) { d.Escalated = true }, "work", "", "is to differ"},
		{"not after a loop", func(a *Attempt, _ *Decision, _ *Facts) { a.Outcome = EditLoop }, "work", "", "in circles"},
		{"not after a crash", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending = Crashed }, "work", "", "ended crashed"},
		{"not when its context is large", func(a *Attempt, _ *Decision, _ *Facts) { a.Context = maxResumed + 1 }, "work", "", "fills 100001 tokens"},
		{"not when it has no name", func(a *Attempt, _ *Decision, _ *Facts) { a.Session = "" }, "work", "", ""},
		{"not when that is switched off", func(_ *Attempt, _ *Decision, f *Facts) { f.Limits.ResumeSessions = false }, "work", "", ""},
		{"not from an earlier run", func(_ *Attempt, _ *Decision, f *Facts) { f.Run = 2 }, "work", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, d := last, next
			f := Facts{Limits: Defaults(), Run: 1}
			if c.change != nil {
				c.change(&a, &d, &f)
			}
			f.Attempts = []Attempt{a}
			session, reason := Resume(f, d, c.start)
			if session != c.session || !strings.Contains(reason, c.reason) || c.reason == "" && reason != "" {
				t.Errorf("session %q because %q; want %q because … %s …", session, reason, c.session, c.reason)
			}
		})
	}
}

func TestASessionIsLeftBehindAfterSimilarAttempts(t *testing.T) {
	a := Attempt{N: 1, Run: 1, Backend: "codex", Ending: Completed, Outcome: VerifyFailed, Session: "s-1", Commit: "one", Evidence: 7}
	b := a
	b.N, b.Commit = 2, "two"
	if session, why := Resume(Facts{Limits: Defaults(), Run: 1, Attempts: []Attempt{a, b}}, Decision{Backend: "codex"}, "two"); session != "" {
		t.Errorf("continued %s: %s", session, why)
	}
}

func TestABudgetEndsTheWork(t *testing.T) {
	used := func(tokens int64, usd float64) Attempt {
		a := timedOut()
		a.Tokens, a.CostUSD = tokens, usd
		return a
	}
	spent := timedOut()
	spent.Budget = "its budget of 5 tokens is used up"
	bound := func(f *Facts) { f.Limits.TokensPerDay, f.Limits.USDPerDay = 100, 2 }
	stop := Decision{Action: DoStop, Rule: "budget"}
	read(t, []sentence{
		{"of tokens", given(used(60, 0), used(40, 0)).with(bound), stop},
		{"of dollars", given(used(1, 1.5), used(1, 0.5)).with(bound), stop},
		{"also when somebody asks", given(used(100, 0)).with(bound).asked("retry"), stop},
		{"but not before it is reached", given(used(99, 1.9)).with(bound), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"nor where there is none", given(used(1<<40, 1e6)), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"nor for what is more than a day old", given(used(100, 0)).with(bound).with(func(f *Facts) { f.Attempts[0].StartedAt = noon.Add(-day) }),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"that of one attempt ends the run", given(spent), stop},
		{"unless a person asks for another", given(spent).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}
