package checkrun

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// now is the moment of every golden file: a Wednesday morning.
var now = time.Date(2026, 3, 4, 8, 51, 0, 0, time.UTC)

func dollars(v float64) *float64 { return &v }

// base returns a thread whose first attempt is running.
func base() View {
	return View{
		Thread: "acme/widgets#7", Number: 7, Title: "Totals are wrong when a price is negative",
		RequestedBy: "octocat", Request: "Please fix the rounding in `total`.\n\nSee the failing test.",
		State: Running, Decided: decided("feedback", "1 remark that no attempt has taken yet"),
		Now: now, Run: 1, IssueURL: "https://github.com/acme/widgets/issues/7",
		DetailsURL: "https://pawl.example.com/threads/acme/widgets/7", Branch: "pawl/issue-7", Base: "main",
		Attempts: []Attempt{attempt(policy.Receipt{N: 1})},
	}
}

func decided(r policy.Rule, reason string) thread.Decided {
	return thread.Decided{Decision: policy.Decision{Rule: r, Reasons: policy.Because(r, reason)}}
}

// over returns a completed attempt that changed something.
func over(n int) Attempt {
	a := attempt(policy.Receipt{
		N: n, Ending: "completed", Outcome: "unverified", StartTree: "before", EndTree: "after", Commit: "0f3c9a1be4d2", Pushed: true,
		Edits:  policy.Edits{Operations: 12, Files: 3, MaxRepeat: 5, MaxRepeatPath: "internal/total.go"},
		Final:  "I rounded half to even and added a test.",
		Tokens: policy.Tokens{Input: 120_400, CachedInput: 80_000, Output: 4_210}, CostUSD: dollars(0.42),
	})
	a.Duration = 3*time.Minute + 12*time.Second
	return a
}

// attempt returns an attempt by codex in the first run.
func attempt(r policy.Receipt) Attempt {
	return Attempt{Attempt: policy.Attempt{Receipt: r, Run: 1, Backend: "codex"}, Effort: "medium"}
}

// unlike returns a failed attempt without changes.
func unlike(n int, ending, detail string) Attempt {
	a := attempt(policy.Receipt{N: n, Ending: policy.Ending(ending), Outcome: policy.Outcome(ending), Detail: detail})
	a.Duration = 8 * time.Second
	return a
}

// noLoop sets the verdicts of an attempt without loops and repetitions.
func noLoop(f View) View {
	f.Severity = policy.Severity{Class: policy.None,
		Reasons: []string{"12 edits, at most 5 on one file; a loop starts at 40 edits with 8 on one file"}}
	f.Stagnation = policy.Stagnant{Reasons: []string{"there is no earlier attempt to compare with"}}
	return f
}

func loop(class string, ops, files, repeat int, cooldown time.Duration, grade float64) View {
	f := noLoop(base())
	a := over(1)
	a.Ending, a.Outcome = "killed", "edit_loop"
	a.Pushed = false
	a.Edits = policy.Edits{Operations: ops, Files: files, MaxRepeat: repeat, MaxRepeatPath: "internal/total_test.go"}
	f.Attempts = []Attempt{a}
	f.State, f.Rule, f.Until = Waiting, "cooldown", now.Add(cooldown-48*time.Minute)
	f.Reasons = policy.Reasons{
		{Text: fmt.Sprintf("attempt 1 was a %s edit loop: %d edits, %d of them on internal/total_test.go", class, ops, repeat)},
		{Text: fmt.Sprintf("codex: %s edit loop, cooling down until", class), Until: f.Until},
	}
	f.Hint = "Comment /pawl resume to try before that."
	f.CooldownUntil = f.Until
	f.Severity = policy.Severity{Class: policy.Class(class), Cooldown: cooldown, Grade: grade,
		Reasons: []string{fmt.Sprintf("%d edits, %d of them on internal/total_test.go", ops, repeat)}}
	return f
}

func limited(n int) View {
	f := noLoop(base())
	f.Attempts = nil
	for i := 1; i <= n; i++ {
		f.Attempts = append(f.Attempts, unlike(i, "usage_limit", "You've hit your usage limit. Visit https://example.com/codex/settings/usage"))
	}
	f.Severity.Reasons = []string{"0 edits, at most 0 on one file; a loop starts at 40 edits with 8 on one file"}
	f.Limit = &AccountLimit{Account: "main", Message: "You've hit your usage limit. Visit https://example.com/codex/settings/usage to purchase more credits or try again at 2:03 PM.",
		ResetsAt: now.Add(5*time.Hour + 12*time.Minute), Consecutive: n}
	return f
}

func stagnant(kind string) View {
	f := noLoop(base())
	f.Attempts = nil
	for i := 1; i <= 3; i++ {
		a := over(i)
		a.Outcome, a.Duration = "verify_failed", time.Duration(i)*time.Minute
		a.Verify = []policy.Verified{{Command: "go test ./...", Runner: "go", Exit: 1, Output: "--- FAIL: TestTotal (0.00s)\n    total_test.go:14: got 3, want 4\nFAIL"}}
		if i > 1 {
			a.Similarity, a.SimilarKind = 0.86+0.04*float64(i), kind
			a.Decision.Rung = 2
		}
		f.Attempts = append(f.Attempts, a)
	}
	f.Stagnation = policy.Stagnant{Kind: kind, Similar: 2, Similarity: 0.98, Escalated: true,
		Reasons: []string{"2 attempts in a row with a similar " + kind + " (0.98; similar from 0.85)"}}
	f.Rule, f.Reasons = "stagnation", policy.Because("stagnation", f.Stagnation.Reasons...)
	return f
}

// cases returns the views of the golden files by name.
func cases() map[string]View {
	c := map[string]View{
		"first-attempt-running": base(),
		"mild":                  loop("mild", 41, 5, 8, 90*time.Minute, 0.08),
		"moderate":              loop("moderate", 65, 4, 16, 3*time.Hour, 0.05),
		"severe":                loop("severe", 59, 3, 26, 6*time.Hour, 0.02),
	}

	done := noLoop(base())
	failedFirst, verified := over(1), over(2)
	failedFirst.Outcome = "verify_failed"
	failedFirst.Verify = []policy.Verified{{Command: "go test ./...", Runner: "go", Exit: 1, Output: "--- FAIL: TestTotal (0.00s)\nFAIL"}}
	verified.Outcome = "verified"
	verified.Verify = []policy.Verified{{Command: "go test ./...", Runner: "go", Passed: true, Output: "ok  \tacme/widgets\t0.012s"}}
	verified.Decision.Rung, verified.LeftOut = 2, []string{".github/workflows/ci.yml"}
	verified.Similarity = 0.61
	failedFirst.Tests = []string{"example.com/widgets TestTotal"}
	verified.ToolCalls, verified.Turns = 14, 6
	verified.Continues = "it continues the session of attempt 1"
	verified.Chosen = "codex drew highest from 24 rewards (category)"
	verified.Grade = "0.91, from the verifier and how the agent worked"
	verified.Rungs = []policy.Rung{
		{Rung: 4, Times: 3, Trigger: "the agent ran the tests; 2 of 3 calls failed", Response: "ran the verify commands during the attempt", Recovered: true, MS: 9_000},
		{Rung: 2, Times: 1, Trigger: "verification failed after attempt 1; retry 1 of 2 with its output", Response: "one more attempt with the change so far and what failed",
			Recovered: true, Tokens: 124_610, CostUSD: dollars(0.42), MS: 192_000},
		{Rung: 1, Times: 3, Helped: 2, Trigger: "3 answers without a tool call or text", Response: "asked again in the opposite thinking mode, at the gateway",
			Tokens: 9_000, CostUSD: dollars(0.05), WastedTokens: 21_000, WastedUSD: dollars(0.11)},
	}
	done.Attempts = []Attempt{failedFirst, verified}
	done.State, done.Rule, done.Reasons = Done, "done", policy.Because("", "attempt 2 changed the tree: verified")
	done.Pull, done.PullURL = 8, "https://github.com/acme/widgets/pull/8"
	done.Stagnation.Reasons = []string{"similarity with the attempt before is 0.61; similar from 0.85"}
	c["done"] = done

	repeated := done
	stuck := verified
	stuck.Edits.Failures, stuck.Edits.FailedCall = 400, `Bash {"command":"npm test -- --run"}`
	repeated.Attempts = []Attempt{failedFirst, stuck}
	c["done-repeated-call"] = repeated

	untold, silent := done, over(1)
	silent.Edits, silent.StartTree, silent.EndTree, silent.Verify = policy.Edits{}, "1f2e3d", "4c5b6a", verified.Verify
	silent.N, silent.Outcome = 2, "verified"
	untold.Attempts, untold.Reasons = []Attempt{failedFirst, silent}, policy.Because("", "attempt 2 changed the tree: verified")
	untold.Severity = policy.Defaults().Severity.Loop(silent.Receipt)
	c["done-untold"] = untold

	asBefore, red := done, verified
	red.Outcome = "unverified"
	red.Verify = []policy.Verified{{Command: "go test ./...", Runner: "go", Exit: 1, Passed: true, Output: "--- FAIL: TestClock (0.00s)\nFAIL", Known: []string{"example.com/widgets TestClock", "example.com/widgets TestZone"}}}
	asBefore.Attempts = []Attempt{failedFirst, red}
	asBefore.Reasons = policy.Because("", "attempt 2 changed the tree: 2 tests still fail, as before")
	c["done-as-before"] = asBefore

	waiting := limited(1)
	waiting.State, waiting.Rule, waiting.Until = Waiting, "usage_limit", waiting.Limit.ResetsAt
	waiting.Reasons = policy.Reasons{{Text: "account main hit its usage limit: You've hit your usage limit. Visit https://example.com/codex/settings/usage; it resets at", Until: now.Add(5*time.Hour + 12*time.Minute)}}
	waiting.Hint = "Comment /pawl resume to try before that."

	spent := waiting
	spent.Rule, spent.Reasons = policy.RuleBudget, policy.Because(policy.RuleBudget, "5.10 USD on this thread in 24 hours; its budget is 5.00")
	spent.Hint = "It continues by itself then. /pawl raise allows the daily limits once more now; /pawl stop ends the wait."
	c["waiting-for-reset"], c["day-spent"] = waiting, spent

	open := limited(3)
	open.State, open.Rule = Stopped, "usage_limit_breaker"
	open.Reasons = policy.Reasons{{Text: "3 × usage_limit in a row on account main; it resets at", Until: now.Add(5*time.Hour + 12*time.Minute)}}
	open.Hint = "After the reset, comment /pawl resume to try again."
	c["breaker-open"] = open

	over3 := limited(3)
	over3.State, over3.Rule, over3.Reasons, over3.Hint = open.State, open.Rule, open.Reasons, open.Hint
	for i := range over3.Attempts {
		over3.Attempts[i].Run = i + 1
	}
	over3.Run = 3
	c["breaker-open-over-runs"] = over3

	for _, kind := range []string{"failure", "revision"} {
		f := stagnant(kind)
		next := attempt(policy.Receipt{N: 4})
		next.Decision.Different = true
		if kind == "revision" {
			next.Backend = "claude"
		}
		f.Attempts = append(f.Attempts, next)
		c["stagnation-"+kind] = f
	}

	return addStops(c)
}

// remark returns a comment that was judged in the past: acted on, or withdrawn.
func remark(ago time.Duration, by, source, raw, accepted, ignored string) thread.Request {
	return thread.Request{Withdrawn: ignored, Feedback: thread.Feedback{
		At: now.Add(-ago), By: feedback.Actor{Login: by}, Source: policy.Source(source), Raw: raw, Reason: accepted,
	}}
}

// addStops adds the cases that wait for a user.
func addStops(c map[string]View) map[string]View {
	restarts := noLoop(base())
	restarts.Attempts = []Attempt{{Attempt: policy.Attempt{Receipt: policy.Receipt{N: 1, Ending: "completed"}, Backend: "codex"}}}
	for i := 1; i <= 51; i++ {
		a := over(i)
		a.Ending, a.Outcome = policy.Crashed, policy.HasCrashed
		a.Waited = time.Duration(min(300, 1<<max(0, min(9, i-11)))) * time.Second
		a.Similarity = 0.5
		restarts.Attempts = append(restarts.Attempts, a)
	}
	restarts.State, restarts.Rule = Stopped, "restart_limit"
	restarts.Reasons = policy.Because("", "the run was restarted 50 times since a user typed something new, which is its limit")
	restarts.Hint = "Look at the attempts; a new /pawl solve starts a new run."
	c["restart-limit"] = restarts

	ignored := noLoop(base())
	ignored.Attempts = []Attempt{over(1)}
	ignored.State, ignored.Rule, ignored.Reasons = Done, "done", policy.Because("", "attempt 1 changed the tree and ended completed; no verify command ran")
	ignored.Feedback = []thread.Request{
		remark(26*time.Hour, "octocat", "comment", "/pawl solve", "command solve", ""),
		remark(40*time.Minute, "octocat", "description", "", "", "the description's content did not change"),
		remark(4*time.Minute, "ci[bot]", "comment", "Coverage went down @octocat, see #12", "", "ci[bot] is a bot that is not in allowed_bots"),
	}
	c["ignored-feedback"] = ignored

	config := base()
	config.Attempts, config.State, config.Rule, config.Reasons = nil, ConfigError, "config_error", nil
	config.Problems = []thread.Problem{
		{Path: ".github/pawl.yml", Line: 3, Message: `unknown key "verfy"; did you mean verify?`},
		{Path: ".github/pawl.yml", Line: 9, Message: "restarts.max: 80 is more than the server allows (50)"},
	}
	c["config-error"] = config

	own := noLoop(base())
	own.Attempts = []Attempt{over(1)}
	own.State, own.Rule, own.Reasons = Failed, "own_failure", policy.Because("", "push pawl/issue-7: remote rejected: pre-receive hook declined")
	c["own-failure"] = own

	same := noLoop(base())
	same.Attempts = []Attempt{over(1)}
	same.Attempts[0].Outcome, same.Attempts[0].EndTree, same.Attempts[0].Pushed = "no_change", "before", false
	same.Attempts[0].Edits = policy.Edits{}
	same.State, same.Rule, same.Reasons = Stopped, "no_change", policy.Because("", "attempt 1 ended completed and changed nothing")
	same.Hint = "Say what is missing in a comment, or close the thread."
	c["no-change"] = same

	no := same
	no.Attempts = []Attempt{same.Attempts[0]}
	no.Attempts[0].Outcome, no.Attempts[0].Declined = "declined", "sum() is to be odd and even at once, see #7 @octocat"
	no.Attempts[0].Final = "DECLINED: " + no.Attempts[0].Declined + "\n\nThe test wants 3, the description wants 4."
	no.Rule, no.Reasons = "declined", policy.Because("", "the agent declined: "+no.Attempts[0].Declined)
	no.Hint = "Say in a comment what to do instead, or what the agent got wrong; the work then begins again."
	c["declined"] = no

	verify := stagnant("failure")
	verify.Stagnation = policy.Stagnant{Similarity: 0.71, Reasons: []string{"similarity with the attempt before is 0.71; similar from 0.85"}}
	verify.Attempts[2].Similarity, verify.Attempts[2].SimilarKind = 0.71, ""
	verify.State, verify.Rule = Stopped, "verify_failed"
	verify.Reasons = policy.Because("", "verification failed after 3 attempts in a row")
	verify.Hint = "Look at the failing commands; comment what to do, or /pawl escalate."
	c["verify-failed"] = verify

	answer := noLoop(base())
	reply := over(1)
	reply.Outcome, reply.EndTree, reply.Pushed, reply.Commit, reply.Decision.Purpose = "answered", "before", false, "", policy.ToAnswer
	reply.Final, reply.LeftOut, reply.Grade = "In `total`, see #7 @octocat <b>.", []string{"a.go (thrown away)"}, "none: it was to change nothing"
	answer.Attempts, answer.Purpose, answer.State = []Attempt{reply}, policy.ToAnswer, Answered
	answer.Rule, answer.Reasons, answer.AnswerURL = "answered", policy.Because("", "attempt 1 answered"), "https://github.com/acme/widgets/issues/7#issuecomment-1"
	c["answered"] = answer

	plan := answer
	reply.Decision.Purpose, reply.Outcome, reply.LeftOut = policy.ToPlan, "planned", nil
	plan.Attempts, plan.Purpose, plan.State, plan.Rule = []Attempt{reply}, policy.ToPlan, Planned, "planned"
	plan.Reasons, plan.AnswerURL, plan.PostError = policy.Because("", "attempt 1 made a plan"), "", "POST /repos/acme/widgets/issues/7/comments: 403 the issue is locked"
	plan.Hint = "Read the plan and edit its comment as you like; /pawl go then has the agent work by it."
	c["planned"] = plan

	beside := answer
	reply.N, reply.Run, reply.Outcome, reply.Decision.Purpose = 4, 2, "answered", policy.ToAnswer
	beside.Run, beside.Attempts, beside.Before = 2, append(verify.Attempts[:3:3], reply), &verify
	c["answered-beside-work"] = beside

	cancelled := noLoop(base())
	cancelled.Attempts = []Attempt{unlike(1, "killed", "")}
	cancelled.Attempts[0].Outcome = "cancelled"
	cancelled.State, cancelled.Rule, cancelled.Reasons = Stopped, "cancelled", policy.Because("", "octocat commented /pawl stop")
	cancelled.Hint = "Comment /pawl resume to go on."
	c["cancelled"] = cancelled

	// The check keeps the commit's verification when an attempt leaves the commit unchanged.
	retried := c["done"]
	failedFirst, verified := retried.Attempts[0], retried.Attempts[1]
	declined := no.Attempts[0]
	declined.N, declined.Run = 3, 2
	retried.Run, retried.State, retried.Rule, retried.Reasons, retried.Hint = 2, Stopped, no.Rule, no.Reasons, no.Hint
	retried.Attempts = []Attempt{failedFirst, verified, declined}
	c["declined-on-verified-work"] = retried

	updated := c["done"]
	merge := verified
	merge.N, merge.Backend, merge.NoAgent, merge.Final, merge.Tokens, merge.CostUSD = 3, "no agent", true, "", policy.Tokens{}, nil
	updated.Attempts = []Attempt{failedFirst, verified, merge}
	c["done-and-updated"] = updated
	c["hostile"] = hostile()
	return c
}

// hostile returns a thread with an attack in every text.
func hostile() View {
	evil := strings.Join([]string{
		"@everyone #12 GH-12 acme/widgets#1 0f3c9a1be4d2aa", "```", "</details><script>alert(1)</script>",
		"![x](https://evil.example/p.png) <img src=x>", "<!-- pawl:end --> <!--PAWL:status acme/widgets#7 -->",
		"\x1b[31mred\x1b[0m \u202eright to left\u202c a\u200bb", "| a | b |", "~~~", "-----", "www.evil.example :tada:",
	}, "\n")
	f := noLoop(base())
	f.Title, f.RequestedBy, f.Request, f.Branch = evil, "@evil`", evil, evil
	a := over(1)
	a.Backend, a.Effort, a.Detail, a.Final = evil, evil, evil, evil
	a.Edits.MaxRepeatPath, a.LeftOut = evil, []string{evil}
	a.Verify = []policy.Verified{{Command: evil, Output: evil, Exit: 1}}
	a.SimilarKind, a.Commit = evil, evil
	f.Attempts = []Attempt{a}
	f.State, f.Rule, f.Reasons, f.Hint = Stopped, policy.Rule(evil), policy.Because("", evil), evil
	f.Severity.Reasons = []string{evil}
	f.Stagnation = policy.Stagnant{Kind: evil, Similar: 1, Similarity: 0.9, Reasons: []string{evil}}
	f.Limit = &AccountLimit{Account: evil, Message: evil, Consecutive: 2}
	f.Feedback = []thread.Request{remark(0, evil, evil, evil, "", evil)}
	f.PullURL, f.IssueURL, f.DetailsURL = "javascript:alert(1)", "https://x)@evil", evil
	f.Problems = []thread.Problem{{Path: evil, Line: -1, Message: evil}}
	return f
}
