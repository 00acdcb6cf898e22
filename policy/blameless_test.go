package policy

import (
	"slices"
	"testing"
)

// hung is an attempt that Pawl ended because its agent printed nothing.
func hung() Attempt {
	return Attempt{Receipt: Receipt{Ending: TimedOut, Silent: "15m", StartTree: "before", EndTree: "before"}}
}

// staleBase is an attempt whose work conflicts with a push that another user made during the attempt.
func staleBase() Attempt {
	return Attempt{Receipt: Receipt{Ending: Completed, Outcome: Interrupted, StartTree: "before", EndTree: moved, Change: 7, Whole: 7,
		Detail: "somebody pushed to pawl/issue-7 during the attempt and it conflicts (a.txt); the work is kept on pawl/kept-7-1"}}
}

func TestHungAgentIsRetriedTwice(t *testing.T) {
	worked := hung()
	worked.EndTree = moved
	again := Decision{Action: DoAttempt, Rule: "silent", Backend: "codex", Reasons: wanted("the agent was silent for 15m")}
	stop := Decision{Action: DoStop, Rule: "silent", Reasons: wanted("3 attempts ended so, and none between them came to its own end")}
	completed := Attempt{Receipt: Receipt{Ending: Completed, Outcome: NoChange}}
	refused, spent := Attempt{Receipt: Receipt{Ending: Overloaded}}, timedOut()
	spent.EndTree = spent.StartTree
	read(t, []sentence{
		{"once", given(hung()), again},
		{"twice", given(hung(), hung()), again},
		{"three in a row stop the run", given(hung(), hung(), hung()), stop},
		{"three in a row stop the run despite progress", given(worked, worked, worked), stop},
		{"another ending restarts the count", given(hung(), hung(), timedOut(), hung()), again},
		{"a refusal does not restart the count", given(hung(), refused, hung(), refused, hung()), stop},
		{"a remark starts an attempt", given(hung(), hung(), hung()).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"the time limit is not silence", given(spent), Decision{Action: DoStop, Rule: "no_progress", Reasons: wanted("failed (timed out)")}},
		{"interrupted work is done once its continuation completes", given(worked, completed), Decision{Action: DoDone, Rule: "done"}},
		{"a restart after silence has the usual backoff", given(slices.Repeat([]Attempt{worked, timedOut()}, 6)...).with(func(f *Facts) {
			f.Attempts[11] = given(hung()).Attempts[0]
			f.Attempts[11].EndedAt = noon
		}), Decision{Action: DoWait, Rule: "backoff", Until: noon.Add(4e9)}},
	})
}

// An ending that is not the agent's fault must not count as a failure: in the ladder, for other apps' checks, as
// stagnation.
func TestBlamelessEndingsDoNotCount(t *testing.T) {
	for name, a := range map[string]Attempt{
		"silence": hung(), "an interruption": interruptedAttempt(), "a stale base": staleBase(), "a usage limit": atLimit(noon),
		"rate_limited": {Receipt: Receipt{Ending: RateLimited}}, "overloaded": {Receipt: Receipt{Ending: Overloaded}}, "disconnected": {Receipt: Receipt{Ending: Disconnected}},
	} {
		t.Run(name, func(t *testing.T) {
			a = given(a).Attempts[0]
			if a.failed() {
				t.Error("the ending is compared as a failure")
			}
			row := given(a, a, a)
			if v := Stagnation(row.Attempts, 1, row.Limits); v.Similar != 0 || v.Escalated {
				t.Errorf("three in a row count as stagnation: %+v", v)
			}
			asked := a
			asked.NewInput, asked.ByChecks = true, true
			checks := Facts{Limits: Defaults(), Attempts: slices.Repeat([]Attempt{asked}, 4), Fresh: []Request{{Source: FromCheckRun}}}
			if d := failedChecks(checks); d.Action != "" {
				t.Errorf("the attempts count toward the limit of failing checks: %+v", d)
			}
			// After the blameless attempt, the ladder still allows its second try.
			two := given(unverified(), a, unverified())
			if d := two.verifyFailed(two.Attempts[2]); d.Rung != RungVerify {
				t.Errorf("the ending counts as a failed verification: %+v", d)
			}
			if a.Outcome != Interrupted {
				before := Breaker{Kind: UsageLimit, Consecutive: 1}
				if after := before.After(a.Ending, noon, noon, noon); after != before && a.Ending != UsageLimit {
					t.Errorf("the account's breaker is %+v, was %+v", after, before)
				}
			}
		})
	}
}
