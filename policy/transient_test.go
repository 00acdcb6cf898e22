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
	told := refused(RateLimited)
	told.Limit = &Limit{Kind: RateLimited, ResetsAt: noon.Add(10 * time.Minute)}
	spare := refused(Disconnected)
	spare.Backend, spare.Account = "claude", "spare"
	stop := Decision{Action: DoStop, Rule: "transient", Reasons: wanted("5 attempts ended so, and none between them came to its own end; the limit is 5")}
	read(t, []sentence{
		{"another account goes on at once", given(refused(Overloaded)), Decision{Action: DoAttempt, Rule: "transient", Backend: "claude"}},
		{"but not one that refused in this row", given(refused(Overloaded), spare), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(time.Minute)}},
		{"else the first one waits 30 seconds", given(refused(Overloaded)).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(30 * time.Second)}},
		{"and then goes on", later(given(refused(Overloaded)).alone(), 30*time.Second), Decision{Action: DoAttempt, Rule: "transient", Backend: "codex"}},
		{"the next one waits twice as long", given(row(2)...).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(time.Minute)}},
		{"the fourth four minutes", given(row(4)...).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(4 * time.Minute)}},
		{"a later reset is waited for", given(told).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(10 * time.Minute)}},
		{"the fifth in a row ends it", given(row(5)...).alone(), stop},
		{"on whichever account", given(row(5)...), stop},
		{"others in between begin the row anew", given(append(row(4), timedOut(), refused(Overloaded))...).alone(), Decision{Action: DoWait, Rule: "transient", Until: noon.Add(30 * time.Second)}},
		{"what is no failure either ends no row", given(append(row(2), hung(), refused(Overloaded), interruptedAttempt(), refused(Overloaded), atLimit(noon), refused(Overloaded))...).alone(), stop},
		{"a person need not wait", given(row(5)...).alone().asked("resume"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
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
		{"also when a time-out cut it", given(timedOut(), completed), Decision{Action: DoDone, Rule: "done"}},
		{"also when a person told it to go on, in a new run", given(cut(UsageLimit), goesOn).with(func(f *Facts) { f.Attempts[0].Run = 0 }), Decision{Action: DoDone, Rule: "done"}},
		{"not when the work was lost", given(lost, completed), Decision{Action: DoStop, Rule: "no_change"}},
		{"nor when it was that of a loop which could not be kept", given(loop, completed), Decision{Action: DoStop, Rule: "no_change"}},
		{"nor when somebody threw it away", given(cut(UsageLimit), fromStart), Decision{Action: DoStop, Rule: "no_change"}},
		{"not when it fails its verification", given(cut(Overloaded), failing), Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify}},
		{"nor when it fails", given(cut(Overloaded), fruitless()), Decision{Action: DoStop, Rule: "no_progress"}},
	})
}

func TestGivingUpEscalates(t *testing.T) {
	gaveUp := Attempt{Receipt: Receipt{Ending: Completed, Outcome: NoChange}}
	gaveUp.Decision.Rung = RungVerify
	raised := gaveUp
	raised.Decision.Rung, raised.Decision.Escalated = RungEffort, true
	crashed := fruitless()
	crashed.Decision.Rung = RungVerify
	effort := Decision{Action: DoAttempt, Rule: "escalate_effort", Backend: "codex", Rung: RungEffort, Escalated: true}
	stop := Decision{Action: DoStop, Rule: "verify_failed", Reasons: wanted("2 attempts did not mend it")}
	read(t, []sentence{
		{"to the raised effort", given(unverified(), gaveUp), effort},
		{"however it ended", given(unverified(), crashed), effort},
		{"and no further", given(unverified(), gaveUp, raised), Decision{Action: DoStop, Rule: "verify_failed"}},
		{"nor where there is none", given(unverified(), gaveUp).with(func(f *Facts) { f.Backends[0].CanEscalate = false }), stop},
	})
}
