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
		{"the first failure is retried with the output", given(unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: wanted("retry 1 of 2")}},
		{"the second failure is retried with the output", given(unverified(), unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: wanted("retry 2 of 2")}},
		{"the third failure is retried at the escalated effort", given(unverified(), unverified(), unverified()),
			Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true, Reasons: wanted("verification failed and 3 attempts did not mend it")}},
		{"a failure at the escalated effort ends the run", given(unverified(), unverified(), unverified(), escalated),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("4 attempts did not mend it")}},
		{"the effort is not escalated if the configuration forbids it", given(unverified(), unverified(), unverified()).with(never),
			Decision{Action: DoStop, Rule: "verify_failed"}},
		{"the effort is not escalated if the backend has no higher one", given(unverified(), unverified(), unverified()).with(cannot),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("backend codex has no higher effort to try")}},
		{"the effort is not escalated if the pinned backend has no higher one", given(unverified(), unverified(), unverified()).with(func(f *Facts) { f.Pinned = "claude" }),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("backend claude has no higher effort to try")}},
		{"the effort is not escalated again after a user's escalation", given(escalated, unverified(), unverified()),
			Decision{Action: DoStop, Rule: "verify_failed"}},
		{"the effort of the failed backend is escalated", given(claude, claude, claude).with(func(f *Facts) {
			f.Backends[0].CanEscalate, f.Backends[1].CanEscalate = false, true
		}), Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "claude", Rung: RungEffort, Escalated: true}},
		{"other failures do not restart the ladder", given(unverified(), unverified(), timedOut(), unverified()),
			Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true, Reasons: wanted("verification failed and 3 attempts did not mend it")}},
		{"the ladder ends despite other failures in between", given(unverified(), timedOut(), unverified(), interruptedAttempt(), unverified(), escalated, timedOut(), unverified()),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("5 attempts did not mend it")}},
		{"new feedback restarts the ladder", given(unverified(), unverified(), answered, unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: wanted("retry 2 of 2")}},
		{"an interrupted attempt is retried on its rung", given(unverified(), unverified(), unverified(), cutOff),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex", Rung: RungEffort, Escalated: true}},
		{"new feedback starts an ordinary attempt", given(unverified(), unverified(), unverified()).asked(""),
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
		{"a missing answer is retried", given(silent), once},
		{"a missing answer is not retried twice", given(silent, again), Decision{Action: DoStop, Rule: "no_progress"}},
		{"a missing answer is not retried twice despite progress", given(silent, moving, silent), Decision{Action: DoStop, Rule: "no_progress"}},
		{"a missing answer is not retried if the gateway has retried", given(gateway), Decision{Action: DoStop, Rule: "no_progress"}},
		{"an answer of too much prose is retried, as the gateway cannot retry it", given(rambled), once},
		{"a missing answer is not retried if that is switched off", given(silent).with(func(f *Facts) { f.Limits.Ladder.NoAnswerRetry = false }), Decision{Action: DoStop, Rule: "no_progress"}},
		{"feedback starts an ordinary attempt", given(silent).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}

func TestInterruptionsAreRetriedWithWaits(t *testing.T) {
	i := interruptedAttempt()
	own := i
	own.Ending, own.Detail = Completed, "the disk is full"
	read(t, []sentence{
		{"the first interruption is retried", given(i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"the second interruption is retried", given(i, i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"the third interruption in a row waits a minute", given(i, i, i),
			Decision{Action: DoWait, Rule: "interrupted", Until: noon.Add(time.Minute), Reasons: Reasons{
				{"interrupted", "3 attempts were interrupted and none between them came to its own end, which is not a failure of the agent: the node that ran it stopped; the next one begins at", noon.Add(time.Minute)}}}},
		{"the third interruption is retried after its wait", given(i, i, i).with(func(f *Facts) { f.Now = noon.Add(time.Minute) }), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"the wait doubles with each interruption", given(many(6, i, i)...), Decision{Action: DoWait, Rule: "interrupted", Until: noon.Add(8 * time.Minute)}},
		{"the wait is at most two hours", given(many(20, i, i)...), Decision{Action: DoWait, Rule: "interrupted", Until: noon.Add(2 * time.Hour)}},
		{"three failures of Pawl in a row stop the run", given(own, own, own),
			Decision{Action: DoStop, Rule: "interrupted", Reasons: wanted("3 attempts were interrupted", "the disk is full")}},
		{"three failures of Pawl stop the run despite a killed server in between", given(own, own, i, own), Decision{Action: DoStop, Rule: "interrupted"}},
		{"three failures of Pawl stop the run despite hung agents in between", given(own, hung(), own, hung(), own), Decision{Action: DoStop, Rule: "interrupted"}},
		{"interruptions before another ending do not count", given(i, i, timedOut(), i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"a user's retry starts an attempt", given(i, i, i).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
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
		{"after an attempt without changes", func(a *Attempt, _ *Decision, _ *Facts) { a.Commit = "" }, "base", "s-1", "continues"},
		{"not after a user's push", nil, "other", "", "not as the last one left them"},
		{"not with another backend", func(_ *Attempt, d *Decision, _ *Facts) { d.Backend = "claude" }, "work", "", "another backend"},
		{"not if the attempt must differ", func(_ *Attempt, d *Decision, _ *Facts) { d.Different = true }, "work", "", "must differ"},
		{"not at the escalated effort", func(_ *Attempt, d *Decision, _ *Facts) { d.Escalated = true }, "work", "", "must differ"},
		{"not after a loop", func(a *Attempt, _ *Decision, _ *Facts) { a.Outcome = EditLoop }, "work", "", "in circles"},
		{"not after a crash", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending = Crashed }, "work", "", "ended crashed"},
		{"after a daily budget ended the attempt", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending, a.Paused = TurnLimit, true }, "work", "s-1", "continues"},
		{"not after the attempt's own budget ended it", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending = TurnLimit }, "work", "", "ended turn limit"},
		{"not if its context is large", func(a *Attempt, _ *Decision, _ *Facts) { a.Context = maxResumed + 1 }, "work", "", "fills 100001 tokens"},
		{"not if it has no id", func(a *Attempt, _ *Decision, _ *Facts) { a.Session = "" }, "work", "", ""},
		{"not if the agent neither spoke nor acted, so its CLI saved nothing", func(a *Attempt, _ *Decision, _ *Facts) { a.Ending, a.ToolCalls = Disconnected, 0 }, "work", "", "a new session: the agent neither said nor did anything in the last one"},
		{"not if the agent does not support it", func(a *Attempt, _ *Decision, _ *Facts) { a.Resumable = false }, "work", "", ""},
		{"not if it is switched off", func(_ *Attempt, _ *Decision, f *Facts) { f.Limits.Ladder.ResumeSessions = false }, "work", "", ""},
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
		{"a token budget waits until enough tokens are a day old", tokens, from(tokens)},
		{"a dollar budget waits, too", dollars, from(dollars)},
		{"a retry does not end the wait", asked, from(asked)},
		{"a raise ends the wait", asked.asked("raise").with(func(f *Facts) { f.Raised = len(f.Attempts) }), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"an attempt that the budget ended continues once there is room", given(ended), Decision{Action: DoAttempt, Rule: "budget", Backend: "codex"}},
		{"an attempt that the budget ended twice without changes stops", given(ended, ended), Decision{Action: DoStop, Rule: "no_progress"}},
		{"an attempt starts below the budget", given(used(99, 1.9)).with(bound), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"an attempt starts without a budget", given(used(1<<40, 1e6)), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"use more than a day ago does not count", given(used(100, 0)).with(bound).with(func(f *Facts) { f.Attempts[0].StartedAt = noon.Add(-Day) }),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"an attempt's own budget ends the run", given(spent), stop},
		{"a user's retry starts an attempt after the attempt's own budget", given(spent).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}
