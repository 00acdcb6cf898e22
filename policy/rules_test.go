package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// decides checks a decision, except its hint. Each wanted reason must be a part of the joined reasons. Every decision must have
// reasons and a rule.
func decides(t *testing.T, f Facts, want Decision) Decision {
	t.Helper()
	got, want := Next(f), onItsAccount(f, want)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Decision{}, "Reasons", "Hint")); diff != "" {
		t.Errorf("decision (-want +got):\n%s\nreasons: %q", diff, got.Reasons)
	}
	all := got.Reasons.String()
	if len(got.Reasons) == 0 || all == "" || got.Rule == "" {
		t.Errorf("a decision without reasons or rule: %+v", got)
	}
	for _, r := range want.Reasons {
		if !strings.Contains(all, r.Text) {
			t.Errorf("reasons %q do not say %q", all, r)
		}
	}
	return got
}

// onItsAccount sets a wanted decision's account if its backend has only one.
func onItsAccount(f Facts, want Decision) Decision {
	of := slices.DeleteFunc(slices.Clone(f.Backends), func(b Backend) bool { return b.Name != want.Backend })
	if want.Account == "" && len(of) == 1 {
		want.Account = of[0].Account
	}
	return want
}

// wanted returns reasons for a table's row.
func wanted(reasons ...string) Reasons { return Because("", reasons...) }

// sentence is one row of a table: the facts and the expected decision.
type sentence struct {
	name  string
	facts Facts
	want  Decision
}

func read(t *testing.T, all []sentence) {
	t.Helper()
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) { decides(t, s.facts, s.want) })
	}
}

func TestEndedWorkDoesNotContinue(t *testing.T) {
	read(t, []sentence{
		{"the operator paused Pawl", given().asked("solve").with(func(f *Facts) { f.Paused = "policy.paused" }),
			Decision{Action: DoStop, Rule: "paused", Reasons: wanted("policy.paused")}},
		{"the thread was closed", given(timedOut()).with(func(f *Facts) { f.Closed = "closed by bob" }),
			Decision{Action: DoStop, Rule: "closed", Reasons: wanted("closed by bob")}},
		{"a user asked to stop", given(timedOut()).with(func(f *Facts) { f.Stopped = "bob asked to stop" }),
			Decision{Action: DoStop, Rule: "cancelled", Reasons: wanted("bob asked to stop")}},
		{"a user asked to stop, and work is done", given(finished()).with(func(f *Facts) { f.Stopped = "bob asked to stop" }),
			Decision{Action: DoStop, Rule: "cancelled"}},
		{"commands do not reopen a closed thread", given().asked("resume", "retry", "solve").with(func(f *Facts) { f.Closed = "merged" }),
			Decision{Action: DoStop, Rule: "closed"}},
	})
}

func TestRunIsDoneAfterAGoodAttempt(t *testing.T) {
	passed := finished()
	passed.Outcome, passed.Verify = "", []Verified{{Passed: true, Runner: "go", PassedTests: 3}}
	looped := passed
	looped.Edits = looping().Edits
	failing := looped
	failing.Verify = []Verified{{}}
	asBefore := finished()
	asBefore.Verify = []Verified{{Exit: 1, Runner: "go", Passed: true, Known: []string{"TestA", "TestB"}}}
	askedOnce := asBefore
	askedOnce.Decision.Rule = RuleStillFailing
	notItsTask := answersOnly(askedOnce)
	notItsTask.Outcome, notItsTask.Declined = Declined, "TestA is another task"
	broke := notItsTask
	broke.Verify = []Verified{{Exit: 1, Runner: "go", Failing: []Failing{{Name: "TestC"}}}}
	mended := asBefore
	mended.Verify = []Verified{{Exit: 1, Runner: "go", Passed: true, Known: []string{"TestA"}, Fixed: []string{"TestB"}}}
	empty := Attempt{Receipt: Receipt{Ending: Completed, Outcome: NoChange}}
	lost := finished()
	lost.Outcome = Interrupted
	read(t, []sentence{
		{"it changed the tree and the verify commands passed", given(passed),
			Decision{Action: DoDone, Rule: "done", Reasons: wanted("attempt 1 changed the tree: verified")}},
		{"it changed the tree and there is nothing to verify with", given(finished()),
			Decision{Action: DoDone, Rule: "done", Reasons: wanted("not verified, no verify command")}},
		{"it merged the base", given(Attempt{Receipt: Receipt{Ending: Completed, Outcome: WorkUnverified, Updated: "b"}}),
			Decision{Action: DoDone, Rule: "done", Reasons: wanted("attempt 1 merged the base")}},
		{"the work is done at the limit of restarts", given(many(51, timedOut(), finished())...),
			Decision{Action: DoDone, Rule: "done"}},
		{"many edits do not matter once the work is done", given(looped),
			Decision{Action: DoDone, Rule: "done"}},
		{"the attempt changed nothing", given(empty),
			Decision{Action: DoStop, Rule: "no_change", Reasons: wanted("attempt 1 ended completed and changed nothing")}},
		{"conflict markers are left", given(Attempt{Receipt: Receipt{Ending: Completed, Conflicts: []string{"a.txt"}}}),
			Decision{Action: DoStop, Rule: "conflict", Reasons: wanted("attempt 1 left conflict markers in a.txt, and its merge was not pushed")}},
		{"the verification failed", given(unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify}},
		{"the attempt looped and its verification failed", given(failing),
			Decision{Action: DoAttempt, Rule: "edit_loop", Backend: "codex"}},
		{"Pawl failed during the attempt", given(lost),
			Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"the agent is asked once about tests that fail as on the base", given(asBefore),
			Decision{Action: DoAttempt, Rule: RuleStillFailing, Backend: "codex", Reasons: wanted("2 tests still fail, as before")}},
		{"the work is done after one question about tests that fail as on the base", given(asBefore, askedOnce), Decision{Action: DoDone, Rule: "done"}},
		{"the work is done if the agent says that these tests are not its task", given(asBefore, answersOnly(askedOnce)), Decision{Action: DoDone, Rule: "done"}},
		{"the work is done if the agent declines to fix these tests", given(asBefore, notItsTask), Decision{Action: DoDone, Rule: "done", Reasons: wanted("the agent says of what fails: TestA is another task")}},
		{"the attempt broke another test", given(asBefore, broke), Decision{Action: DoAsk, Rule: "declined"}},
		{"the agent is not asked if it fixed one of these tests", given(mended), Decision{Action: DoDone, Rule: "done"}},
		{"the agent is not asked at the daily limit", given(asBefore).with(func(f *Facts) { f.Limits.Restarts.MaxPerThreadPerDay = 1 }),
			Decision{Action: DoWait, Rule: RuleDailyCap, Until: noon.Add(Day - time.Minute)}},
		{"new feedback arrived meanwhile", given(finished()).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Reasons: wanted("1 remark that no attempt has taken yet")}},
		{"a run without open requests is done", given(),
			Decision{Action: DoDone, Rule: "nothing_left"}},
	})
}

// answersOnly returns the attempt without changes to files.
func answersOnly(a Attempt) Attempt {
	a.Outcome, a.StartTree, a.EndTree = "", "after 1", "after 1"
	return a
}

func TestDecliningAgentAsksAUser(t *testing.T) {
	no := Attempt{Receipt: Receipt{Ending: Completed, Outcome: Declined, Declined: "sum is to be odd and even"}}
	declined := Decision{Action: DoAsk, Rule: "declined", Reasons: wanted("the agent declined: sum is to be odd and even")}
	read(t, []sentence{
		{"a decline is neither a failure nor work without a change", given(no), declined},
		{"a decline after earlier work", given(finished(), no), declined},
		{"a decline after earlier work with failing tests", given(unverified(), no), declined},
		{"a user's new words start an attempt", given(no).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a bare retry starts an attempt", given(no).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"new words start an attempt after three declines", given(no, no, no).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a pause stops the thread after a decline", given(no).with(func(f *Facts) { f.Paused = "policy.paused" }), Decision{Action: DoStop, Rule: "paused"}},
	})
	if v := Stagnation([]Attempt{no, no, no}, 0, Limits{Stagnation: StagnationLimits{Similarity: 0.85, EscalateAfter: 2}}); v.Similar != 0 || v.Escalated {
		t.Errorf("three declines count as stagnation: %+v", v)
	}
}

func TestDecliningReadsTheFirstLine(t *testing.T) {
	for message, want := range map[string]string{
		"DECLINED: the two rules contradict each other\nOne says …": "the two rules contradict each other",
		"\n\r\nDECLINED:  a \t b \r\n":                              "a b",
		"DECLINED:":                                                 "",
		"DECLINED: \nno reason":                                     "",
		"I did it.\nDECLINED: not really":                           "",
		"```\nDECLINED: quoted\n```":                                "",
		"    DECLINED: as code":                                     "",
		"> DECLINED: quoted":                                        "",
		"Declined: in other letters":                                "",
		"The task says to begin with DECLINED: something":           "",
		"": "",
	} {
		if got := Declining(message); got != want {
			t.Errorf("Declining(%q) is %q, want %q", message, got, want)
		}
	}
}

func TestDeclineNeedsACleanEndWithoutChanges(t *testing.T) {
	for _, tc := range []struct {
		name string
		r    Receipt
		want bool
	}{
		{"nothing changed", Receipt{Ending: Completed, Declined: "no", StartTree: "a", EndTree: "a"}, true},
		{"without a reason", Receipt{Ending: Completed, StartTree: "a", EndTree: "a"}, false},
		{"the tree changed", Receipt{Ending: Completed, Declined: "no", StartTree: "a", EndTree: "b"}, false},
		{"only left-out files changed", Receipt{Ending: Completed, Declined: "no", StartTree: "a", EndTree: "a", LeftOut: []string{"ci.yml (protected)"}}, false},
		{"the attempt failed", Receipt{Ending: Crashed, Declined: "no", StartTree: "a", EndTree: "a"}, false},
	} {
		if got := tc.r.Came(ToChange, Defaults().Severity) == Declined; got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// many returns n attempts: n-1 times a, and then last.
func many(n int, a, last Attempt) []Attempt {
	all := make([]Attempt, n)
	for i := range all {
		all[i] = a
	}
	all[n-1] = last
	return all
}

func TestRunsAndDaysAreLimited(t *testing.T) {
	restarted := given(many(51, timedOut(), timedOut())...)
	day := given(many(60, finished(), finished())...).with(func(f *Facts) {
		for i := range f.Attempts {
			f.Attempts[i].Run = i
		}
		f.Run = 60
	})
	spread := day.with(func(f *Facts) {
		f.Attempts = append([]Attempt(nil), f.Attempts...)
		f.Attempts[0].StartedAt = noon.Add(-24 * time.Hour)
	})
	read(t, []sentence{
		{"fifty restarts are the last", restarted,
			Decision{Action: DoStop, Rule: "restart_limit", Reasons: wanted("restarted 50 times since a user typed something new, which is its limit")}},
		{"a handover counts as a restart", given(many(49, timedOut(), timedOut())...).with(func(f *Facts) { f.Handover = Handover{Times: 2, At: noon} }),
			Decision{Action: DoStop, Rule: "restart_limit"}},
		{"a handover has a restart's backoff", given().asked("").with(func(f *Facts) { f.Handover = Handover{Times: 12, At: noon} }),
			Decision{Action: DoWait, Rule: "backoff", Until: noon.Add(4 * time.Second)}},
		{"repeated commands do not lift the restart limit", untyped(restarted.asked("retry", "resume", "escalate", "solve", "")),
			Decision{Action: DoStop, Rule: "restart_limit"}},
		{"a user's new words lift the restart limit", restarted.asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"the fiftieth restart itself is allowed, after its backoff",
			given(many(50, timedOut(), timedOut())...).with(func(f *Facts) { f.Now = noon.Add(300 * time.Second) }),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"sixty attempts a day are the last, over all runs", day.asked("solve"),
			Decision{Action: DoWait, Rule: "daily_cap", Until: day.Attempts[0].StartedAt.Add(Day), Reasons: wanted("60 attempts on this thread in 24 hours")}},
		{"a raise lifts the daily limit", day.asked("raise").with(func(f *Facts) { f.Raised = len(f.Attempts) }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"an attempt that began 24 hours ago no longer counts", spread.asked("solve"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"zero limits forbid everything", given().asked("solve").with(func(f *Facts) { f.Limits = Limits{} }),
			Decision{Action: DoStop, Rule: "daily_cap"}},
	})
}

func TestDailyCapWaits(t *testing.T) {
	f := given(many(6, finished(), finished())...).asked("solve")
	f.Limits.Restarts.MaxPerThreadPerDay = 4
	// The limit is four of these six attempts. There is room once the oldest three are older than a day.
	next := f.Attempts[2].StartedAt.Add(24 * time.Hour)
	decides(t, f, Decision{Action: DoWait, Rule: "daily_cap", Until: next})
	f.Now = next.Add(-time.Nanosecond)
	decides(t, f, Decision{Action: DoWait, Rule: "daily_cap", Until: next})
	f.Now = next
	decides(t, f, Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"})
}

func TestLoginFailureNeedsAUser(t *testing.T) {
	rejected := Attempt{Receipt: Receipt{Ending: Auth, Detail: "401 Unauthorized"}}
	broken := Attempt{Receipt: Receipt{Ending: Misconfigured, Detail: "codex: not found"}}
	both := []Attempt{broken, {Receipt: Receipt{Ending: Misconfigured}, Backend: "claude", Account: "spare"}}
	held := func(f *Facts) { f.Backends[0].Breaker = Breaker{Kind: Auth, Consecutive: 1, At: noon} }
	read(t, []sentence{
		{"a rejected login: another backend continues", given(rejected).with(held),
			Decision{Action: DoAttempt, Rule: "auth", Backend: "claude", Reasons: wanted("backend codex ended auth; claude is next")}},
		{"a rejected login without another backend", given(rejected).with(held).alone(),
			Decision{Action: DoStop, Rule: "auth", Reasons: wanted("backend codex rejected its login: 401 Unauthorized")}},
		{"a rejected login and a plain remark", given(rejected).with(held).alone().asked(""),
			Decision{Action: DoStop, Rule: "auth"}},
		{"a rejected login and a user's retry", given(rejected).with(held).alone().asked("retry"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a wrong configuration: another backend continues", given(broken),
			Decision{Action: DoAttempt, Rule: "misconfigured", Backend: "claude"}},
		{"two wrong configurations are not tried in turn", given(both...),
			Decision{Action: DoStop, Rule: "misconfigured"}},
		{"two wrong configurations and a remark", given(both...).asked(""),
			Decision{Action: DoStop, Rule: "misconfigured"}},
		{"two wrong configurations and a user's retry", given(both...).asked("retry"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a wrong configuration of the pinned backend", given(broken).with(func(f *Facts) { f.Pinned = "codex" }),
			Decision{Action: DoStop, Rule: "misconfigured"}},
		{"a backend that a user pinned meanwhile continues", given(broken).with(func(f *Facts) { f.Pinned = "claude" }),
			Decision{Action: DoAttempt, Rule: "misconfigured", Backend: "claude"}},
	})
}

func TestUsageLimitDecisions(t *testing.T) {
	reset := noon.Add(5 * time.Hour)
	known, unknown := given(atLimit(reset)).limited(1, reset), given(atLimit(time.Time{})).limited(1, time.Time{})
	third := given(atLimit(reset)).limited(3, reset).alone()
	thirdUnknown := given(atLimit(time.Time{})).limited(3, time.Time{}).alone()
	past := given(atLimit(noon.Add(-time.Hour))).limited(1, time.Time{}).alone()
	wait := Decision{Action: DoWait, Rule: "usage_limit", Until: reset, Reasons: wanted("account main hit its usage limit", "resets at 2026-03-02T17:00:00Z")}
	read(t, []sentence{
		{"another account continues", known, Decision{Action: DoAttempt, Rule: "usage_limit", Backend: "claude"}},
		{"another account continues with auto-continue, too", known.continuing(), Decision{Action: DoAttempt, Rule: "usage_limit", Backend: "claude"}},
		{"another backend of the same account does not continue", known.with(func(f *Facts) { f.Backends[1].Account = "main" }),
			Decision{Action: DoStop, Rule: "usage_limit"}},
		{"alone, the run ends and says when the limit resets", known.alone(),
			Decision{Action: DoStop, Rule: "usage_limit", Reasons: wanted("resets at 2026-03-02T17:00:00Z")}},
		{"alone, the run ends and says that the reset is unknown", unknown.alone(),
			Decision{Action: DoStop, Rule: "usage_limit", Reasons: wanted("when it resets is unknown")}},
		{"a plain remark meanwhile changes nothing", known.alone().asked(""), Decision{Action: DoStop, Rule: "usage_limit"}},
		{"with auto-continue, the run waits for the reset", known.alone().continuing(), wait},
		{"an unknown reset cannot be waited for", unknown.alone().continuing(), Decision{Action: DoStop, Rule: "usage_limit"}},
		{"a past reset cannot be waited for", past.continuing(), Decision{Action: DoStop, Rule: "usage_limit", Reasons: wanted("unknown")}},
		{"a remark does not end the wait", known.alone().continuing().asked("", "solve"), wait},
		{"a resume ends the wait", known.alone().continuing().asked("resume"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"the run continues at the reset", known.alone().continuing().with(func(f *Facts) { f.Now = reset }),
			Decision{Action: DoAttempt, Rule: "limit_reset", Backend: "codex"}},
		{"a backend that a user pinned meanwhile continues", known.continuing().with(func(f *Facts) { f.Pinned = "claude" }),
			Decision{Action: DoAttempt, Rule: "usage_limit", Backend: "claude"}},
		{"a run on a pinned backend waits for its reset", known.continuing().with(func(f *Facts) { f.Pinned = "codex" }), wait},
		{"the third limit in a row ends the run", third, Decision{Action: DoStop, Rule: "usage_limit_breaker", Reasons: wanted("3 × usage_limit in a row on account main")}},
		{"the third limit in a row ends the run with auto-continue, too", third.continuing(), Decision{Action: DoStop, Rule: "usage_limit_breaker"}},
		{"after the third limit with a known reset, commands start nothing", third.asked("resume", "retry", "escalate", "solve"), Decision{Action: DoStop, Rule: "usage_limit_breaker"}},
		{"after the third limit with an unknown reset, remarks start nothing", thirdUnknown.asked("", "solve"), Decision{Action: DoStop, Rule: "usage_limit_breaker"}},
	})
}

func TestEditLoopStartsACooldown(t *testing.T) {
	until := noon.Add(6 * time.Hour)
	cooling := func(f *Facts) { f.Backends[0].Cooldown.Until, f.Backends[0].Cooldown.Class = until, Severe }
	nowhere := looping()
	nowhere.EndTree = nowhere.StartTree
	loop := given(looping()).with(cooling)
	read(t, []sentence{
		{"another backend continues meanwhile", loop,
			Decision{Action: DoAttempt, Rule: "edit_loop", Backend: "claude", Reasons: wanted("severe edit loop", "26 of them on a.go")}},
		{"alone, the run waits", loop.alone(),
			Decision{Action: DoWait, Rule: "cooldown", Until: until, Reasons: wanted("cooling down until 2026-03-02T18:00:00Z")}},
		{"a remark does not end the cooldown", loop.alone().asked(""), Decision{Action: DoWait, Rule: "cooldown", Until: until}},
		{"a resume ends the cooldown, and the reasons name the user", loop.alone().asked("resume"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Reasons: wanted("alice asked to resume")}},
		{"an escalation ends the cooldown and raises the effort", loop.alone().asked("escalate"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Rung: RungEffort, Escalated: true}},
		{"the run continues after the cooldown", loop.alone().with(func(f *Facts) { f.Now = until }),
			Decision{Action: DoAttempt, Rule: "edit_loop", Backend: "codex"}},
		{"a loop without progress ends the run", given(nowhere).with(cooling),
			Decision{Action: DoStop, Rule: "no_progress", Reasons: wanted("attempt 1 failed (edit loop) and brought no change")}},
	})
}

func TestFailureWithoutProgressStops(t *testing.T) {
	read(t, []sentence{
		{"a failure that changed nothing ends the run", given(fruitless()),
			Decision{Action: DoStop, Rule: "no_progress", Reasons: wanted("attempt 1 failed (crashed) and brought no change: exit code 1")}},
		{"a failed verification without a change ends the run", given(Attempt{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed}}),
			Decision{Action: DoStop, Rule: "no_progress"}},
		{"new feedback starts another attempt", given(fruitless()).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a failure with progress continues", given(timedOut()),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex", Reasons: wanted("attempt 1 moved the work forward before it ended timed out")}},
		{"progress of an earlier attempt does not count", given(timedOut(), fruitless()),
			Decision{Action: DoStop, Rule: "no_progress", Reasons: wanted("attempt 2")}},
	})
	for _, e := range []Ending{CutOff, ContextOverflow, TurnLimit, SelfLoop, TimedOut, Killed, Crashed} {
		decides(t, given(Attempt{Receipt: Receipt{Ending: e}}), Decision{Action: DoStop, Rule: "no_progress"})
		decides(t, given(Attempt{Receipt: Receipt{Ending: e, StartTree: "before", EndTree: moved}}), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"})
	}
}

func TestFeedbackStartsAnAttempt(t *testing.T) {
	read(t, []sentence{
		{"feedback starts a new run", given().asked("solve"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"an attempt takes all feedback at once", given().asked("solve", "", ""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex",
				Reasons: wanted("3 remarks that no attempt has taken yet", "alice asked to solve; a remark by alice")}},
		{"an escalation starts at the escalated effort", given().asked("escalate"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Rung: RungEffort, Escalated: true}},
		{"an escalation starts at the usual effort if there is no higher one", given().asked("escalate").with(func(f *Facts) { f.Backends[0].CanEscalate = false }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Reasons: wanted("1 remark", "backend codex has no higher effort to try")}},
		{"the attempt runs on the pinned backend", given().asked("solve").with(func(f *Facts) { f.Pinned = "claude" }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "claude"}},
		{"the attempt starts once all parts of a review have arrived", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(-gatherReview) }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"the parts of a review are awaited first", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromReviewComment, noon.Add(-time.Second) }),
			Decision{Action: DoWait, Rule: "gather", Until: noon.Add(gatherReview - time.Second)}},
		{"the parts of a review are awaited for up to 30 s", given().asked("", "").with(func(f *Facts) {
			f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(2*time.Second-gatherMost)
			f.Fresh[1].Source, f.Fresh[1].At = FromReview, noon.Add(-time.Second)
		}), Decision{Action: DoWait, Rule: "gather", Until: noon.Add(2 * time.Second)}},
		{"the parts of a review are not awaited beyond 30 s", given().asked("", "").with(func(f *Facts) {
			f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(-gatherMost)
			f.Fresh[1].Source, f.Fresh[1].At = FromReview, noon.Add(-time.Second)
		}), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a command does not wait for the parts of a review", given().asked("", "retry").with(func(f *Facts) {
			f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(-time.Second)
		}), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"failing checks, which were awaited before, start at once", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromCheckRun, noon }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"feedback with a time in the future starts at once", given().asked("").with(func(f *Facts) { f.Fresh[0].At = noon.Add(time.Hour) }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"the rest of a review is awaited although its time is a second ahead", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(time.Second) }),
			Decision{Action: DoWait, Rule: "gather", Until: noon.Add(time.Second + gatherReview)}},
		{"a review with a time in the future starts at once", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(time.Hour) }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"the first backend runs if the pinned one was removed", given().asked("solve").with(func(f *Facts) { f.Pinned = "gone" }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}
