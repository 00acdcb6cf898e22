package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// inspectFailure reads a codex run that failed with a message.
func inspectFailure(t testing.TB, message string, now time.Time) Report {
	t.Helper()
	quoted, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	stream := `{"type":"thread.started","thread_id":"a"}` + "\n" + `{"type":"turn.started"}` + "\n" +
		`{"type":"turn.failed","error":{"message":` + string(quoted) + `}}`
	got, err := Inspect(strings.NewReader(stream), codexAdapter(), InspectOptions{Exit: &Exit{Code: 1}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestErrorMessagesAreClassified(t *testing.T) {
	for text, want := range map[string]Ending{
		"You've hit your usage limit. Try again later.":                                UsageLimit,
		"You’ve hit your session limit · resets 3pm":                                   UsageLimit,
		"You hit your spend cap set by the owner.":                                     UsageLimit,
		"Your workspace is out of credits":                                             UsageLimit,
		"stream disconnected before completion: Rate limit reached for m. Try in 28ms": RateLimited,
		"Rate limit exceeded. Please try again in 3 hours":                             UsageLimit,
		"exceeded retry limit, last status: 401 Unauthorized, request id: x":           Auth,
		"exceeded retry limit, last status: 429 Too Many Requests":                     RateLimited,
		"unexpected status 529 <unknown status code>: Overloaded":                      Overloaded,
		"unexpected status 503 Service Unavailable":                                    Overloaded,
		"Selected model is at capacity. Please try a different model.":                 Overloaded,
		"Your refresh token was already used. Please log out and sign in again.":       Auth,
		"The model `x` does not exist or you do not have access to it.":                Misconfigured,
		"Incomplete response returned, reason: max_output_tokens":                      CutOff,
		"stream disconnected before completion: idle timeout waiting for SSE":          TimedOut,
		"Reconnecting... 1/5": Disconnected,
		"Your input exceeds the context window of this model.":                         ContextOverflow,
		"Limit reached · resets 1am (Europe/Berlin) · /upgrade to Max":                 UsageLimit,
		"Fable 5 limit reached, now using Opus":                                        UsageLimit,
		"Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-11-23 18:52:46": UsageLimit,
		"Your organization has reached its usage limit. Contact your admin.":           UsageLimit,
		"You've hit your org's monthly usage limit":                                    UsageLimit,
		"You have depleted your monthly included credits":                              UsageLimit,
		"Rate limit exceeded: free-models-per-day":                                     UsageLimit,
		"Too many tokens per day, please wait before trying again.":                    UsageLimit,
		"Tokens per minute limit exceeded - too many tokens processed.":                RateLimited,
		"You exceeded your current quota. Please retry in 34.07s.":                     RateLimited,
		"Retry limit reached while reading the file":                                   Crashed,
		"Approaching usage limit · resets at 7pm":                                      Crashed,
		"[API Error: terminated]":                                                      Disconnected,
		"SSE read timed out":                                                           TimedOut,
		"The frobnicator refused service until the next full moon.":                    Crashed,
		"": Crashed,
	} {
		got := inspectFailure(t, text, time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC))
		if got.Ending != want {
			t.Errorf("%q: %s, want %s", text, got.Ending, want)
		}
		if got.Failure != text || (want.isLimit() && got.Limit.Message != text) {
			t.Errorf("%q: the text got lost: %+v", text, got)
		}
	}
}

func TestQuotedLimitsAreMentionsOnly(t *testing.T) {
	const limit = "You've hit your usage limit. Try again at 9:06 AM."
	stream := `{"type":"thread.started","thread_id":"a"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"` + limit + `"}}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"rg 'usage limit'","aggregated_output":"","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"rg 'usage limit'","aggregated_output":"{\"type\":\"turn.failed\",\"error\":{\"message\":\"` + limit + `\"}}\n","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"mcp_tool_call","server":"ci","tool":"t","arguments":{},"result":{"content":[{"text":"` + limit + `"}]},"status":"completed"}}
{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"` + limit + `"}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
`
	got, err := Inspect(strings.NewReader(stream), codexAdapter(), InspectOptions{Exit: &Exit{}})
	if err != nil || got.Ending != Completed || got.Limit != nil || got.Mentions != 4 {
		t.Errorf("ending %s, limit %+v, %d mentions, error %v; want completed with 4 mentions", got.Ending, got.Limit, got.Mentions, err)
	}
}

func TestAPlainAgentsLimitMustBeItsLastWord(t *testing.T) {
	for _, c := range []struct {
		output, stderr string
		code           int
		want           Ending
	}{
		{"working\nERROR: You've hit your usage limit. Try again at 9:06 AM.\n", "", 1, UsageLimit},
		{"working\n", "✕ [API Error: You have exhausted your daily quota on this model.]\n", 1, UsageLimit},
		{"Claude usage limit reached. Your limit will reset at 3pm (UTC).", "", 1, UsageLimit},
		{"Too Many Requests: slow down", "", 1, RateLimited},
		{"You've hit your usage limit.\n", "", 0, UsageLimit},
		{"Claude AI usage limit reached|1795251986\n", "", 0, UsageLimit},
		{"I read the file.\nYou've hit your usage limit.\n", "", 0, Completed},
		{"You've hit your usage limit.\n1\n2\n3\n4\n5\n", "", 1, Crashed},
		{"  12\tif strings.Contains(s, \"You've hit your usage limit\") {\n", "", 1, Crashed},
		{"I fixed the message \"You've hit your usage limit.\"\n", "", 1, Crashed},
		{"FAIL: TestUsageLimitReached\n", "", 1, Crashed},
		{"", "", 1, Crashed},
		{"half", "", 124, TimedOut},
		{"half", "", 137, Killed},
	} {
		a, err := For("command", "plain")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Inspect(strings.NewReader(c.output), a, InspectOptions{
			Exit: &Exit{Code: c.code}, Stderr: c.stderr, Now: at(t, "2026-11-21T08:30:00Z"),
		})
		if err != nil || got.Ending != c.want {
			t.Errorf("%q, exit code %d: %s, want %s; reasons %q, error %v", c.output, c.code, got.Ending, c.want, got.Reasons, err)
		}
		if got.Evidence() != c.output {
			t.Errorf("evidence %q, want the whole output %q", got.Evidence(), c.output)
		}
	}
}

func TestOutputWithoutAFinalEventIsNeverSuccess(t *testing.T) {
	const begun = `{"type":"thread.started","thread_id":"a"}` + "\n" + `{"type":"turn.started"}` + "\n"
	for _, c := range []struct {
		stream, stderr string
		code           int
		want           Ending
	}{
		{"", "", 0, NoAnswer},
		{"garbage\x00\xff\n{\"type\":", "", 0, NoAnswer},
		{begun, "", 0, Disconnected},
		{begun + `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"I will"}}`, "", 0, CutOff},
		{begun + `{"type":"error","message":"Reconnecting... 2/5 (stream disconnected before completion: x)"}`, "", 1, Disconnected},
		{begun, "thread 'main' panicked at src/main.rs", 101, Crashed},
		{begun, "", 137, Killed},
		{begun, "", 124, TimedOut},
		{"", "error: unexpected argument '--x' found", 2, Misconfigured},
		{"", "something else", 3, Crashed},
	} {
		got, err := Inspect(strings.NewReader(c.stream), codexAdapter(), InspectOptions{Exit: &Exit{Code: c.code}, Stderr: c.stderr})
		if err != nil || got.Ending != c.want || len(got.Reasons) == 0 {
			t.Errorf("%q, exit code %d: %s, want %s; reasons %q", c.stream, c.code, got.Ending, c.want, got.Reasons)
		}
	}
}
