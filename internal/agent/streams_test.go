package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

// read inspects one recorded run of testdata.
func read(t *testing.T, cli, name string) agent.Report {
	t.Helper()
	for _, run := range loadRuns(t, recordedAll+"/"+cli, cli) {
		if run.name == name {
			return run.inspect(t)
		}
	}
	t.Fatalf("no run %s/%s", cli, name)
	return agent.Report{}
}

func TestEveryStreamReportsTheSameForTheSameWork(t *testing.T) {
	want := policy.Edits{Operations: 1, Files: 1, MaxRepeat: 1, MaxRepeatPath: "hello.txt"}
	for cli, tokens := range agenttest.EveryCLI(t, map[string]policy.Tokens{
		config.Codex:    {Input: 2400, CachedInput: 400, Output: 68},
		config.Claude:   {Input: 2400, CachedInput: 400, Output: 68},
		config.OpenCode: {Input: 2400, CachedInput: 400, Output: 68},
		config.Qwen:     {Input: 2400, CachedInput: 400, Output: 68},
		config.Gemini:   {Input: 3600, CachedInput: 600, Output: 102}, // an extra request chooses the model
	}) {
		got := read(t, cli, "edit-success")
		if got.Ending != policy.Completed || counts(got.Edits) != want || got.ToolCalls != 1 || got.SessionID == "" || got.Turns == 0 ||
			got.FinalMessage != "Done. I created hello.txt with one line of text." {
			t.Errorf("%s: %+v", cli, got)
		}
		if d := cmp.Diff(tokens, got.Tokens); d != "" {
			t.Errorf("%s: tokens: %s", cli, d)
		}
		if hasCost := cli == config.Claude || cli == config.OpenCode; (got.CostUSD != nil) != hasCost {
			t.Errorf("%s: cost %v", cli, got.CostUSD)
		}
	}
	if got := read(t, config.OpenCode, "edit-success").CostUSD; fmt.Sprintf("%.6f", *got) != "0.002136" {
		t.Errorf("the cost of two steps is %v", *got)
	}
}

func TestASecondStepContinuesItsSession(t *testing.T) {
	for _, cli := range allCLIs {
		first, second := read(t, cli, "resume"), read(t, cli, "resume2")
		if first.SessionID != second.SessionID || second.Edits.MaxRepeatPath != "turn2.txt" || !strings.HasPrefix(second.FinalMessage, "Turn 2 finished.") {
			t.Errorf("%s: %+v", cli, second)
		}
	}
}

func TestLoopEditsAreCounted(t *testing.T) {
	for cli, want := range agenttest.EveryCLI(t, map[string]int{config.Codex: 26, config.Claude: 26, config.OpenCode: 26, config.Qwen: 26, config.Gemini: 10}) {
		got := read(t, cli, "flipflop-loop")
		if got.Edits.MaxRepeat < want || got.Edits.Files != 1 {
			t.Errorf("%s: %+v, want %d on one file", cli, got.Edits, want)
		}
	}
}

func TestRejectedCallIsNotAnEdit(t *testing.T) {
	for cli, stream := range agenttest.EveryCLI(t, map[string]string{
		config.Codex: `{"type":"item.completed","item":{"id":"a","type":"file_change","changes":[{"path":"/r/a.go","kind":"update"}],"status":"failed"}}
{"type":"item.started","item":{"id":"b","type":"file_change","changes":[{"path":"/r/b.ipynb","kind":"update"}],"status":"in_progress"}}
{"type":"item.completed","item":{"id":"b","type":"file_change","changes":[{"path":"/r/b.ipynb","kind":"update"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"b","type":"file_change","changes":[{"path":"/r/b.ipynb","kind":"update"}],"status":"completed"}}`,
		config.Qwen: `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"edit","input":{"file_path":"/r/a.go"}}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"b","name":"write_file","input":{"file_path":"/r/b.ipynb"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","is_error":false,"content":"ok"}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"b","name":"write_file","input":{"file_path":"/r/b.ipynb"}}]}}`,
		config.Claude: `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Edit","input":{"file_path":"/r/a.go"}},{"type":"tool_use","id":"b","name":"NotebookEdit","input":{"notebook_path":"/r/b.ipynb"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"},{"type":"tool_result","tool_use_id":"b","content":"ok"}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"b","name":"NotebookEdit","input":{"notebook_path":"/r/b.ipynb"}}]}}`,
		config.Gemini: `{"type":"tool_use","tool_name":"replace","tool_id":"a","parameters":{"file_path":"/r/a.go"}}
{"type":"tool_use","tool_name":"write_file","tool_id":"b","parameters":{"file_path":"/r/b.ipynb"}}
{"type":"tool_result","tool_id":"a","status":"error"}
{"type":"tool_result","tool_id":"b","status":"success"}
{"type":"tool_result","tool_id":"b","status":"success"}`,
		config.OpenCode: `{"type":"tool_use","sessionID":"s","part":{"tool":"edit","callID":"a","state":{"status":"error","input":{"filePath":"/r/a.go"}}}}
{"type":"tool_use","sessionID":"s","part":{"id":"p2","messageID":"m","tool":"apply_patch","callID":"b","state":{"status":"completed","input":{"patchText":"*** Begin Patch\n*** Update File: /r/b.ipynb\n@@\n"}}}}
{"type":"tool_use","sessionID":"s","part":{"id":"p2","messageID":"m","tool":"apply_patch","callID":"b","state":{"status":"completed","input":{"patchText":"*** Begin Patch\n*** Update File: /r/b.ipynb\n@@\n"}}}}`,
	}) {
		a, err := clis.ForStream(cli)
		if err != nil {
			t.Fatal(err)
		}
		got, err := agent.Inspect(strings.NewReader(stream), a, agent.InspectOptions{Dir: "/r"})
		if want := (policy.Edits{Operations: 1, Files: 1, MaxRepeat: 1, MaxRepeatPath: "b.ipynb"}); err != nil || counts(got.Edits) != want || got.ToolCalls != 2 {
			t.Errorf("%s: %+v, %d calls, error %v", cli, got.Edits, got.ToolCalls, err)
		}
	}
}

func TestLimitIsFoundInEveryPresentation(t *testing.T) {
	const text = "You've hit your usage limit. Try again in 3 hours 2 minutes."
	now := at(t, "2026-11-21T08:30:00Z")
	for _, cli := range append([]string{config.Plain}, allCLIs...) {
		for _, shown := range refusal(t, cli, text) {
			got, err := agent.Inspect(strings.NewReader(shown.stdout), shown.adapter, agent.InspectOptions{Exit: shown.exit, Stderr: shown.stderr, Now: now})
			if err != nil || got.Ending != policy.UsageLimit || got.Limit == nil || !strings.Contains(got.Limit.Message, "You've hit your usage limit.") ||
				got.Limit.ResetsAt.IsZero() || !got.Limit.ResetsAt.Equal(at(t, "2026-11-21T11:32:00Z")) {
				t.Errorf("%s, %s: %s, limit %+v, reasons %q, error %v", cli, shown.how, got.Ending, got.Limit, got.Reasons, err)
			}
		}
	}
}

func TestUnknownRefusalIsNeverSuccess(t *testing.T) {
	const text = "The frobnicator refused service until the next full moon."
	for _, cli := range allCLIs {
		for _, shown := range refusal(t, cli, text) {
			if shown.how == "called a success" || shown.how == "waiting" {
				continue // these do not distinguish an answer from an error
			}
			got, err := agent.Inspect(strings.NewReader(shown.stdout), shown.adapter, agent.InspectOptions{Exit: shown.exit})
			if err != nil || got.Ending == policy.Completed || !strings.Contains(strings.Join(got.Reasons, " "), text) {
				t.Errorf("%s, %s: %s, reasons %q, error %v", cli, shown.how, got.Ending, got.Reasons, err)
			}
		}
	}
}

func TestQuotedLimitIsAMentionInEveryStream(t *testing.T) {
	for _, shown := range quote(t, "You've hit your usage limit. Try again at 9:06 AM.") {
		if shown.how != "in a finished run" {
			continue
		}
		got, err := agent.Inspect(strings.NewReader(shown.stdout), shown.adapter, agent.InspectOptions{Exit: shown.exit})
		if err != nil || got.Ending != policy.Completed || got.Limit != nil || got.Mentions < 2 {
			t.Errorf("%s: %s with %d mentions, limit %+v, error %v", shown.adapter.Stream, got.Ending, got.Mentions, got.Limit, err)
		}
	}
}

func TestResetsInFieldsAreExact(t *testing.T) {
	for cli, runs := range agenttest.EveryCLI(t, map[string][]struct{ stream, want string }{
		config.Claude: {
			{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795251986,"rateLimitType":"five_hour"}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your session limit · resets 9:06am (UTC)"}`, "2026-11-21T09:06:26Z"},
			{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795251986}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"A new wording."}`, "2026-11-21T09:06:26Z"},
		},
		config.OpenCode: {
			{`{"type":"error","timestamp":1795249800000,"sessionID":"s","error":{"name":"APIError","data":{"message":"Rate limit exceeded. Please try again later.","statusCode":429,"responseHeaders":{"Retry-After":"13471"},"responseBody":"{\"error\":{\"type\":\"FreeUsageLimitError\"}}"}}}`, "2026-11-21T12:14:31Z"},
			{`{"type":"error","timestamp":1795249800000,"sessionID":"s","error":{"name":"APIError","data":{"message":"Rate limit exceeded. Please try again later.","statusCode":429,"responseHeaders":{"retry-after":"Sat, 21 Nov 2026 12:14:31 GMT"}}}}`, "2026-11-21T12:14:31Z"},
		},
		config.Codex:  nil, // only its session file has a field
		config.Gemini: nil, // its stream has only text
		config.Qwen:   nil, // its stream has only text
	}) {
		for _, c := range runs {
			got, err := agent.Inspect(strings.NewReader(c.stream), stream(cli), agent.InspectOptions{Exit: &agent.Exit{Code: 1}, Now: time.UnixMilli(1795249800000)})
			if err != nil || got.Ending != policy.UsageLimit {
				t.Errorf("%s: %s, reasons %q, error %v", c.stream, got.Ending, got.Reasons, err)
				continue
			}
			structured := got.Limit.Source == policy.SourceStructured
			if !structured || !got.Limit.ResetsAt.Equal(at(t, c.want)) {
				t.Errorf("%s: limit %+v; want the reset %s from a field", c.stream, got.Limit, c.want)
			}
		}
	}
}

func TestOtherErrorsAreNotUsageLimits(t *testing.T) {
	for _, c := range []struct {
		cli, stream, stderr string
		code                int
		want                policy.Ending
	}{
		{config.Claude, `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1795250991,"rateLimitType":"five_hour"}}
{"type":"result","subtype":"success","is_error":false,"result":"Done."}`, "", 0, policy.Completed},
		{config.Claude, `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","isUsingOverage":false}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: Request rejected (429) · Slow down."}`, "", 1, policy.RateLimited},
		{config.Gemini, `{"type":"init","session_id":"s"}`, "Attempt 3 failed: You exceeded your current quota. Please retry in 2s.\nSuggested retry after 2s.. Retrying after 20971ms...\n", 124, policy.RateLimited},
		{config.Gemini, `{"type":"message","role":"user","content":"x"}
{"type":"message","role":"assistant","content":"I work."}`, "Attempt 1 failed with status 429. Retrying with backoff...\n", 124, policy.TimedOut},
		{config.Gemini, `{"type":"message","role":"user","content":"x"}`, "", 173, policy.RateLimited},
		{config.OpenCode, `{"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls"}}`, "", 0, policy.NoAnswer},
		{config.OpenCode, `{"type":"text","sessionID":"s","part":{"text":"x"}}
{"type":"step_finish","sessionID":"s","part":{"reason":"unknown"}}`, "", 0, policy.Disconnected},
		{config.Claude, `{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}
{"type":"result","subtype":"success","is_error":false,"result":"No response requested."}`, "", 0, policy.Completed},
	} {
		got, err := agent.Inspect(strings.NewReader(c.stream), stream(c.cli), agent.InspectOptions{Exit: &agent.Exit{Code: c.code}, Stderr: c.stderr})
		if err != nil || got.Ending != c.want {
			t.Errorf("%s %s: %s, want %s; reasons %q, error %v", c.stream, c.stderr, got.Ending, c.want, got.Reasons, err)
		}
	}
}

// Every adapter reads a one-line stream twice. The events must be valid, and the second reading must give the same
// report.
func FuzzLine(f *testing.F) {
	for _, lines := range agenttest.EveryCLI(f, map[string][]string{
		config.Codex: {
			`{"type":"item.completed","item":{"id":"1","type":"file_change","changes":[{"path":"/a","kind":"add"}]}}`,
			`{"type":"turn.failed","error":{"message":"You’ve hit your usage limit."}}`,
			`{"type":"error","message":"\ud83d\u12"`,
			`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"text":"x"}]}}`,
		},
		config.Claude: {
			`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"/a"}}]},"session_id":"s"}`,
			`{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"x","total_cost_usd":1e400}`,
			`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":99999999999999}}`,
		},
		config.Gemini: {
			`{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: x]"},"stats":{}}`,
			`{"type":"tool_use","tool_name":"replace","tool_id":"t","parameters":{"file_path":"/a"}}`,
		},
		config.OpenCode: {
			`{"type":"error","timestamp":1795249800000,"sessionID":"s","error":{"name":"APIError","data":{"message":"x","responseHeaders":{"retry-after":"1e9"}}}}`,
			`{"type":"tool_use","sessionID":"s","part":{"tool":"apply_patch","callID":"c","state":{"input":{"patchText":"*** Update File: a\n"}}}}`,
		},
		config.Qwen: {
			`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"edit","input":{"file_path":"/a"}}],"usage":{"input_tokens":1,"cache_read_input_tokens":9e18}},"session_id":"s"}`,
			`{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"[API Error: x]"}}`,
		},
	}) {
		for _, line := range lines {
			f.Add([]byte(line))
		}
	}
	now := time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, cli := range allCLIs {
			a := stream(cli)
			a.Parse(line, func(e agent.Event) {
				if e.Kind == 0 || strings.ToValidUTF8(e.Text, "") != e.Text {
					t.Errorf("%s: %q gave %+v", cli, line, e)
				}
			})
			twice := string(line) + "\n" + string(line)
			first, err := agent.Inspect(strings.NewReader(twice), a, agent.InspectOptions{Now: now})
			if err != nil || first.Ending == "" || len(first.Reasons) == 0 {
				t.Errorf("%s: %q gave %+v, error %v", cli, line, first, err)
			}
			again, _ := agent.Inspect(strings.NewReader(twice), a, agent.InspectOptions{Now: now})
			if d := cmp.Diff(first, again, cmp.AllowUnexported(agent.Report{})); d != "" {
				t.Errorf("%s: %s", cli, d)
			}
		}
	})
}

// counts returns the counts of edits without their content.
func counts(e policy.Edits) policy.Edits {
	return policy.Edits{Operations: e.Operations, Files: e.Files, MaxRepeat: e.MaxRepeat, MaxRepeatPath: e.MaxRepeatPath}
}
