package policy

import "testing"

func TestAFailedVerificationClimbsTheLadder(t *testing.T) {
	escalated := unverified()
	escalated.Escalated = true
	answered := unverified()
	answered.NewInput = true
	cutOff := timedOut()
	cutOff.Rung, cutOff.Escalated = RungEffort, true
	claude := unverified()
	claude.Backend, claude.Account = "claude", "spare"
	never := func(f *Facts) { f.Limits.EscalateEffort = false }
	cannot := func(f *Facts) { f.Backends[0].CanEscalate = false }
	read(t, []sentence{
		{"first it is retried with the output", given(unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: because("retry 1 of 2")}},
		{"then once more", given(unverified(), unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: because("retry 2 of 2")}},
		{"then with the escalated effort", given(unverified(), unverified(), unverified()),
			Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true, Reasons: because("failed 3 times")}},
		{"then the run ends", given(unverified(), unverified(), unverified(), escalated),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: because("after 4 attempts")}},
		{"the effort is not raised where that is not allowed", given(unverified(), unverified(), unverified()).with(never),
			Decision{Action: DoStop, Rule: "verify_failed"}},
		{"nor where the backend has no other", given(unverified(), unverified(), unverified()).with(cannot),
			Decision{Action: DoStop, Rule: "verify_failed"}},
		{"nor twice because a person asked for it before", given(escalated, unverified(), unverified()),
			Decision{Action: DoStop, Rule: "verify_failed"}},
		{"the effort is that of the backend that failed", given(claude, claude, claude).with(func(f *Facts) {
			f.Backends[0].CanEscalate, f.Backends[1].CanEscalate = false, true
		}), Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "claude", Rung: RungEffort, Escalated: true}},
		{"attempts that failed in another way do not begin it anew", given(unverified(), unverified(), timedOut(), unverified()),
			Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true, Reasons: because("failed 3 times")}},
		{"and it has an end whatever comes between", given(unverified(), timedOut(), unverified(), interruptedAttempt(), unverified(), escalated, timedOut(), unverified()),
			Decision{Action: DoStop, Rule: "verify_failed", Reasons: because("after 5 attempts")}},
		{"new feedback begins it anew", given(unverified(), unverified(), answered, unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify, Reasons: because("retry 2 of 2")}},
		{"what was cut off is tried again on its rung", given(unverified(), unverified(), unverified(), cutOff),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex", Rung: RungEffort, Escalated: true}},
		{"new feedback begins with an ordinary attempt", given(unverified(), unverified(), unverified()).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}

func TestNoAnswerIsAskedForOnceMoreInTheOppositeMode(t *testing.T) {
	silent := Attempt{Ending: NoAnswer, Outcome: Outcome(NoAnswer)}
	again := silent
	again.Rung = RungAnswer
	gateway := silent
	gateway.Gateway = true
	moved := again
	moved.Progress = true
	once := Decision{Action: DoAttempt, Rule: "no_answer", Backend: "codex", Rung: RungAnswer}
	read(t, []sentence{
		{"it is tried once more", given(silent), once},
		{"but not twice", given(silent, again), Decision{Action: DoStop, Rule: "no_progress"}},
		{"also not when it moved the work meanwhile", given(silent, moved, silent), Decision{Action: DoStop, Rule: "no_progress"}},
		{"nor where the gateway has asked again already", given(gateway), Decision{Action: DoStop, Rule: "no_progress"}},
		{"nor where that is switched off", given(silent).with(func(f *Facts) { f.Limits.NoAnswerRetry = false }), Decision{Action: DoStop, Rule: "no_progress"}},
		{"feedback is worth an ordinary attempt", given(silent).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}

func TestAnInterruptionIsNoFailureOfTheAgent(t *testing.T) {
	i := interruptedAttempt()
	read(t, []sentence{
		{"it is tried again", given(i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"and once more", given(i, i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"three in a row are for the operator to look at", given(i, i, i),
			Decision{Action: DoStop, Rule: "interrupted", Reasons: because("3 attempts in a row were interrupted", "the node that ran it stopped")}},
		{"earlier ones do not count", given(i, i, timedOut(), i), Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"a person may try again", given(i, i, i).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}
