package agent_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

const refusals = "../../testdata/refusals"

// The inputs follow public reports of refusals that agents misread.
func TestPublicReportsOfRefusals(t *testing.T) {
	for _, c := range []struct {
		file, cli string
		want      policy.Ending
	}{
		{"01-openrouter-key-cap/claude.jsonl", config.Claude, policy.UsageLimit},
		{"01-openrouter-key-cap/opencode.jsonl", config.OpenCode, policy.UsageLimit},
		{"01-openrouter-key-cap/qwen.jsonl", config.Qwen, policy.UsageLimit},
		{"02-kimi-billing-cycle/claude.jsonl", config.Claude, policy.UsageLimit},
		{"03-gemini-no-capacity/gemini.jsonl", config.Gemini, policy.Overloaded},
		{"03-gemini-no-capacity/gemini-bracket.jsonl", config.Gemini, policy.Overloaded},
		{"03-gemini-no-capacity/plain.txt", config.Plain, policy.Overloaded},
		{"05-claude-1m-context/claude.jsonl", config.Claude, policy.UsageLimit},
		{"06-dashscope-tpm/qwen.jsonl", config.Qwen, policy.RateLimited},
		{"06-dashscope-tpm/qwen-allocated.jsonl", config.Qwen, policy.RateLimited},
		{"08-zai-concurrency/claude.jsonl", config.Claude, policy.RateLimited},
		{"08-zai-concurrency/opencode.jsonl", config.OpenCode, policy.RateLimited},
		{"08-zai-concurrency/opencode-tmr.jsonl", config.OpenCode, policy.RateLimited},
		{"09-qwen-success-401/qwen.jsonl", config.Qwen, policy.Auth},
		{"11-claude-spurious-error-result/claude.jsonl", config.Claude, policy.Completed},
		{"12-claude-background-killed/claude.jsonl", config.Claude, policy.Completed},
		{"45-stale-session-reset/claude.jsonl", config.Claude, policy.UsageLimit},
	} {
		got := inspectFile(t, c.file, c.cli, at(t, "2026-11-21T08:30:00Z"))
		if got.Ending != c.want || got.Ending.IsLimit() != (got.Limit != nil) {
			t.Errorf("%s: %s, want %s; %q", c.file, got.Ending, c.want, got.Reasons)
		}
	}
	for body, want := range map[string]policy.Ending{
		"01-openrouter-key-cap": policy.UsageLimit,
		"02-kimi-billing-cycle": policy.UsageLimit,
		"03-gemini-no-capacity": policy.Overloaded,
		"05-claude-1m-context":  policy.UsageLimit,
		"06-dashscope-tpm":      policy.RateLimited,
	} {
		text, err := os.ReadFile(filepath.Join(refusals, body, "body.json"))
		if err != nil {
			t.Fatal(err)
		}
		status := 429
		if strings.HasPrefix(body, "01") || strings.HasPrefix(body, "02") {
			status = 403
		}
		if got := limit.Read(limit.Answer(status, nil, text)); got.Kind != want {
			t.Errorf("%s behind the gateway: %s, want %s", body, got.Kind, want)
		}
	}
}

func inspectFile(t *testing.T, file, cli string, now time.Time) agent.Report {
	t.Helper()
	f, err := os.Open(filepath.Join(refusals, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	exit := &agent.Exit{}
	if cli == config.Plain {
		exit.Code = 1
	}
	got, err := agent.Inspect(f, stream(cli), agent.InspectOptions{Exit: exit, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestProblemsAfterSuccessAreNamedInReasons(t *testing.T) {
	for file, want := range map[string]string{
		"11-claude-spurious-error-result/claude.jsonl": "only prompt commands are supported",
		"12-claude-background-killed/claude.jsonl":     "background work ended with the agent: bg1",
	} {
		got := inspectFile(t, file, config.Claude, time.Now())
		if !strings.Contains(strings.Join(got.Reasons, "\n"), want) {
			t.Errorf("%s: %q, want %q", file, got.Reasons, want)
		}
	}
}

// Report 45 is read at three times, all after the reset that its message names.
func TestAStaleSessionResetMeansSoon(t *testing.T) {
	for _, now := range []string{"2026-07-15T13:11:00Z", "2026-07-15T13:20:00Z", "2026-07-15T16:10:00Z"} {
		got := inspectFile(t, "45-stale-session-reset/claude.jsonl", config.Claude, at(t, now))
		if got.Limit == nil || got.Limit.ResetsAt.Sub(at(t, now)) > limit.Soonest {
			t.Errorf("at %s: %+v", now, got.Limit)
		}
	}
}

// service is a refusal of testdata/refusals/services.jsonl.
type service struct {
	Service string
	Status  int
	Kind    policy.Ending
	Body    json.RawMessage
}

// presentations shows a refusal as each CLI prints its provider's answer.
func (s service) presentations() map[string]string {
	body := string(s.Body)
	message := limit.Answer(s.Status, nil, s.Body).Message
	said := fmt.Sprintf("API Error: %d %s", s.Status, body)
	result := func(text string) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":%s,"session_id":"s"}`, quoted1(text))
	}
	return map[string]string{
		config.Claude: `{"type":"system","subtype":"init","session_id":"s"}` + "\n" + result(said),
		config.Qwen:   `{"type":"system","subtype":"init","session_id":"s","qwen_code_version":"0.24.4"}` + "\n" + result("["+said+"]"),
		config.Codex: `{"type":"thread.started","thread_id":"a"}` + "\n" + `{"type":"turn.started"}` + "\n" +
			`{"type":"turn.failed","error":{"message":` + quoted1(fmt.Sprintf("unexpected status %d: %s", s.Status, body)) + `}}`,
		config.Gemini: `{"type":"init","session_id":"s"}` + "\n" +
			`{"type":"result","status":"error","error":{"type":"unknown","message":` + quoted1("["+said+"]") + `}}`,
		config.OpenCode: fmt.Sprintf(`{"type":"error","timestamp":1,"sessionID":"s","error":{"name":"APIError","data":{"message":%s,"statusCode":%d,"responseBody":%s}}}`,
			quoted1(message), s.Status, quoted1(body)),
		config.Plain: "working\n" + said,
	}
}

// Each refusal is read by the gateway, from each CLI's stream and from plain text.
func TestRefusalIsClassifiedTheSameOnEveryPath(t *testing.T) {
	text, err := os.ReadFile(refusals + "/services.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	gjson.ForEachLine(string(text), func(line gjson.Result) bool {
		var s service
		if err := json.Unmarshal([]byte(line.Raw), &s); err != nil {
			t.Fatal(err)
		}
		now := at(t, "2026-11-21T08:30:00Z")
		answer := limit.Answer(s.Status, nil, s.Body)
		answer.Now = now
		want := limit.Read(answer).Kind
		inStream := cmp.Or(want, policy.Crashed)
		for cli, shown := range s.presentations() {
			if cli == config.Plain && !want.IsLimit() {
				continue // plain text is read for limits only
			}
			got, err := agent.Inspect(strings.NewReader(shown), stream(cli), agent.InspectOptions{Exit: &agent.Exit{Code: 1}, Now: now})
			if err != nil || got.Ending != inStream {
				t.Errorf("%s %d as %s: %s, gateway %s; %q", s.Service, s.Status, cli, got.Ending, want, got.Reasons)
			}
		}
		return true
	})
}

// Refusals without a status are shown in every form that a CLI may use.
func TestRefusalWithoutStatusIsClassifiedTheSameInEveryStream(t *testing.T) {
	text, err := os.ReadFile(refusals + "/words.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	gjson.ForEachLine(string(text), func(line gjson.Result) bool {
		words, kind := line.Get("text").Str, policy.Ending(line.Get("kind").Str)
		if line.Get("status").Int() != 0 || !kind.IsLimit() {
			return true
		}
		for _, cli := range append(allCLIs, config.Plain) {
			for _, shown := range refusal(t, cli, words) {
				switch shown.how {
				case "waiting", "current format": // these have an hour's wait or status 429, which override the words
					continue
				}
				got, err := agent.Inspect(strings.NewReader(shown.stdout), shown.adapter, agent.InspectOptions{
					Exit: shown.exit, Stderr: shown.stderr, Now: at(t, "2026-11-21T08:30:00Z"),
				})
				if err != nil || got.Ending != kind {
					t.Errorf("%q as %s %s: %s, want %s; %q", words, cli, shown.how, got.Ending, kind, got.Reasons)
				}
			}
		}
		return true
	})
}

// The limit is named once by a field and words, and once by words alone.
func TestMatchingWordsDoNotLowerAFieldsCertainty(t *testing.T) {
	for status, want := range map[string]string{"529": policy.Certain, "null": policy.Likely} {
		line := `{"type":"result","subtype":"success","is_error":true,"num_turns":1,"api_error_status":` + status + `,"result":"The server is overloaded","session_id":"s"}`
		got, err := agent.Inspect(strings.NewReader(line), stream(config.Claude), agent.InspectOptions{Exit: &agent.Exit{Code: 1}})
		if err != nil || got.Limit == nil || got.Limit.Certainty != want {
			t.Errorf("status %s: %+v, want %s", status, got.Limit, want)
		}
	}
}

// Judged by the last line or the exit code alone, these ends would be classified wrongly.
func TestStreamsEndIsJudgedWithItsWork(t *testing.T) {
	const init = `{"type":"system","subtype":"init","session_id":"s"}` + "\n"
	const edit = init + `{"type":"assistant","session_id":"s","message":{"id":"m","model":"c","content":[{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"/r/a","old_string":"a","new_string":"b"}}]}}` + "\n" +
		`{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}` + "\n"
	const good = `{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"Done.","session_id":"s"}` + "\n"
	const idle = `{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"s","errors":["no such command"]}`
	const started = `{"type":"system","subtype":"task_started","task_id":"b1","is_backgrounded":true}` + "\n"
	const ignored, left = "an error without any work followed the final event", "background work ended with the agent: b1"
	for _, c := range []struct {
		how, cli, text string
		want           policy.Ending
		named, not     string
	}{
		{"an idle error", config.Claude, edit + good + idle, policy.Completed, ignored, "empty"},
		{"an idle error of a new turn", config.Claude, edit + good + init + idle, policy.Completed, ignored, "empty"},
		{"an idle error without a good end", config.Claude, edit + idle, policy.Crashed, "no such command", ignored},
		{"a refused second turn", config.Claude, edit + good + init + `{"type":"result","subtype":"success","is_error":true,"num_turns":1,"api_error_status":429,"result":"You've hit your session limit","session_id":"s"}`, policy.UsageLimit, "session limit", ignored},
		{"a task that ended", config.Claude, edit + started + `{"type":"system","subtype":"task_notification","task_id":"b1","status":"completed"}` + "\n" + good, policy.Completed, "final event", "background"},
		{"a task that is running", config.Claude, edit + started + good, policy.Completed, left, ignored},
		{"a task stopped at the end", config.Claude, edit + good + `{"type":"system","subtype":"task_notification","task_id":"b1","status":"stopped"}`, policy.Completed, left, ignored},
		{"an error as the answer", config.Codex, `{"type":"turn.started"}` + "\n" + `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Error: 401 Unauthorized"}}` + "\n" + `{"type":"turn.completed","usage":{}}`, policy.Auth, "whole answer", left},
		{"an error in pieces", config.Gemini, `{"type":"init","session_id":"s"}` + "\n" + `{"type":"message","role":"assistant","content":"[API Error: 403 quota","delta":true}` + "\n" +
			`{"type":"message","role":"assistant","content":" exceeded]","delta":true}` + "\n" + `{"type":"result","status":"success","stats":{}}`, policy.UsageLimit, "whole answer", left},
		{"an error as the last step", config.OpenCode, `{"type":"text","sessionID":"s","part":{"text":"Error: 503 overloaded"}}` + "\n" + `{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}`, policy.Overloaded, "whole answer", left},
		{"an error as the output", config.Plain, "[API Error: 401 status code (no body)]", policy.Auth, "whole output", left},
	} {
		got, err := agent.Inspect(strings.NewReader(c.text), stream(c.cli), agent.InspectOptions{Exit: &agent.Exit{}})
		why := strings.Join(got.Reasons, "\n")
		if err != nil || got.Ending != c.want {
			t.Errorf("%s: %s, want %s; %q", c.how, got.Ending, c.want, why)
		}
		if !strings.Contains(why, c.named) || strings.Contains(why, c.not) {
			t.Errorf("%s: %q, want %q without %q", c.how, why, c.named, c.not)
		}
	}
}
