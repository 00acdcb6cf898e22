package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// decides checks a decision apart from its hint. A wanted reason is a part of
// the joined reasons; every decision must have reasons and a rule.
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

// onItsAccount gives a wanted decision the account of its backend if that has only one.
func onItsAccount(f Facts, want Decision) Decision {
	of := slices.DeleteFunc(slices.Clone(f.Backends), func(b Backend) bool { return b.Name != want.Backend })
	if want.Account == "" && len(of) == 1 {
		want.Account = of[0].Account
	}
	return want
}

// saying makes the wanted reasons of a table short.
func wanted(reasons ...string) Reasons { return Because("", reasons...) }

// sentence is one line of a table: what is given, and what is to be decided.
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
		{"a closed thread stays closed whoever asks", given().asked("resume", "retry", "solve").with(func(f *Facts) { f.Closed = "merged" }),
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
		{"the restarts are used up by then", given(many(51, timedOut(), finished())...),
			Decision{Action: DoDone, Rule: "done"}},
		{"many edits are no matter once the work is done", given(looped),
			Decision{Action: DoDone, Rule: "done"}},
		{"but not when it changed nothing", given(empty),
			Decision{Action: DoStop, Rule: "no_change", Reasons: wanted("attempt 1 ended completed and changed nothing")}},
		{"but not when conflict markers are left", given(Attempt{Receipt: Receipt{Ending: Completed, Conflicts: []string{"a.txt"}}}),
			Decision{Action: DoStop, Rule: "conflict", Reasons: wanted("attempt 1 left conflict markers in a.txt, and its merge was not pushed")}},
		{"but not when its verification failed", given(unverified()),
			Decision{Action: DoAttempt, Rule: "verify_failed", Backend: "codex", Rung: RungVerify}},
		{"but not when it looped and its verification failed", given(failing),
			Decision{Action: DoAttempt, Rule: "edit_loop", Backend: "codex"}},
		{"but not when Pawl could not carry it through", given(lost),
			Decision{Action: DoAttempt, Rule: "interrupted", Backend: "codex"}},
		{"the agent is asked once about tests that fail as on the base", given(asBefore),
			Decision{Action: DoAttempt, Rule: RuleStillFailing, Backend: "codex", Reasons: wanted("2 tests still fail, as before")}},
		{"and then it is done", given(asBefore, askedOnce), Decision{Action: DoDone, Rule: "done"}},
		{"also where it only says that they are not its task", given(asBefore, answersOnly(askedOnce)), Decision{Action: DoDone, Rule: "done"}},
		{"also where it declines to fix them", given(asBefore, notItsTask), Decision{Action: DoDone, Rule: "done", Reasons: wanted("the agent says of what fails: TestA is another task")}},
		{"but not where it broke something meanwhile", given(asBefore, broke), Decision{Action: DoAsk, Rule: "declined"}},
		{"it is not asked where it fixed one", given(mended), Decision{Action: DoDone, Rule: "done"}},
		{"nor before a bound of the day", given(asBefore).with(func(f *Facts) { f.Limits.Restarts.MaxPerThreadPerDay = 1 }),
			Decision{Action: DoWait, Rule: RuleDailyCap, Until: noon.Add(Day - time.Minute)}},
		{"but not while feedback came meanwhile", given(finished()).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Reasons: wanted("1 remark that no attempt has taken yet")}},
		{"and a run that nothing is asked of any more is done as well", given(),
			Decision{Action: DoDone, Rule: "nothing_left"}},
	})
}

// answersOnly is an attempt that leaves the files as they were.
func answersOnly(a Attempt) Attempt {
	a.Outcome, a.StartTree, a.EndTree = "", "after 1", "after 1"
	return a
}

func TestDecliningAgentAsksAUser(t *testing.T) {
	no := Attempt{Receipt: Receipt{Ending: Completed, Outcome: Declined, Declined: "sum is to be odd and even"}}
	said := Decision{Action: DoAsk, Rule: "declined", Reasons: wanted("the agent declined: sum is to be odd and even")}
	read(t, []sentence{
		{"it is no failure and no work without a change", given(no), said},
		{"also where earlier work stands", given(finished(), no), said},
		{"and where the tests of earlier work fail", given(unverified(), no), said},
		{"a person's new words begin again", given(no).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"also a bare word to go on", given(no).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"and again and again", given(no, no, no).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"but nothing goes on where work is paused", given(no).with(func(f *Facts) { f.Paused = "policy.paused" }), Decision{Action: DoStop, Rule: "paused"}},
	})
	if v := Stagnation([]Attempt{no, no, no}, 0, Limits{Stagnation: StagnationLimits{Similarity: 0.85, EscalateAfter: 2}}); v.Similar != 0 || v.Escalated {
		t.Errorf("declining twice is stagnation: %+v", v)
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
		{"only what is left out changed", Receipt{Ending: Completed, Declined: "no", StartTree: "a", EndTree: "a", LeftOut: []string{"ci.yml (protected)"}}, false},
		{"it failed", Receipt{Ending: Crashed, Declined: "no", StartTree: "a", EndTree: "a"}, false},
	} {
		if got := tc.r.Came(ToChange, Defaults().Severity) == Declined; got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// many returns n attempts, all alike but the last.
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
		{"an orderly stop of its server is one of them", given(many(49, timedOut(), timedOut())...).with(func(f *Facts) { f.Handover = Handover{Times: 2, At: noon} }),
			Decision{Action: DoStop, Rule: "restart_limit"}},
		{"and has the backoff of one", given().asked("").with(func(f *Facts) { f.Handover = Handover{Times: 12, At: noon} }),
			Decision{Action: DoWait, Rule: "backoff", Until: noon.Add(4 * time.Second)}},
		{"whatever was said before", untyped(restarted.asked("retry", "resume", "escalate", "solve", "")),
			Decision{Action: DoStop, Rule: "restart_limit"}},
		{"until a person types something new", restarted.asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"the fiftieth restart itself is allowed, after its backoff",
			given(many(50, timedOut(), timedOut())...).with(func(f *Facts) { f.Now = noon.Add(300 * time.Second) }),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"sixty attempts a day are the last, over all runs", day.asked("solve"),
			Decision{Action: DoWait, Rule: "daily_cap", Until: day.Attempts[0].StartedAt.Add(Day), Reasons: wanted("60 attempts on this thread in 24 hours")}},
		{"unless a person allows as many once more", day.asked("raise").with(func(f *Facts) { f.Raised = len(f.Attempts) }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"an attempt that began 24 hours ago does not count any more", spread.asked("solve"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"zero limits forbid everything", given().asked("solve").with(func(f *Facts) { f.Limits = Limits{} }),
			Decision{Action: DoStop, Rule: "daily_cap"}},
	})
}

func TestDailyCapWaits(t *testing.T) {
	f := given(many(6, finished(), finished())...).asked("solve")
	f.Limits.Restarts.MaxPerThreadPerDay = 4
	// Two more must be a day old before there are fewer than four.
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
		{"a rejected login: another backend goes on", given(rejected).with(held),
			Decision{Action: DoAttempt, Rule: "auth", Backend: "claude", Reasons: wanted("backend codex ended auth; claude is next")}},
		{"a rejected login and nobody else", given(rejected).with(held).alone(),
			Decision{Action: DoStop, Rule: "auth", Reasons: wanted("backend codex rejected its login: 401 Unauthorized")}},
		{"a rejected login and a plain remark", given(rejected).with(held).alone().asked(""),
			Decision{Action: DoStop, Rule: "auth"}},
		{"a rejected login that a person says is mended", given(rejected).with(held).alone().asked("retry"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a wrong configuration: another backend goes on", given(broken),
			Decision{Action: DoAttempt, Rule: "misconfigured", Backend: "claude"}},
		{"two wrong configurations are not tried in turn", given(both...),
			Decision{Action: DoStop, Rule: "misconfigured"}},
		{"nor with a remark", given(both...).asked(""),
			Decision{Action: DoStop, Rule: "misconfigured"}},
		{"but when a person says that they are mended", given(both...).asked("retry"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a pinned backend has no other", given(broken).with(func(f *Facts) { f.Pinned = "codex" }),
			Decision{Action: DoStop, Rule: "misconfigured"}},
		{"the one that a person pinned meanwhile goes on", given(broken).with(func(f *Facts) { f.Pinned = "claude" }),
			Decision{Action: DoAttempt, Rule: "misconfigured", Backend: "claude"}},
	})
}

func TestAfterAUsageLimit(t *testing.T) {
	reset := noon.Add(5 * time.Hour)
	known, unknown := given(atLimit(reset)).limited(1, reset), given(atLimit(time.Time{})).limited(1, time.Time{})
	third := given(atLimit(reset)).limited(3, reset).alone()
	thirdUnknown := given(atLimit(time.Time{})).limited(3, time.Time{}).alone()
	past := given(atLimit(noon.Add(-time.Hour))).limited(1, time.Time{}).alone()
	wait := Decision{Action: DoWait, Rule: "usage_limit", Until: reset, Reasons: wanted("account main hit its usage limit", "resets at 2026-03-02T17:00:00Z")}
	read(t, []sentence{
		{"another account goes on", known, Decision{Action: DoAttempt, Rule: "usage_limit", Backend: "claude"}},
		{"another account goes on also where Pawl may wait", known.continuing(), Decision{Action: DoAttempt, Rule: "usage_limit", Backend: "claude"}},
		{"another backend of the same account does not", known.with(func(f *Facts) { f.Backends[1].Account = "main" }),
			Decision{Action: DoStop, Rule: "usage_limit"}},
		{"alone, the run ends and says when the limit resets", known.alone(),
			Decision{Action: DoStop, Rule: "usage_limit", Reasons: wanted("resets at 2026-03-02T17:00:00Z")}},
		{"alone, the run ends and says that the reset is unknown", unknown.alone(),
			Decision{Action: DoStop, Rule: "usage_limit", Reasons: wanted("when it resets is unknown")}},
		{"a plain remark meanwhile changes nothing", known.alone().asked(""), Decision{Action: DoStop, Rule: "usage_limit"}},
		{"allowed to, the run waits for the reset", known.alone().continuing(), wait},
		{"an unknown reset cannot be waited for", unknown.alone().continuing(), Decision{Action: DoStop, Rule: "usage_limit"}},
		{"nor can one that is past", past.continuing(), Decision{Action: DoStop, Rule: "usage_limit", Reasons: wanted("unknown")}},
		{"a remark does not end the wait", known.alone().continuing().asked("", "solve"), wait},
		{"a resume does", known.alone().continuing().asked("resume"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"at the reset the run goes on", known.alone().continuing().with(func(f *Facts) { f.Now = reset }),
			Decision{Action: DoAttempt, Rule: "limit_reset", Backend: "codex"}},
		{"the one that a person pinned meanwhile goes on", known.continuing().with(func(f *Facts) { f.Pinned = "claude" }),
			Decision{Action: DoAttempt, Rule: "usage_limit", Backend: "claude"}},
		{"the pinned backend has no other", known.continuing().with(func(f *Facts) { f.Pinned = "codex" }), wait},
		{"the third in a row ends the run", third, Decision{Action: DoStop, Rule: "usage_limit_breaker", Reasons: wanted("3 × usage_limit in a row on account main")}},
		{"the third in a row is not waited for either", third.continuing(), Decision{Action: DoStop, Rule: "usage_limit_breaker"}},
		{"with a known reset nobody can call", third.asked("resume", "retry", "escalate", "solve"), Decision{Action: DoStop, Rule: "usage_limit_breaker"}},
		{"with an unknown reset remarks cannot call", thirdUnknown.asked("", "solve"), Decision{Action: DoStop, Rule: "usage_limit_breaker"}},
	})
}

func TestEditLoopStartsACooldown(t *testing.T) {
	until := noon.Add(6 * time.Hour)
	cooling := func(f *Facts) { f.Backends[0].Cooldown.Until, f.Backends[0].Cooldown.Class = until, Severe }
	nowhere := looping()
	nowhere.EndTree = nowhere.StartTree
	loop := given(looping()).with(cooling)
	read(t, []sentence{
		{"another backend goes on meanwhile", loop,
			Decision{Action: DoAttempt, Rule: "edit_loop", Backend: "claude", Reasons: wanted("severe edit loop", "26 of them on a.go")}},
		{"alone, the run waits", loop.alone(),
			Decision{Action: DoWait, Rule: "cooldown", Until: until, Reasons: wanted("cooling down until 2026-03-02T18:00:00Z")}},
		{"a remark does not end the cooldown", loop.alone().asked(""), Decision{Action: DoWait, Rule: "cooldown", Until: until}},
		{"a resume does, and the reasons name who asked", loop.alone().asked("resume"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Reasons: wanted("alice asked to resume")}},
		{"an escalation does, and is not forgotten", loop.alone().asked("escalate"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Rung: RungEffort, Escalated: true}},
		{"after the cooldown the run goes on", loop.alone().with(func(f *Facts) { f.Now = until }),
			Decision{Action: DoAttempt, Rule: "edit_loop", Backend: "codex"}},
		{"a loop that led nowhere ends the run", given(nowhere).with(cooling),
			Decision{Action: DoStop, Rule: "no_progress", Reasons: wanted("attempt 1 failed (edit loop) and brought no change")}},
	})
}

func TestFailureWithoutProgressStops(t *testing.T) {
	read(t, []sentence{
		{"a failure that changed nothing ends the run", given(fruitless()),
			Decision{Action: DoStop, Rule: "no_progress", Reasons: wanted("attempt 1 failed (crashed) and brought no change: exit code 1")}},
		{"a verification that failed without a change ends it as well", given(Attempt{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed}}),
			Decision{Action: DoStop, Rule: "no_progress"}},
		{"real feedback is worth another attempt", given(fruitless()).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a failure that moved the work is gone on with", given(timedOut()),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "codex", Reasons: wanted("attempt 1 moved the work before it ended timed out")}},
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
		{"of a new run", given().asked("solve"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"with all of it at once", given().asked("solve", "", ""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex",
				Reasons: wanted("3 remarks that no attempt has taken yet", "alice asked to solve; a remark by alice")}},
		{"at the escalated effort", given().asked("escalate"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Rung: RungEffort, Escalated: true}},
		{"at the usual effort where there is no other", given().asked("escalate").with(func(f *Facts) { f.Backends[0].CanEscalate = false }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Reasons: wanted("1 remark", "backend codex has no higher effort to try")}},
		{"of the backend that a person chose", given().asked("solve").with(func(f *Facts) { f.Pinned = "claude" }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "claude"}},
		{"once the parts of a review have come", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(-gatherReview) }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"but awaits them first", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromReviewComment, noon.Add(-time.Second) }),
			Decision{Action: DoWait, Rule: "gather", Until: noon.Add(gatherReview - time.Second)}},
		{"for 30 s in all", given().asked("", "").with(func(f *Facts) {
			f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(2*time.Second-gatherMost)
			f.Fresh[1].Source, f.Fresh[1].At = FromReview, noon.Add(-time.Second)
		}), Decision{Action: DoWait, Rule: "gather", Until: noon.Add(2 * time.Second)}},
		{"and no longer", given().asked("", "").with(func(f *Facts) {
			f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(-gatherMost)
			f.Fresh[1].Source, f.Fresh[1].At = FromReview, noon.Add(-time.Second)
		}), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"and never with a command", given().asked("", "retry").with(func(f *Facts) {
			f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(-time.Second)
		}), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"and failing checks, which were awaited before, are not", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromCheckRun, noon }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"at once, although a node whose clock is ahead dated it", given().asked("").with(func(f *Facts) { f.Fresh[0].At = noon.Add(time.Hour) }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"awaits the rest of a review also where that clock is ahead by a moment", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(time.Second) }),
			Decision{Action: DoWait, Rule: "gather", Until: noon.Add(time.Second + gatherReview)}},
		{"of a review that such a node dated as well", given().asked("").with(func(f *Facts) { f.Fresh[0].Source, f.Fresh[0].At = FromReview, noon.Add(time.Hour) }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"of the first one when the chosen one is gone", given().asked("solve").with(func(f *Facts) { f.Pinned = "gone" }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}
