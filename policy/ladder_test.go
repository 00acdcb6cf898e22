package policy

import (
	"strings"
	"testing"
	"time"
)

func TestFailedVerificationEscalates(t *testing.T) {
	escalated := unverified()
	escalated.Decision.Escalated = true
	answered := unverified()
	answered.NewInput = true
	cutOff := timedOut()
	cutOff.Decision = Decision{Rung: RungEffort, Escalated: true}
	claude := unverified()
	claude.Backend, claude.Account = "claude", "spare"
	never := func(f *Facts) { f.Limits.Ladder.EscalateEffort = false }
	cannot := func(f *Facts) { f.Backends[0].CanEscalate = false }
	read(t, []sentence{
		{"first it is retried with the output", given(unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: wanted("retry 1 of 2")}},
		{"then once more", given(unverified(), unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: wanted("retry 2 of 2")}},
		{"then with the escalated effort", given(unverified(), unverified(), unverified()),
			Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true, Reasons: wanted("verification failed and 3 attempts did not mend it")}},
		{"then the run ends", given(unverified(), unverified(), unverified(), escalated),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("4 attempts did not mend it")}},
		{"the effort is not raised where that is not allowed", given(unverified(), unverified(), unverified()).with(never),
			Decision{Action: DoStop, Rule: "verify_failed"}},
		{"nor where the backend has no other, which is said", given(unverified(), unverified(), unverified()).with(cannot),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("backend codex has no higher effort to try")}},
		{"nor where a person chose another that has none", given(unverified(), unverified(), unverified()).with(func(f *Facts) { f.Pinned = "claude" }),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("backend claude has no higher effort to try")}},
		{"nor twice because a person asked for it before", given(escalated, unverified(), unverified()),
			Decision{Action: DoStop, Rule: "verify_failed"}},
		{"the effort is that of the backend that failed", given(claude, claude, claude).with(func(f *Facts) {
			f.Backends[0].CanEscalate, f.Backends[1].CanEscalate = false, true
		}), Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "claude", Rung: RungEffort, Escalated: true}},
		{"attempts that failed in another way do not begin it anew", given(unverified(), unverified(), timedOut(), unverified()),
			Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true, Reasons: wanted("verification failed and 3 attempts did not mend it")}},
		{"and it has an end whatever comes between", given(unverified(), timedOut(), unverified(), interruptedAttempt(), unverified(), escalated, timedOut(), unverified()),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("5 attempts did not mend it")}},
		{"new feedback begins it anew", given(unverified(), unverified(), answered, unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: wanted("retry 2 of 2")}},
		{"what was cut off is tried again on its rung", given(unverified(), unverified(), unverified(), cutOff),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex", Rung: RungEffort, Escalated: true}},
		{"new feedback begins with an ordinary attempt", given(unverified(), unverified(), unverified()).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}

func TestMissingAnswerIsRetriedInTheOppositeMode(t *testing.T) {
	silent := Attempt{Receipt: Receipt{Ending: NoAnswer, Outcome: Outcome(NoAnswer)}}
	again := silent
	again.Decision.Rung = RungAnswer
	gateway := silent
	gateway.Gateway = true
	rambled := gateway
	rambled.Rambled = true
	moving := again
	moving.StartTree, moving.EndTree = "before", moved
	once := Decision{Action: DoAttempt, Rule: "no_answer", Backend: "codex", Rung: RungAnswer}
	read(t, []sentence{
		{"it is tried once more", given(silent), once},
		{"but not twice", given(silent, again), Decision{Action: DoStop, Rule: "no_progress"}},
		{"also not when it moved the work meanwhile", given(silent, moving, silent), Decision{Action: DoStop, Rule: "no_progress"}},
		{"nor where the gateway has asked again already", given(gateway), Decision{Action: DoStop, Rule: "no_progress"}},
		{"but where the answer was too much prose, the gateway cannot", given(rambled), once},
		{"nor where that is switched off", given(silent).with(func(f *Facts) { f.Limits.Ladder.NoAnswerRetry = false }), Decision{Action: DoStop, Rule: "no_progress"}},
		{"feedback is worth an ordinary attempt", given(silent).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}

func TestInterruptionIsBlameless(t *testing.T) {
	i := interruptedAttempt()
	own := i
	own.Ending, own.Detail = Completed, "the disk is full"
	read(t, []sentence{
		{"it is tried again", given(i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"and once more", given(i, i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"after three in a row a minute is waited", given(i, i, i),
			Decision{Action: DoWait, Rule: "interrupted", Until: noon.Add(time.Minute), Reasons: Reasons{
				{"interrupted", "3 attempts were interrupted and none between them came to its own end, which is no failure of the agent: the node that ran it stopped; the next one begins at", noon.Add(time.Minute)}}}},
		{"which is then over", given(i, i, i).with(func(f *Facts) { f.Now = noon.Add(time.Minute) }), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"twice as long after each further one", given(many(6, i, i)...), Decision{Action: DoWait, Rule: "interrupted", Until: noon.Add(8 * time.Minute)}},
		{"and two hours at most", given(many(20, i, i)...), Decision{Action: DoWait, Rule: "interrupted", Until: noon.Add(2 * time.Hour)}},
		{"three in a row that Pawl could not carry through are for the operator to look at", given(own, own, own),
			Decision{Action: DoStop, Rule: "interrupted", Reasons: wanted("3 attempts were interrupted", "the disk is full")}},
		{"also where its server was killed in between", given(own, own, i, own), Decision{Action: DoStop, Rule: "interrupted"}},
		{"or the agent hung", given(own, hung(), own, hung(), own), Decision{Action: DoStop, Rule: "interrupted"}},
		{"earlier ones do not count", given(i, i, timedOut(), i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"a person may try again", given(i, i, i).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}

func TestSessionIsResumedIfUseful(t *testing.T) {
	last := Attempt{Receipt: Receipt{N: 1, Ending: Completed, Outcome: VerifyFailed, Session: "s-1", Base: "base", Commit: "work", Context: 9_000, ToolCalls: 3, StartTree: "before", EndTree: moved}, Run: 1, Backend: "codex", Resumable: true}
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
		{"not when it is to differ", func(_ *Attempt, d *Decision, _ *Facts) { d.Different = true }, "work", "", "must differ"},
		{"not at the escalated effort", func(_ *Attempt, d *Decision, _ *Facts) { d.Escalated = true }, "work", "", "must differ"},
		{"not after a loop", func(a *Attempt, _ *Decision, _ *Facts) { a.Outcome = EditLoop }, "work", "", "in circles"},
		{"not after a crash", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending = Crashed }, "work", "", "ended crashed"},
		{"after a day's budget ended it", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending, a.Paused = TurnLimit, true }, "work", "s-1", "continues"},
		{"not after its own budget did", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending = TurnLimit }, "work", "", "ended turn limit"},
		{"not when its context is large", func(a *Attempt, _ *Decision, _ *Facts) { a.Context = maxResumed + 1 }, "work", "", "fills 100001 tokens"},
		{"not when it has no name", func(a *Attempt, _ *Decision, _ *Facts) { a.Session = "" }, "work", "", ""},
		{"not when the agent neither spoke nor acted, so that its CLI saved nothing", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending, a.ToolCalls = Disconnected, 0 }, "work", "", "a new session: the agent neither said nor did anything in the last one"},
		{"not when the agent cannot", func(a *Attempt, _ *Decision, _ *Facts) { a.Resumable = false }, "work", "", ""},
		{"not when that is switched off", func(_ *Attempt, _ *Decision, f *Facts) { f.Limits.Ladder.ResumeSessions = false }, "work", "", ""},
		{"not from an earlier run", func(_ *Attempt, _ *Decision, f *Facts) { f.Run = 2 }, "work", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, d := last, next
			f := Facts{Limits: Defaults(), Run: 1}
			if c.change != nil {
				c.change(&a, &d, &f)
			}
			f.Attempts = []Attempt{a}
			session, reason := f.Resume(d, c.start)
			if session != c.session || !strings.Contains(reason, c.reason) || c.reason == "" && reason != "" {
				t.Errorf("session %q because %q; want %q because … %s …", session, reason, c.session, c.reason)
			}
		})
	}
}

func TestSessionEndsAfterSimilarAttempts(t *testing.T) {
	a := Attempt{Receipt: Receipt{N: 1, Ending: Completed, Outcome: VerifyFailed, Session: "s-1", Commit: "one", Evidence: 7}, Run: 1, Backend: "codex", Resumable: true}
	b := a
	b.N, b.Commit = 2, "two"
	if session, why := (Facts{Limits: Defaults(), Run: 1, Attempts: []Attempt{a, b}}).Resume(Decision{Backend: "codex"}, "two"); session != "" {
		t.Errorf("continued %s: %s", session, why)
	}
}

func TestUsedUpBudgetStops(t *testing.T) {
	used := func(tokens int64, usd float64) Attempt {
		a := timedOut()
		a.Tokens.Input, a.CostUSD = tokens, &usd
		return a
	}
	spent := timedOut()
	spent.Budget = "its budget of 5 tokens is used up"
	bound := func(f *Facts) { f.Limits.Budget.TokensPerThreadPerDay, f.Limits.Budget.USDPerThreadPerDay = 100, 2 }
	stop := Decision{Action: DoStop, Rule: "budget"}
	from := func(f Facts) Decision {
		return Decision{Action: DoWait, Rule: "budget", Until: f.Attempts[0].StartedAt.Add(Day)}
	}
	tokens, dollars, asked := given(used(60, 0), used(40, 0)).with(bound), given(used(1, 1.5), used(1, 0.5)).with(bound), given(used(100, 0)).with(bound).asked("retry")
	ended := timedOut()
	ended.Paused, ended.EndTree = true, ended.StartTree
	read(t, []sentence{
		{"of tokens, until enough of them are a day old", tokens, from(tokens)},
		{"of dollars", dollars, from(dollars)},
		{"also when somebody asks", asked, from(asked)},
		{"unless it is to allow as much once more", asked.asked("raise").with(func(f *Facts) { f.Raised = len(f.Attempts) }), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"whom it ended goes on when there is room", given(ended), Decision{Action: DoAttempt, Rule: "budget", Backend: "codex"}},
		{"but not twice without a change", given(ended, ended), Decision{Action: DoStop, Rule: "no_progress"}},
		{"but not before it is reached", given(used(99, 1.9)).with(bound), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"nor where there is none", given(used(1<<40, 1e6)), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"nor for what is more than a day old", given(used(100, 0)).with(bound).with(func(f *Facts) { f.Attempts[0].StartedAt = noon.Add(-Day) }),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"that of one attempt ends the run", given(spent), stop},
		{"unless a person asks for another", given(spent).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}
