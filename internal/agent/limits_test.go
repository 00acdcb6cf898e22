package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

// inspectFailure reads a codex run that failed with a message.
func inspectFailure(t testing.TB, message string, now time.Time) agent.Report {
	t.Helper()
	quoted, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	text := `{"type":"thread.started","thread_id":"a"}` + "\n" + `{"type":"turn.started"}` + "\n" +
		`{"type":"turn.failed","error":{"message":` + string(quoted) + `}}`
	got, err := agent.Inspect(strings.NewReader(text), stream(config.Codex), agent.InspectOptions{Exit: &agent.Exit{Code: 1}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestErrorMessagesAreClassified(t *testing.T) {
	for text, want := range map[string]policy.Ending{
		"You've hit your usage limit. Try again later.":                                policy.UsageLimit,
		"You’ve hit your session limit · resets 3pm":                                   policy.UsageLimit,
		"You hit your spend cap set by the owner.":                                     policy.UsageLimit,
		"Your workspace is out of credits":                                             policy.UsageLimit,
		"stream disconnected before completion: Rate limit reached for m. Try in 28ms": policy.RateLimited,
		"Rate limit exceeded. Please try again in 3 hours":                             policy.UsageLimit,
		"exceeded retry limit, last status: 401 Unauthorized, request id: x":           policy.Auth,
		"exceeded retry limit, last status: 429 Too Many Requests":                     policy.RateLimited,
		"unexpected status 529 <unknown status code>: Overloaded":                      policy.Overloaded,
		"unexpected status 503 Service Unavailable":                                    policy.Overloaded,
		"Selected model is at capacity. Please try a different model.":                 policy.Overloaded,
		"Your refresh token was already used. Please log out and sign in again.":       policy.Auth,
		"The model `x` does not exist or you do not have access to it.":                policy.Misconfigured,
		"Incomplete response returned, reason: max_output_tokens":                      policy.CutOff,
		"stream disconnected before completion: idle timeout waiting for SSE":          policy.TimedOut,
		"Reconnecting... 1/5": policy.Disconnected,
		"Your input exceeds the context window of this model.":                         policy.ContextOverflow,
		"Limit reached · resets 1am (Europe/Berlin) · /upgrade to Max":                 policy.UsageLimit,
		"Fable 5 limit reached, now using Opus":                                        policy.UsageLimit,
		"Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-11-23 18:52:46": policy.UsageLimit,
		"Your organization has reached its usage limit. Contact your admin.":           policy.UsageLimit,
		"You've hit your org's monthly usage limit":                                    policy.UsageLimit,
		"You have depleted your monthly included credits":                              policy.UsageLimit,
		"Rate limit exceeded: free-models-per-day":                                     policy.UsageLimit,
		"Too many tokens per day, please wait before trying again.":                    policy.UsageLimit,
		"Tokens per minute limit exceeded - too many tokens processed.":                policy.RateLimited,
		"You exceeded your current quota. Please retry in 34.07s.":                     policy.RateLimited,
		"Retry limit reached while reading the file":                                   policy.Crashed,
		"Approaching usage limit · resets at 7pm":                                      policy.Crashed,
		"[API Error: terminated]":                                                      policy.Disconnected,
		"SSE read timed out":                                                           policy.TimedOut,
		"The frobnicator refused service until the next full moon.":                    policy.Crashed,
		"": policy.Crashed,
	} {
		got := inspectFailure(t, text, time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC))
		if got.Ending != want {
			t.Errorf("%q: %s, want %s", text, got.Ending, want)
		}
		if got.Failure != text || (want.IsLimit() && got.Limit.Message != text) {
			t.Errorf("%q: the text was lost: %+v", text, got)
		}
	}
}

func TestQuotedLimitsCountOnlyAsMentions(t *testing.T) {
	const limit = "You've hit your usage limit. Try again at 9:06 AM."
	text := `{"type":"thread.started","thread_id":"a"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"` + limit + `"}}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"rg 'usage limit'","aggregated_output":"","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"rg 'usage limit'","aggregated_output":"{\"type\":\"turn.failed\",\"error\":{\"message\":\"` + limit + `\"}}\n","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"mcp_tool_call","server":"ci","tool":"t","arguments":{},"result":{"content":[{"text":"` + limit + `"}]},"status":"completed"}}
{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"` + limit + `"}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
`
	got, err := agent.Inspect(strings.NewReader(text), stream(config.Codex), agent.InspectOptions{Exit: &agent.Exit{}})
	if err != nil || got.Ending != policy.Completed || got.Limit != nil || got.Mentions != 4 {
		t.Errorf("ending %s, limit %+v, %d mentions, error %v; want completed with 4 mentions", got.Ending, got.Limit, got.Mentions, err)
	}
}

func TestPlainAgentsLimitCountsOnlyAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		output, stderr string
		code           int
		want           policy.Ending
	}{
		{"working\nERROR: You've hit your usage limit. Try again at 9:06 AM.\n", "", 1, policy.UsageLimit},
		{"working\n", "✕ [API Error: You have exhausted your daily quota on this model.]\n", 1, policy.UsageLimit},
		{"Claude usage limit reached. Your limit will reset at 3pm (UTC).", "", 1, policy.UsageLimit},
		{"Too Many Requests: slow down", "", 1, policy.RateLimited},
		{"You've hit your usage limit.\n", "", 0, policy.UsageLimit},
		{"Claude AI usage limit reached|1795251986\n", "", 0, policy.UsageLimit},
		{"I read the file.\nYou've hit your usage limit.\n", "", 0, policy.Completed},
		{"You've hit your usage limit.\n1\n2\n3\n4\n5\n", "", 1, policy.Crashed},
		{"  12\tif strings.Contains(s, \"You've hit your usage limit\") {\n", "", 1, policy.Crashed},
		{"I fixed the message \"You've hit your usage limit.\"\n", "", 1, policy.Crashed},
		{"FAIL: TestUsageLimitReached\n", "", 1, policy.Crashed},
		{"", "", 1, policy.Crashed},
		{"half", "", 124, policy.TimedOut},
		{"half", "", 137, policy.Killed},
	} {
		a, err := clis.For("command", "plain")
		if err != nil {
			t.Fatal(err)
		}
		got, err := agent.Inspect(strings.NewReader(c.output), a, agent.InspectOptions{
			Exit: &agent.Exit{Code: c.code}, Stderr: c.stderr, Now: at(t, "2026-11-21T08:30:00Z"),
		})
		if err != nil || got.Ending != c.want {
			t.Errorf("%q, exit code %d: %s, want %s; reasons %q, error %v", c.output, c.code, got.Ending, c.want, got.Reasons, err)
		}
		if got.Evidence() != c.output {
			t.Errorf("evidence %q, want the whole output %q", got.Evidence(), c.output)
		}
	}
}

func TestSuccessNeedsAFinalEventAndExitCodeZero(t *testing.T) {
	const begun = `{"type":"thread.started","thread_id":"a"}` + "\n" + `{"type":"turn.started"}` + "\n"
	const finished = `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Done"}}` + "\n" + `{"type":"turn.completed"}` + "\n"
	for _, c := range []struct {
		stream, stderr string
		code           int
		want           policy.Ending
	}{
		{"", "", 0, policy.NoAnswer},
		{"garbage\x00\xff\n{\"type\":", "", 0, policy.NoAnswer},
		{begun, "", 0, policy.Disconnected},
		{begun + `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"I will"}}`, "", 0, policy.CutOff},
		{begun + `{"type":"error","message":"Reconnecting... 2/5 (stream disconnected before completion: x)"}`, "", 1, policy.Disconnected},
		{begun, "thread 'main' panicked at src/main.rs", 101, policy.Crashed},
		{begun, "", 137, policy.Killed},
		{begun, "", 124, policy.TimedOut},
		{begun + finished, "", 124, policy.TimedOut},
		{begun + finished, "", 137, policy.Killed},
		{"", "error: unexpected argument '--x' found", 2, policy.Misconfigured},
		{"", "something else", 3, policy.Crashed},
	} {
		got, err := agent.Inspect(strings.NewReader(c.stream), stream(config.Codex), agent.InspectOptions{Exit: &agent.Exit{Code: c.code}, Stderr: c.stderr})
		if err != nil || got.Ending != c.want || len(got.Reasons) == 0 {
			t.Errorf("%q, exit code %d: %s, want %s; reasons %q", c.stream, c.code, got.Ending, c.want, got.Reasons)
		}
	}
}

// The run's output has an error message, and its session file has an error code.
func TestSessionFilesErrorCodeOverridesTheWording(t *testing.T) {
	const used, fast, odd = "You've hit your usage limit.", "429 Too Many Requests", "The frobnicator refused service."
	for _, c := range []struct {
		words string
		code  policy.Ending
		want  policy.Ending
	}{
		{odd, "", policy.Crashed},
		{odd, policy.UsageLimit, policy.UsageLimit},
		{fast, policy.UsageLimit, policy.UsageLimit},
		{used, policy.Auth, policy.Auth},
		{used, policy.RateLimited, policy.UsageLimit}, // the code of a short limit does not replace a long one
	} {
		now := at(t, "2026-11-21T08:30:00Z")
		got := inspectFailure(t, c.words, now)
		got.Refine(agent.Session{Ending: c.code, Code: "the code"}, now)
		if got.Ending != c.want || got.Ending.IsLimit() != (got.Limit != nil) {
			t.Errorf("%q and %q: %s, want %s; limit %+v, reasons %q", c.words, c.code, got.Ending, c.want, got.Limit, got.Reasons)
		}
	}
}

func TestResetIsClampedToItsBounds(t *testing.T) {
	now := at(t, "2026-11-21T08:30:00Z")
	for _, c := range []struct {
		text, want string
		reported   bool
	}{
		{"usage limit reached. Resets in 13 days", "2026-11-29T08:30:00Z", true},
		{"usage limit reached. Try again in 5s", "2026-11-21T08:31:00Z", true},
		{"usage limit reached|1760004000", "2026-11-21T08:31:00Z", true},
		{"usage limit reached. Try again in 2h", "2026-11-21T10:30:00Z", false},
	} {
		got := inspectFailure(t, c.text, now)
		resets := got.Limit != nil && got.Limit.ResetsAt.Equal(at(t, c.want))
		if reported := len(got.Reasons) > 1; !resets || reported != c.reported {
			t.Errorf("%q: limit %+v, reasons %q; want %s", c.text, got.Limit, got.Reasons, c.want)
		}
	}
}

// at parses a time in RFC 3339.
func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
