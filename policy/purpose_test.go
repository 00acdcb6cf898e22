package policy

import (
	"testing"
	"time"
)

// forPurpose returns the attempt with another purpose than a change.
func forPurpose(p Purpose, a Attempt) Attempt {
	a.Decision.Purpose = p
	return a
}

func replied() Attempt { return Attempt{Receipt: Receipt{Ending: Completed}} }

// asking returns the facts with fresh requests for these purposes, oldest first.
func (f Facts) asking(purposes ...Purpose) Facts {
	f.Fresh = nil
	for i, p := range purposes {
		f.Fresh = append(f.Fresh, Request{Seq: int64(i + 1), At: noon, Command: string(p), By: "alice", Typed: true, Purpose: p})
	}
	return f
}

func TestEachPurposeIsDecidedByItsOwnAttempts(t *testing.T) {
	reset := noon.Add(time.Hour)
	waits := func(f *Facts) {
		f.Limits.UsageLimit.AutoContinue = true
		f.Backends = f.Backends[:1]
		f.Backends[0].Breaker = Breaker{Kind: UsageLimit, Consecutive: 1, ResetsAt: reset}
	}
	failed := func(f *Facts) { f.Backends = f.Backends[:1] }
	ask, plan := forPurpose(ToAnswer, replied()), forPurpose(ToPlan, replied())
	read(t, []sentence{
		{"a question", given().asking(ToAnswer), Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "codex", Purpose: ToAnswer, Reasons: wanted("a question by alice")}},
		{"the older request goes first", given().asking(ToPlan, ToChange, ToAnswer), Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "codex", Purpose: ToPlan}},
		{"an answer", given(ask), Decision{Action: DoDone, Rule: RuleAnswered, Purpose: ToAnswer}},
		{"a plan", given(plan), Decision{Action: DoAsk, Rule: RulePlanned, Purpose: ToPlan}},
		{"a plan and then an answer", given(plan, ask), Decision{Action: DoAsk, Rule: RulePlanned, Purpose: ToPlan}},
		{"an answer, and work that is done", given(finished(), ask), Decision{Action: DoDone, Rule: RuleDone}},
		{"an answer, and work that failed its verification", given(unverified(), ask), Decision{Action: DoAttempt, Rule: RuleVerifyFailed, Rung: RungVerify, Backend: "codex"}},
		{"an answer, and work that waits", given(atLimit(reset), ask).with(waits), Decision{Action: DoWait, Rule: RuleUsageLimit, Until: reset}},
		{"a waiting question, and work that is done", given(forPurpose(ToAnswer, atLimit(reset)), finished()).with(waits),
			Decision{Action: DoWait, Rule: RuleUsageLimit, Until: reset, Purpose: ToAnswer}},
		{"a failed answer, and work that is done", given(finished(), forPurpose(ToAnswer, fruitless())).with(failed),
			Decision{Action: DoDone, Rule: RuleDone, Reasons: wanted("attempt 2 failed (crashed)")}},
		{"a failed answer", given(forPurpose(ToAnswer, fruitless())).with(failed), Decision{Action: DoStop, Rule: RuleNoProgress, Purpose: ToAnswer}},
		{"a question ignores broken verify commands", given().asking(ToAnswer).with(func(f *Facts) { f.Unable = "make test cannot work here" }),
			Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "codex", Purpose: ToAnswer}},
		{"questions count toward the thread's daily limit", given(finished(), ask).asking(ToAnswer).with(func(f *Facts) { f.Limits.Restarts.MaxPerThreadPerDay = 2 }),
			Decision{Action: DoWait, Rule: RuleDailyCap, Until: noon.Add(-2 * time.Minute).Add(Day), Purpose: ToAnswer}},
		{"plans count toward the repository's daily limit", given().asking(ToPlan).with(func(f *Facts) { f.GlobalLimits = f.Limits.Ledgers(Usage{Repository: Used{Attempts: 100, First: noon}}) }),
			Decision{Action: DoWait, Rule: RuleCap, Purpose: ToPlan}},
		{"an account's breaker stops questions, too", given().asking(ToAnswer).limited(3, reset).alone(),
			Decision{Action: DoStop, Rule: "usage_limit_breaker", Purpose: ToAnswer}},
	})
}
