package agent_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
)

// claudeUse returns a line of a message with its calls, each "ID command".
func claudeUse(message string, calls ...string) string {
	var parts []string
	for _, c := range calls {
		id, command, _ := strings.Cut(c, " ")
		parts = append(parts, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":%q}}`, id, command))
	}
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"content":[%s]}}`+"\n", message, strings.Join(parts, ","))
}

func claudeAnswer(ids ...string) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,"content":"out"}]}}`+"\n", id)
	}
	return b.String()
}

func claudeEdit(message, id, before, after string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"content":[{"type":"tool_use","id":%q,"name":"Edit","input":`+
		`{"file_path":"/r/a.go","old_string":%q,"new_string":%q}}]}}`+"\n", message, id, before, after)
}

func opencodeCall(id, part, status, command string) string {
	return fmt.Sprintf(`{"type":"tool_use","sessionID":"ses_1","part":{"id":%q,"messageID":"m","tool":"bash","callID":%q,`+
		`"state":{"status":%q,"input":{"command":%q},"output":"out"}}}`+"\n", part, id, status, command)
}

func codexCommand(state, id, command string) string {
	return fmt.Sprintf(`{"type":"item.%s","item":{"id":%q,"type":"command_execution","command":%q,"aggregated_output":"out","exit_code":0}}`+"\n", state, id, command)
}

func geminiUse(id, command string) string {
	return fmt.Sprintf(`{"type":"tool_use","tool_name":"run_shell_command","tool_id":%q,"parameters":{"command":%q}}`+"\n", id, command)
}

func geminiAnswer(id string) string {
	return fmt.Sprintf(`{"type":"tool_result","tool_id":%q,"status":"success","output":"out"}`+"\n", id)
}

func codexSessionCall(id, command string) string {
	return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call","call_id":%q,"name":"shell","arguments":%q}}`+"\n", id, command)
}

func codexSessionAnswer(id string) string {
	return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call_output","call_id":%q,"output":"out"}}`+"\n", id)
}

// work has one call in each CLI's format.
var work = map[string]string{
	config.Claude:   claudeUse("m", "x make") + claudeAnswer("x"),
	config.Qwen:     claudeUse("m", "x make") + claudeAnswer("x"),
	config.Codex:    codexCommand("completed", "x", "make"),
	config.Gemini:   geminiUse("x", "make") + geminiAnswer("x"),
	config.OpenCode: opencodeCall("x", "p", "completed", "make"),
}

// times joins the n texts that line returns.
func times(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

func message(i int) string { return fmt.Sprintf("msg_%d", i) }

func TestCallsAreIdentifiedByMessageAndPositionNotID(t *testing.T) {
	for name, c := range map[string]struct {
		cli, stream string
		calls       int
		same        int // equal calls with equal answers; zero means as many as calls
	}{
		"claude, one id": {config.Claude, times(120, func(i int) string { return claudeUse(message(i), "x make") + claudeAnswer("x") }), 120, 0},
		"claude, three ids": {config.Claude, times(120, func(i int) string {
			id := fmt.Sprint(i % 3)
			return claudeUse(message(i), id+" make") + claudeAnswer(id)
		}), 120, 0},
		"claude, one message too": {config.Claude, times(120, func(int) string { return claudeUse("m", "x make") + claudeAnswer("x") }), 120, 0},
		"claude, no message":      {config.Claude, times(120, func(int) string { return claudeUse("", "x make") + claudeAnswer("x") }), 120, 0},
		"claude, no ids":          {config.Claude, times(120, func(int) string { return claudeUse("", " make") + claudeAnswer("") }), 120, 0},
		"claude, answers without ids": {
			config.Claude, times(120, func(i int) string { return claudeUse(message(i), "x make") + claudeAnswer("") }), 120, 0,
		},
		"claude, calls without ids": {
			config.Claude, times(120, func(i int) string { return claudeUse(message(i), " make") + claudeAnswer("x") }), 120, 0,
		},
		"claude, each message reported twice": {
			config.Claude, times(30, func(i int) string {
				return claudeUse(message(i), "x make") + claudeUse(message(i), "x make") + claudeAnswer("x")
			}), 30, 0,
		},
		"claude, a message reported again with another call, after an answer": {
			config.Claude, times(30, func(i int) string {
				return claudeUse(message(i), "x make") + claudeAnswer("x") + claudeUse(message(i), "x make", "y make") + claudeAnswer("y")
			}), 60, 0,
		},
		"claude, growing arguments": {
			config.Claude, times(30, func(i int) string {
				return claudeUse(message(i), "x ") + claudeUse(message(i), "x ma") + claudeUse(message(i), "x make") + claudeAnswer("x")
			}), 30, 0,
		},
		"claude, parallel under one id": {
			config.Claude, times(30, func(i int) string {
				return claudeUse(message(i), "x make", "x make", "x make") + claudeAnswer("x", "x", "x")
			}), 90, 0,
		},
		"claude, parallel under one id, reported twice": {
			config.Claude, times(30, func(i int) string {
				return claudeUse(message(i), "x make", "x make") + claudeUse(message(i), "x make", "x make") + claudeAnswer("x", "x")
			}), 60, 0,
		},
		"claude, parallel under one id, a line each": {
			config.Claude, times(30, func(i int) string {
				return claudeUse(message(i), "x make") + claudeUse(message(i), "x ls") + claudeAnswer("x", "x")
			}), 60, 30,
		},
		"claude, answered twice": {
			config.Claude, times(30, func(i int) string { return claudeUse(message(i), "x make") + claudeAnswer("x", "x") }), 30, 0,
		},
		"claude, answers first": {
			config.Claude, times(30, func(i int) string { return claudeAnswer(message(i)) + claudeUse("m", message(i)+" make") }), 30, 0,
		},
		"claude, every other call is never answered": {
			config.Claude, times(30, func(i int) string { return claudeUse(message(i), message(i)+" make") + claudeAnswer(message(i/2*2)) }), 15, 0,
		},
		"claude, an answer to nothing": {config.Claude, claudeAnswer("x", "y"), 0, 0},
		"claude, two sessions with the same call": {config.Claude, times(2, func(i int) string {
			return fmt.Sprintf(`{"type":"system","subtype":"init","session_id":"s%d"}`+"\n", i) + claudeUse("m", "x make") + claudeAnswer("x")
		}), 2, 0},
		"claude, a provider's own tool": {
			config.Claude, times(30, func(i int) string {
				return `{"type":"assistant","message":{"id":"m","content":[{"type":"server_tool_use","id":"x","name":"web_search","input":{}},` +
					`{"type":"web_search_tool_result","tool_use_id":"x","content":[]}]}}` + "\n"
			}), 30, 0,
		},
		"qwen, one id":     {config.Qwen, times(120, func(i int) string { return claudeUse(message(i), "x make") + claudeAnswer("x") }), 120, 0},
		"opencode, one id": {config.OpenCode, times(120, func(i int) string { return opencodeCall("x", message(i), "completed", "make") }), 120, 0},
		"opencode, every state": {config.OpenCode, times(40, func(i int) string {
			return opencodeCall("x", message(i), "pending", "") + opencodeCall("x", message(i), "running", "make") +
				opencodeCall("x", message(i), "running", "make") + opencodeCall("x", message(i), "completed", "make")
		}), 40, 0},
		"opencode, each reported again after the next": {config.OpenCode, times(40, func(i int) string {
			return opencodeCall("x", message(i), "completed", "make") + opencodeCall("x", message(max(i-1, 0)), "completed", "make")
		}), 40, 0},
		"opencode, never ended": {config.OpenCode, times(40, func(i int) string {
			return opencodeCall(message(i), message(i), "pending", "") + opencodeCall(message(i), message(i), "running", "make")
		}), 0, 0},
		"opencode, an unknown state": {config.OpenCode, times(40, func(i int) string { return opencodeCall("x", message(i), "queued", "make") }), 0, 0},
		"opencode, no part ids":      {config.OpenCode, times(40, func(int) string { return opencodeCall("x", "", "completed", "make") }), 40, 0},
		"codex, one id": {config.Codex, times(120, func(int) string {
			return codexCommand("started", "x", "make") + codexCommand("completed", "x", "make")
		}), 120, 0},
		"codex, only end events": {config.Codex, times(120, func(int) string { return codexCommand("completed", "x", "make") }), 120, 0},
		"codex, end events reported twice": {config.Codex, times(30, func(int) string {
			return codexCommand("started", "x", "make") + codexCommand("completed", "x", "make") + codexCommand("completed", "x", "make")
		}), 30, 0},
		"codex, never ended":      {config.Codex, times(30, func(i int) string { return codexCommand("started", message(i), "make") }), 0, 0},
		"codex, no ids":           {config.Codex, times(30, func(int) string { return codexCommand("started", "", "make") + codexCommand("completed", "", "make") }), 30, 0},
		"a codex session, one id": {config.Codex, times(120, func(int) string { return codexSessionCall("x", "make") + codexSessionAnswer("x") }), 120, 0},
		"gemini, one id":          {config.Gemini, times(120, func(int) string { return geminiUse("x", "make") + geminiAnswer("x") }), 120, 0},
		"gemini, no ids, parallel": {config.Gemini, times(30, func(int) string {
			return geminiUse("", "make") + geminiUse("", "make") + geminiAnswer("") + geminiAnswer("")
		}), 60, 0},
		"gemini, out of order": {config.Gemini, times(30, func(i int) string {
			return geminiUse(message(2*i), "make") + geminiUse(message(2*i+1), "make") + geminiAnswer(message(2*i+1)) + geminiAnswer(message(2*i))
		}), 60, 0},
	} {
		live := 0
		got, err := agent.Inspect(strings.NewReader(c.stream), stream(c.cli), agent.InspectOptions{OnCall: func(agent.Call) { live++ }})
		same := got.Edits.SameCalls
		read, want := []int{got.ToolCalls, live, same}, []int{c.calls, c.calls, cmp.Or(c.same, c.calls)}
		if err != nil || !slices.Equal(read, want) {
			t.Errorf("%s: %d calls, %d of them live, %d equal, error %v; want %d", name, got.ToolCalls, live, same, err, c.calls)
		}
	}
}

// The sessions have arbitrary call ids, and the CLI reports each message once or several times, whole or in parts.
func TestAnsweredCallsCountOnceHoweverOftenReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		want := 0
		for m := range rapid.IntRange(1, 12).Draw(t, "messages") {
			all := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 1, 4).Draw(t, "ids")
			calls := make([]string, len(all))
			for i, id := range all {
				calls[i] = fmt.Sprintf("%s make %d", id, i)
			}
			reports := 1 + rapid.IntRange(0, 2).Draw(t, "again")
			switch rapid.SampledFrom([]string{"whole", "parts", "growing"}).Draw(t, "how") {
			case "whole":
				text.WriteString(strings.Repeat(claudeUse(message(m), calls...), reports))
			case "parts":
				for _, c := range calls {
					text.WriteString(strings.Repeat(claudeUse(message(m), c), reports))
				}
			case "growing":
				for n := range calls {
					text.WriteString(strings.Repeat(claudeUse(message(m), calls[:n+1]...), reports))
				}
			}
			answered := rapid.IntRange(0, len(all)).Draw(t, "answered")
			text.WriteString(claudeAnswer(all[:answered]...))
			want += answered
			if answered < len(all) {
				break // the session was cut
			}
			if rapid.Bool().Draw(t, "answered twice") {
				text.WriteString(claudeAnswer(all...))
			}
		}
		got, err := agent.Inspect(strings.NewReader(text.String()), stream(config.Claude), agent.InspectOptions{})
		if err != nil || got.ToolCalls != want {
			t.Fatalf("%d calls, error %v; want %d in\n%s", got.ToolCalls, err, want, text.String())
		}
	})
}

func TestEditsUnderOneIDAreSeenAsALoop(t *testing.T) {
	text := times(120, func(i int) string {
		before, after := "a", "b"
		if i%2 == 1 {
			before, after = after, before
		}
		return claudeEdit(message(i), "x", before, after) + claudeAnswer("x")
	})
	got, err := agent.Inspect(strings.NewReader(text), stream(config.Claude), agent.InspectOptions{})
	class := policy.Defaults().Severity.Judge(got.Edits).Class
	if err != nil || got.Edits.Operations != 120 || class == policy.None {
		t.Errorf("%+v is %s, error %v; want 120 edits, a loop", got.Edits, class, err)
	}
	dropped, err := agent.Inspect(strings.NewReader(claudeEdit("m", "x", "a", "b")), stream(config.Claude), agent.InspectOptions{})
	if err != nil || dropped.Edits.Operations != 0 || dropped.Ending != policy.CutOff {
		t.Errorf("an edit that was never answered: %+v, %s, error %v", dropped.Edits, dropped.Ending, err)
	}
}

const claudeSucceeded = `{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"input_tokens":5,"output_tokens":1}`

func TestTokensCoverTheWholeSessionOrAreUnknown(t *testing.T) {
	const models = `,"modelUsage":{"a":{"inputTokens":10,"cacheReadInputTokens":20,"cacheCreationInputTokens":30,"outputTokens":4},"b":{"inputTokens":1,"outputTokens":2}}`
	const less = `,"modelUsage":{"a":{"inputTokens":3,"outputTokens":1}}`
	init := func(id string) string {
		return fmt.Sprintf(`{"type":"system","subtype":"init","session_id":%q}`+"\n", id)
	}
	of := policy.Tokens{Input: 61, CachedInput: 20, Output: 6}
	both := of.Plus(policy.Tokens{Input: 3, Output: 1})
	codexTurn := `{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":4,"output_tokens":2}}` + "\n"
	for name, c := range map[string]struct {
		cli, stream string
		want        policy.Tokens
	}{
		"all models":                {config.Claude, claudeSucceeded + models + "}", of},
		"no models":                 {config.Claude, claudeSucceeded + "}", policy.Tokens{Input: 5, Output: 1}},
		"empty models":              {config.Claude, claudeSucceeded + `,"modelUsage":{}}`, policy.Tokens{Input: 5, Output: 1}},
		"reported twice":            {config.Claude, claudeSucceeded + models + "}\n" + claudeSucceeded + models + "}", of},
		"then nothing":              {config.Claude, claudeSucceeded + models + "}\n" + `{"type":"result","subtype":"error_during_execution","is_error":true,"usage":{"input_tokens":0,"output_tokens":0},"modelUsage":{}}`, of},
		"a count that starts again": {config.Claude, claudeSucceeded + models + "}\n" + claudeSucceeded + less + "}", both},
		"two sessions":              {config.Claude, init("s1") + claudeSucceeded + less + "}\n" + init("s2") + claudeSucceeded + models + "}", both},
		"one session continues":     {config.Claude, init("s1") + claudeSucceeded + less + "}\n" + init("s1") + claudeSucceeded + models + "}", of},
		"cut":                       {config.Claude, claudeUse("m", "x make") + claudeAnswer("x"), policy.Tokens{}},
		"cut in the final event":    {config.Claude, claudeUse("m", "x make") + claudeSucceeded, policy.Tokens{}},
		"zeros":                     {config.Qwen, `{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"input_tokens":0,"output_tokens":0}}`, policy.Tokens{}},
		"codex":                     {config.Codex, codexTurn, policy.Tokens{Input: 9, CachedInput: 4, Output: 2}},
		"codex, failed":             {config.Codex, `{"type":"turn.failed","error":{"message":"x"}}`, policy.Tokens{}},
		"codex, two sessions": {config.Codex, times(2, func(i int) string {
			return fmt.Sprintf(`{"type":"thread.started","thread_id":"%d"}`+"\n", i) + codexTurn
		}), policy.Tokens{Input: 18, CachedInput: 8, Output: 4}},
		"gemini":          {config.Gemini, `{"type":"result","status":"success"}`, policy.Tokens{}},
		"opencode, zeros": {config.OpenCode, `{"type":"step_finish","part":{"reason":"stop","tokens":{"input":0,"output":0}}}`, policy.Tokens{}},
	} {
		got, err := agent.Inspect(strings.NewReader(c.stream), stream(c.cli), agent.InspectOptions{})
		if err != nil || got.Tokens != c.want {
			t.Errorf("%s: %+v, error %v; want %+v", name, got.Tokens, err, c.want)
		}
	}
}

func TestTruncatedFinalEventDoesNotCount(t *testing.T) {
	final := map[string]string{
		config.Claude:   claudeSucceeded + `,"stop_reason":"end_turn"}`,
		config.Qwen:     claudeSucceeded + `}`,
		config.Codex:    `{"type":"turn.completed","usage":{"input_tokens":9,"output_tokens":2}}`,
		config.Gemini:   `{"type":"result","status":"success","stats":{"input_tokens":9,"output_tokens":2}}`,
		config.OpenCode: `{"type":"step_finish","part":{"reason":"stop","tokens":{"input":9,"output":2}}}`,
	}
	for _, cli := range allCLIs {
		for cut := range final[cli] {
			text := work[cli] + final[cli][:cut]
			got, err := agent.Inspect(strings.NewReader(text), stream(cli), agent.InspectOptions{})
			if err != nil || got.Ending != policy.CutOff || got.Tokens != (policy.Tokens{}) {
				t.Errorf("%s, final event %s: %s, %+v, error %v", cli, final[cli][:cut], got.Ending, got.Tokens, err)
			}
		}
		got, err := agent.Inspect(strings.NewReader(work[cli]+final[cli]), stream(cli), agent.InspectOptions{})
		if err != nil || got.Ending != policy.Completed || got.Tokens.Output == 0 {
			t.Errorf("%s, whole: %s, %+v, error %v", cli, got.Ending, got.Tokens, err)
		}
	}
	for _, undecided := range []struct{ cli, final string }{
		{config.Claude, `{"type":"result","subtype":"success","result":"Done."}`},
		{config.Gemini, `{"type":"result","stats":{"input_tokens":9}}`},
		{config.OpenCode, `{"type":"step_finish","part":{"tokens":{"input":9}}}`},
	} {
		got, err := agent.Inspect(strings.NewReader(work[undecided.cli]+undecided.final), stream(undecided.cli), agent.InspectOptions{})
		if err != nil || got.Ending != policy.CutOff {
			t.Errorf("%s, %s: %s, error %v", undecided.cli, undecided.final, got.Ending, err)
		}
	}
	limited := `{"type":"turn.started"}` + "\n" + `{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try aga`
	got, err := agent.Inspect(strings.NewReader(limited), stream(config.Codex), agent.InspectOptions{})
	if err != nil || got.Ending != policy.UsageLimit {
		t.Errorf("a failure that was cut: %s, error %v", got.Ending, err)
	}
}

func TestEmptyLastAnswerIsNotReplacedByAnOlderOne(t *testing.T) {
	const older = "I will look at it."
	say := map[string]string{
		config.Claude:   fmt.Sprintf(`{"type":"assistant","message":{"id":"m0","content":[{"type":"text","text":%q}]}}`+"\n", older),
		config.Qwen:     fmt.Sprintf(`{"type":"assistant","message":{"id":"m0","content":[{"type":"text","text":%q}]}}`+"\n", older),
		config.Codex:    fmt.Sprintf(`{"type":"item.completed","item":{"id":"i","type":"agent_message","text":%q}}`+"\n", older),
		config.Gemini:   fmt.Sprintf(`{"type":"message","role":"assistant","content":%q}`+"\n", older),
		config.OpenCode: fmt.Sprintf(`{"type":"text","part":{"id":"t","text":%q}}`+"\n", older),
	}
	ended := map[string]string{
		config.Claude:   `{"type":"result","subtype":"success","is_error":false,"result":""}`,
		config.Qwen:     `{"type":"result","subtype":"success","is_error":false}`,
		config.Codex:    `{"type":"turn.completed"}`,
		config.Gemini:   `{"type":"result","status":"success"}`,
		config.OpenCode: `{"type":"step_finish","part":{"reason":"stop"}}`,
	}
	for _, cli := range allCLIs {
		got, err := agent.Inspect(strings.NewReader(say[cli]+work[cli]+ended[cli]), stream(cli), agent.InspectOptions{})
		reported := strings.Contains(fmt.Sprint(got.Reasons), "last answer is empty")
		empty := got.FinalMessage == "" && reported
		if err != nil || got.Ending != policy.Completed || !empty {
			t.Errorf("%s: %s, message %q, %q, error %v", cli, got.Ending, got.FinalMessage, got.Reasons, err)
		}
	}
	const first, second = `{"type":"message","role":"assistant","content":"","delta":true}`, `{"type":"message","role":"assistant","content":"Done.","delta":true}`
	pieces, err := agent.Inspect(strings.NewReader(first+"\n"+second+"\n"+ended[config.Gemini]), stream(config.Gemini), agent.InspectOptions{})
	if err != nil || pieces.FinalMessage != "Done." {
		t.Errorf("an answer in pieces: %q, error %v", pieces.FinalMessage, err)
	}
	for _, c := range []string{
		strings.Replace(say[config.Claude]+ended[config.Claude], `"result":""`, `"result":"\n\n"`, 1),
		say[config.Claude] + ended[config.Claude],
		say[config.Claude] + claudeUse("m", "x make") + ended[config.Claude],
	} {
		got, err := agent.Inspect(strings.NewReader(c), stream(config.Claude), agent.InspectOptions{})
		if err != nil || got.Ending != policy.NoAnswer || got.FinalMessage != "" {
			t.Errorf("nothing done: %s, message %q, error %v", got.Ending, got.FinalMessage, err)
		}
	}
}

func TestByteOrderMarkIsIgnored(t *testing.T) {
	text := `{"type":"system","subtype":"init","session_id":"s","cwd":"/r"}` + "\n" + claudeEdit("m", "x", "a", "b") + claudeAnswer("x") + claudeSucceeded + "}"
	got, err := agent.Inspect(strings.NewReader("\uFEFF"+text), stream(config.Claude), agent.InspectOptions{})
	if err != nil || got.SessionID != "s" || got.Edits.MaxRepeatPath != "a.go" {
		t.Errorf("session %q, edits %+v, error %v", got.SessionID, got.Edits, err)
	}
}
