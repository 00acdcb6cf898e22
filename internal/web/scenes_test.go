package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

func remark(source policy.Source, by, command, reason, raw string) thread.Feedback {
	return thread.Feedback{Source: source, By: feedback.Actor{ID: 1, Login: by, Type: "User"}, Command: command, Reason: reason, Raw: raw, Text: raw,
		Delivery: "72d3162e-cc78-11e3-81ab-4c9367dc0958"}
}

func about(title, url string) *thread.Details {
	return &thread.Details{Title: title, URL: url, Author: "octocat", DefaultBranch: "main"}
}

func start(n int, backend, account string, rule policy.Rule) thread.Started {
	return thread.Started{N: n, Run: 1, Backend: backend, Account: account, Kind: "codex", Effort: "medium", Seen: 100,
		Decision: policy.Decision{Action: policy.DoAttempt, Rule: rule, Reasons: policy.Because("", "1 remark that no attempt has taken yet"), Backend: backend}}
}

func cost(v float64) *float64 { return &v }

// solved adds an issue whose second attempt succeeds, with all kinds of remarks.
func (s *site) solved() {
	const it = "acme/widgets#7"
	at := now.Add(-3 * time.Hour)
	asked := remark(policy.FromComment, "octocat", "solve", "command solve", "/pawl solve please fix the rounding in total")
	asked.Snapshot = about("Totals are wrong when a price is negative", "https://github.com/acme/widgets/issues/7")
	s.happened(it, at, thread.KindFeedback, asked)
	s.happened(it, at.Add(time.Second), thread.KindAttemptStarted, start(1, "codex", "main", "feedback"))
	s.happened(it, at.Add(4*time.Minute), thread.KindAttemptEnded, policy.Receipt{
		N: 1, Ending: policy.Completed, Outcome: policy.VerifyFailed, Detail: "go test ./... failed", StartTree: "a", EndTree: "b",
		Edits: policy.Edits{Operations: 12, Files: 3, MaxRepeat: 5, MaxRepeatPath: "internal/total.go"}, Evidence: 0xffff0000, Change: 0xff00,
		Final:  "I rounded half to even.",
		Verify: []policy.Verified{{Command: "go test ./...", Exit: 1, Output: "--- FAIL: TestTotal (0.00s)\n    total_test.go:14: got 3, want 4\nFAIL"}},
		Tokens: policy.Tokens{Input: 120_400, CachedInput: 80_000, Output: 4_210}, CostUSD: cost(0.42), AgentMS: 239_000,
	})
	again := start(2, "codex", "main", "verify_failed")
	again.Decision.Rung, again.Effort, again.Decision.Escalated = 3, "high", true
	s.happened(it, at.Add(5*time.Minute), thread.KindAttemptStarted, again)
	s.happened(it, at.Add(8*time.Minute+12*time.Second), thread.KindAttemptEnded, policy.Receipt{
		N: 2, Ending: policy.Completed, Outcome: policy.WorkVerified, StartTree: "b", EndTree: "c", Commit: "0f3c9a1be4d2aa1c5b6e0f3c9a1be4d2aa1c5b6e", Pushed: true,
		Edits: policy.Edits{Operations: 8, Files: 2, MaxRepeat: 4, MaxRepeatPath: "internal/total.go"}, Evidence: 0xff, Change: 0xff0f,
		Final: "The rounding is right for negative prices now, and a test says so.", LeftOut: []string{".github/workflows/ci.yml"},
		Verify: []policy.Verified{{Command: "go test ./...", Runner: "go", Passed: true, Output: "ok  \tacme/widgets\t0.012s"}},
		Tokens: policy.Tokens{Input: 1_820_000, CachedInput: 1_700_000, Output: 9_100}, AgentMS: 180_000,
		Folders:      []policy.Folder{{Path: "internal", Files: 2, Added: 31, Removed: 4}, {Path: ".", Files: 1, Added: 1, Removed: 0}},
		Manifest:     []policy.Manifest{{What: "comments", Kept: 4, Of: 5, Cut: 12, Notes: []string{"1 by a bot"}}},
		RefusedHosts: []string{"pypi.org:443", "169.254.169.254:80 (a private address)"}, Sent: 1200, Received: 48_000,
		TestEvidence: &policy.TestEvidence{Changed: []string{"internal/total_test.go"}, Edits: []string{"edits internal/total_test.go"},
			AsTheyWere: []policy.Verified{{Command: "go test ./...", Passed: true}}, Without: []policy.Verified{{Command: "go test ./...", Exit: 1}}},
	})
	s.happened(it, at.Add(9*time.Minute), thread.KindDecision, thread.Decided{Seen: 5, Decision: policy.Decision{Action: policy.DoDone, Rule: "done",
		Reasons: policy.Because("", "attempt 2 changed the tree and the verify commands passed")}})
	s.happened(it, at.Add(9*time.Minute), thread.KindActStarted, thread.Act{Key: "pull_request"})
	s.happened(it, at.Add(9*time.Minute+time.Second), thread.KindActDone, thread.Act{Key: "pull_request", ID: 8, URL: "https://github.com/acme/widgets/pull/8"})
	s.happened(it, at.Add(time.Hour), thread.KindIgnored, remark(policy.FromDescription, "octocat", "", "the description's content did not change", ""))
	s.happened(it, at.Add(2*time.Hour), thread.KindIgnored,
		remark(policy.FromComment, "ci[bot]", "", "ci[bot] is a bot that is not in allowed_bots", "Coverage went down, see #12"))
}

// looping adds a pull request whose backend is in cooldown after a severe edit loop.
func (s *site) looping() {
	const it = "acme/widgets#9"
	at, end := now.Add(-50*time.Minute), now.Add(-48*time.Minute)
	asked := remark(policy.FromReview, "hubot-owner", "", "a review requests changes", "Please split this up.")
	asked.Snapshot = about("Split the parser", "https://github.com/acme/widgets/pull/9")
	asked.Snapshot.Pull, asked.Snapshot.HeadRef = true, "split-parser"
	s.happened(it, at, thread.KindFeedback, asked)
	s.happened(it, at, thread.KindAttemptStarted, start(1, "codex", "main", "feedback"))
	s.happened(it, end, thread.KindAttemptEnded, policy.Receipt{N: 1, Ending: policy.Killed, Outcome: policy.EditLoop, StartTree: "a", EndTree: "b",
		Edits: policy.Edits{Operations: 59, Files: 3, MaxRepeat: 26, MaxRepeatPath: "parser/parse_test.go"}, AgentMS: 110_000})
	resumes := end.Add(6 * time.Hour)
	s.leased(it, thread.Batch{WakeAt: resumes, Cooldown: &thread.Cooldown{Backend: "codex", Cooldown: policy.Cooldown{Class: "severe", Until: resumes}, Thread: it},
		Events: []thread.NewEvent{{Kind: thread.KindDecision, At: end, Data: thread.Decided{Seen: 3, Decision: policy.Decision{
			Action: policy.DoWait, Rule: "cooldown", Until: resumes, Hint: "Comment /pawl resume to try before that.",
			Reasons: policy.Reasons{
				{Text: "attempt 1 was a severe edit loop: 59 edits, 26 of them on parser/parse_test.go"},
				{Text: "codex: severe edit loop, cooling down until", Until: resumes}},
		}}}}})
}

// limited adds an issue that three consecutive usage limits stopped.
func (s *site) limited() {
	const it = "acme/gadgets#41"
	at := now.Add(-26 * time.Hour)
	asked := remark(policy.FromLabel, "octocat", "solve", `label "pawl" was added`, "")
	asked.Snapshot = about("Crash on an empty file", "https://github.com/acme/gadgets/issues/41")
	s.happened(it, at, thread.KindFeedback, asked)
	const message = "You've hit your usage limit. Try again at 2:03 PM."
	for n := 1; n <= 3; n++ {
		at = at.Add(time.Minute)
		s.happened(it, at, thread.KindAttemptStarted, start(n, "codex", "main", "feedback"))
		at = at.Add(8 * time.Second)
		s.happened(it, at, thread.KindAttemptEnded, policy.Receipt{N: n, Ending: policy.UsageLimit, Outcome: policy.Outcome(policy.UsageLimit), StartTree: "a", EndTree: "a",
			Detail: message, Evidence: 0xabc, Limit: &policy.Limit{Kind: "usage_limit", Message: message, ResetsAt: now.Add(5*time.Hour + 12*time.Minute)}, Exit: 1})
	}
	s.reading("main", policy.Window{Name: "5h", Used: 0.42, SeenAt: now.Add(-time.Minute), ResetsAt: now.Add(4 * time.Hour), Length: 5 * time.Hour})
	s.reading("main", policy.Window{Name: "7d", Used: 0.97, SeenAt: now.Add(-time.Minute), ResetsAt: now.Add(30 * time.Hour), Length: 7 * 24 * time.Hour})
	s.reading("spare", policy.Window{Name: "5h", Used: 0.8, SeenAt: now.Add(-6 * time.Hour), ResetsAt: now.Add(-time.Hour), Length: 5 * time.Hour})
	s.leased(it, thread.Batch{
		Account: "main", Breaker: func(policy.Breaker) policy.Breaker {
			return policy.Breaker{Kind: policy.UsageLimit, Consecutive: 3, ResetsAt: now.Add(5*time.Hour + 12*time.Minute), At: at}
		},
		Events: []thread.NewEvent{{Kind: thread.KindDecision, At: at, Data: thread.Decided{Seen: 7, Decision: policy.Decision{
			Action: policy.DoStop, Rule: "usage_limit_breaker", Reasons: policy.Reasons{{Text: "3 × usage_limit in a row on account main; it resets at", Until: now.Add(5*time.Hour + 12*time.Minute)}},
			Hint: "After the reset, comment /pawl resume to try again.",
		}}}}})
}

// escalating adds an issue whose second attempt continued a session and failed again.
func (s *site) escalating() {
	const it = "acme/gears#12"
	at := now.Add(-20 * time.Minute)
	asked := remark(policy.FromComment, "octocat", "solve", "command solve", "/pawl solve")
	asked.Snapshot = about("Round negative totals", "https://github.com/acme/gears/issues/12")
	s.happened(it, at, thread.KindFeedback, asked)
	first := start(1, "codex", "main", "feedback")
	first.Continues = "a new session: it is the first attempt"
	first.Decision.Choice = &policy.Choice{Mode: policy.ModeShadow, Chosen: "codex", Would: "claude",
		Reasons: []string{"codex is the first of the configured order that is free; sampling would take claude"}}
	s.happened(it, at, thread.KindAttemptStarted, first)
	failing := []policy.Verified{{Command: "go test ./...", Exit: 1, Output: "FAIL", Known: []string{"TestClock"}}}
	s.happened(it, at.Add(3*time.Minute), thread.KindAttemptEnded, policy.Receipt{N: 1, Ending: policy.Completed, Outcome: policy.VerifyFailed, StartTree: "a", EndTree: "b",
		Edits: policy.Edits{Operations: 4, Files: 1, MaxRepeat: 4, MaxRepeatPath: "total.go"}, Verify: failing, Tests: []string{"TestTotal"}, AgentMS: 60_000})
	again := start(2, "codex", "main", "verify_failed")
	again.Decision.Rung, again.Continues, again.Session = 2, "continues session 0199-abc: it was cut off", "0199-abc"
	again.Decision.Choice = &policy.Choice{Mode: policy.ModeLearn, Chosen: "codex", Reasons: []string{"codex drew highest from 31 rewards (exact)"}}
	s.happened(it, at.Add(4*time.Minute), thread.KindAttemptStarted, again)
	s.happened(it, at.Add(6*time.Minute), thread.KindAttemptEnded, policy.Receipt{N: 2, Ending: policy.Completed, Outcome: policy.VerifyFailed, StartTree: "b", EndTree: "c",
		Edits: policy.Edits{Operations: 6, Files: 1, MaxRepeat: 6, MaxRepeatPath: "total.go"}, Verify: failing, Tests: []string{"TestTotal", "TestRound/negative"},
		Tokens: policy.Tokens{Input: 48_100, CachedInput: 32_000, Output: 2_900}, CostUSD: cost(0.0042), Turns: 12, ToolCalls: 31, AgentMS: 120_000,
		Rungs: []policy.Rung{
			{Rung: 4, Trigger: "the agent asked", Response: "the tests ran", Times: 3, Recovered: true},
			{Rung: 2, Trigger: "verify failed", Response: "one more attempt with the change so far and what failed", Times: 1, Tokens: 51_000, CostUSD: cost(0.0042), MS: 120_000},
		}})
	s.happened(it, at.Add(7*time.Minute), thread.KindDecision, thread.Decided{Seen: 5, Decision: policy.Decision{Action: policy.DoStop, Rule: "verify_failed",
		Reasons: policy.Because("", "2 attempts in a row failed their verification"), Hint: "Comment /pawl retry to try again."}})
}

func (s *site) busy() {
	const it = "acme/gadgets#44"
	asked := remark(policy.FromComment, "octocat", "solve", "command solve", "@pawl-bot make the parser faster")
	asked.Snapshot = about("The parser is slow", "https://github.com/acme/gadgets/issues/44")
	s.happened(it, now.Add(-2*time.Minute), thread.KindFeedback, asked)
	s.happened(it, now.Add(-2*time.Minute), thread.KindAttemptStarted, start(1, "claude", "second", "feedback"))
	var err error
	if s.running, err = s.store.Acquire(s.t.Context(), s.thread(it), "node"); err != nil {
		s.t.Fatal(err)
	}
}

// deliveries stores two webhooks.
func (s *site) deliveries() {
	for _, guid := range []string{"a", "b"} {
		if _, err := s.store.Receive(s.t.Context(), thread.Delivery{GUID: guid, Event: "issues", Payload: []byte("{}"), ReceivedAt: now}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *site) everything() {
	s.limited()
	s.solved()
	s.looping()
	s.busy()
	s.deliveries()
}

func (s *site) printed(lines ...string) {
	s.t.Helper()
	dir := filepath.Join(s.data, "attempts", "acme", "gadgets", "44", "1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "transcript"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// messageLine and calls return lines of Codex's output.
func messageLine(words string) string {
	quoted, _ := json.Marshal(words)
	return fmt.Sprintf(`{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":%s}}`, quoted)
}

func calls(command string) string {
	quoted, _ := json.Marshal(command)
	return fmt.Sprintf(`{"type":"item.started","item":{"id":"i2","type":"command_execution","command":%s,"status":"in_progress"}}`, quoted)
}
