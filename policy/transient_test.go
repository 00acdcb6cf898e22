package policy

import (
	"testing"
	"time"
)

func TestTransientRefusalsWait(t *testing.T) {
	refused := func(e Ending) Attempt { return Attempt{Receipt: Receipt{Ending: e}} }
	later := func(f Facts, d time.Duration) Facts {
		return f.with(func(f *Facts) { f.Now = noon.Add(d) })
	}
	row := func(n int) []Attempt {
		var all []Attempt
		for i := range n {
			all = append(all, refused([]Ending{Overloaded, RateLimited, Disconnected}[i%3]))
		}
		return all
	}
	reported := refused(RateLimited)
	reported.Limit = &Limit{Kind: RateLimited, ResetsAt: noon.Add(10 * time.Minute)}
	spare := refused(Disconnected)
	spare.Backend, spare.Account = "claude", "spare"
	stop := Decision{Action: DoStop, Rule: "transient", Reasons: wanted("5 attempts ended so, and none between them came to its own end; the limit is 5")}
	read(t, []sentence{
		{"another account continues at once", given(refused(Overloaded)), Decision{Action: DoAttempt, Rule: "transient", Backend: "claude"}},
		{"an account that refused in this row does not continue", given(refused(Overloaded), spare), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(time.Minute)}},
		{"the first refusal waits 30 seconds", given(refused(Overloaded)).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(30 * time.Second)}},
		{"the run continues after the wait", later(given(refused(Overloaded)).alone(), 30*time.Second), Decision{Action: DoAttempt, Rule: "transient", Backend: "codex"}},
		{"the second refusal waits a minute", given(row(2)...).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(time.Minute)}},
		{"the fourth refusal waits four minutes", given(row(4)...).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(4 * time.Minute)}},
		{"a later reset prolongs the wait", given(reported).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(10 * time.Minute)}},
		{"the fifth refusal in a row stops the run", given(row(5)...).alone(), stop},
		{"the fifth refusal stops the run despite another account", given(row(5)...), stop},
		{"another ending restarts the count", given(append(row(4), timedOut(), refused(Overloaded))...).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(30 * time.Second)}},
		{"blameless endings do not restart the count", given(append(row(2), hung(), refused(Overloaded), interruptedAttempt(), refused(Overloaded), atLimit(noon), refused(Overloaded))...).alone(), stop},
		{"a user's resume does not wait", given(row(5)...).alone().asked("resume"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a remark waits, too", given(row(1)...).alone().asked(""), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(30 * time.Second)}},
	})
}

func TestInterruptedWorkIsDoneAfterItsContinuation(t *testing.T) {
	cut := func(e Ending) Attempt {
		return Attempt{Receipt: Receipt{Ending: e, StartTree: "before", EndTree: moved}}
	}
	completed := Attempt{Receipt: Receipt{Ending: Completed, Outcome: NoChange, StartTree: "after 1", EndTree: "after 1"}}
	failing := completed
	failing.Outcome, failing.Verify = VerifyFailed, []Verified{{}}
	asked, goesOn, lost := completed, completed, cut(UsageLimit)
	asked.NewInput, goesOn.NewInput, goesOn.GoesOn = true, true, true
	lost.Outcome = Interrupted
	loop, fromStart := looping(), completed
	loop.Ending, fromStart.StartTree, fromStart.EndTree = Killed, "before", "before"
	for _, e := range []Ending{UsageLimit, RateLimited, Overloaded, Disconnected} {
		decides(t, given(cut(e), completed), Decision{Action: DoDone, Rule: "done", Reasons: wanted("attempt 2 completed what attempt 1 had changed")})
		decides(t, given(cut(e), Attempt{Receipt: Receipt{Ending: Overloaded}}, completed), Decision{Action: DoDone, Rule: "done"})
	}
	read(t, []sentence{
		{"not after new feedback", given(cut(Overloaded), asked), Decision{Action: DoStop, Rule: "no_change"}},
		{"done after a time-out", given(timedOut(), completed), Decision{Action: DoDone, Rule: "done"}},
		{"done after a user's resume, in a new run", given(cut(UsageLimit), goesOn).with(func(f *Facts) { f.Attempts[0].Run = 0 }), Decision{Action: DoDone, Rule: "done"}},
		{"not if the work was lost", given(lost, completed), Decision{Action: DoStop, Rule: "no_change"}},
		{"not if the work was a loop's and was discarded", given(loop, completed), Decision{Action: DoStop, Rule: "no_change"}},
		{"not if the work was reset", given(cut(UsageLimit), fromStart), Decision{Action: DoStop, Rule: "no_change"}},
		{"not if the verification fails", given(cut(Overloaded), failing), Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify}},
		{"not if the continuation fails", given(cut(Overloaded), fruitless()), Decision{Action: DoStop, Rule: "no_progress"}},
	})
}

func TestFailedRetryEscalates(t *testing.T) {
	gaveUp := Attempt{Receipt: Receipt{Ending: Completed, Outcome: NoChange}}
	gaveUp.Decision.Rung = RungVerify
	raised := gaveUp
	raised.Decision.Rung, raised.Decision.Escalated = RungEffort, true
	crashed := fruitless()
	crashed.Decision.Rung = RungVerify
	effort := Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true}
	stop := Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("2 attempts did not mend it")}
	read(t, []sentence{
		{"giving up leads to the escalated effort", given(unverified(), gaveUp), effort},
		{"a crash leads to the escalated effort", given(unverified(), crashed), effort},
		{"the escalated effort is the last try", given(unverified(), gaveUp, raised), Decision{Action: DoStop, Rule: "verify_failed"}},
		{"without a higher effort the run stops", given(unverified(), gaveUp).with(func(f *Facts) { f.Backends[0].CanEscalate = false }), stop},
	})
}
