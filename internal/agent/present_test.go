package agent_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/agent/clis"
)

// presentation is one text as a CLI may print it.
type presentation struct {
	how            string
	adapter        agent.Adapter
	stdout, stderr string
	exit           *agent.Exit
}

// stream returns the adapter of a known stream.
func stream(name string) agent.Adapter {
	a, err := clis.ForStream(name)
	if err != nil {
		panic(err)
	}
	return a
}

func quoted1(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// refusal shows an error message of a provider as each CLI reports it.
func refusal(t testing.TB, cli, text string) []presentation {
	t.Helper()
	q, failed := quoted1(text), &agent.Exit{Code: 1}
	switch cli {
	case config.Codex:
		return []presentation{{"turn.failed", stream(cli), `{"type":"thread.started","thread_id":"a"}` + "\n" + `{"type":"turn.started"}` + "\n" +
			`{"type":"error","message":` + q + "}\n" + `{"type":"turn.failed","error":{"message":` + q + "}}\n", "", failed}}
	case config.Claude:
		const begun = `{"type":"system","subtype":"init","cwd":"/r","session_id":"s"}` + "\n"
		synthetic := `{"type":"assistant","message":{"model":"<synthetic>","role":"assistant","content":[{"type":"text","text":` + q + `}]},"session_id":"s"%s}` + "\n"
		result := `{"type":"result","subtype":"success","is_error":%v,"api_error_status":%s,"result":` + q + `,"session_id":"s"}` + "\n"
		return []presentation{
			{"current format", stream(cli), begun + fmt.Sprintf(synthetic, `,"error":"rate_limit"`) + fmt.Sprintf(result, true, "429"), "", failed},
			{"without a status", stream(cli), begun + fmt.Sprintf(synthetic, "") + fmt.Sprintf(result, true, "null"), "", failed},
			{"called a success", stream(cli), begun + fmt.Sprintf(synthetic, "") + fmt.Sprintf(result, false, "null"), "", &agent.Exit{}},
			{"result only", stream(cli), fmt.Sprintf(result, true, "null"), "", nil},
		}
	case config.Gemini:
		const begun = `{"type":"init","session_id":"s","model":"auto"}` + "\n" + `{"type":"message","role":"user","content":"Fix it."}` + "\n"
		return []presentation{
			{"result", stream(cli), begun + `{"type":"result","status":"error","error":{"type":"unknown","message":` + quoted1("[API Error: "+text+"]") + "}}\n", "", &agent.Exit{Code: 173}},
			{"waiting", stream(cli), begun, "Attempt 1 failed: " + text + ". Retrying after 3882907ms...\n", &agent.Exit{Code: 124}},
		}
	case config.OpenCode:
		return []presentation{{"error", stream(cli), `{"type":"error","timestamp":1795249800000,"sessionID":"s","error":{"name":"APIError","data":{"message":` + q + `,"isRetryable":true}}}` + "\n", "", failed}}
	case config.Qwen:
		shown := quoted1("[API Error: " + text + "]")
		return []presentation{{"result", stream(cli), `{"type":"system","subtype":"init","session_id":"s","qwen_code_version":"0.24.4"}` + "\n" +
			`{"type":"assistant","session_id":"s","message":{"model":"m","content":[{"type":"text","text":` + shown + `}]}}` + "\n" +
			`{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s","error":{"message":` + shown + "}}\n", "", failed}}
	case config.Plain:
		return []presentation{
			{"standard output", stream(cli), "working\n" + text + "\n", "", failed},
			{"standard error", stream(cli), "working\n", text + "\n", failed},
			{"nothing else", stream(cli), text + "\n", "", &agent.Exit{}},
		}
	}
	t.Errorf("refusal has no presentation for %s", cli)
	return nil
}

// quote shows a text that an agent read, thought or said, in runs that ended
// well or that failed for another reason.
func quote(t testing.TB, text string) []presentation {
	t.Helper()
	q, failed := quoted1(text), &agent.Exit{Code: 1}
	codex := `{"type":"thread.started","thread_id":"a"}` + "\n" + `{"type":"turn.started"}` + "\n" +
		`{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":` + q + "}}\n" +
		`{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":` + q + `,"aggregated_output":` + q + `,"exit_code":1,"status":"failed"}}` + "\n" +
		`{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":` + q + "}}\n"
	claude := `{"type":"system","subtype":"init","cwd":"/r","session_id":"s"}` + "\n" +
		`{"type":"assistant","message":{"model":"m","content":[{"type":"thinking","thinking":` + q + `},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":` + q + "}}]}}\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":` + q + `,"is_error":true}]},"tool_use_result":` + q + "}\n" +
		`{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":` + q + "}]}}\n"
	gemini := `{"type":"init","session_id":"s","model":"auto"}` + "\n" + `{"type":"message","role":"user","content":` + q + "}\n" +
		`{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":` + q + "}}\n" +
		`{"type":"tool_result","tool_id":"t1","status":"error","output":` + q + "}\n" +
		`{"type":"message","role":"assistant","content":` + q + `,"delta":true}` + "\n"
	opencode := `{"type":"step_start","timestamp":1,"sessionID":"s","part":{}}` + "\n" +
		`{"type":"tool_use","timestamp":1,"sessionID":"s","part":{"tool":"bash","callID":"c","state":{"status":"error","input":{"command":` + q + `},"output":` + q + "}}}\n" +
		`{"type":"text","timestamp":1,"sessionID":"s","part":{"text":` + q + "}}\n"
	qwen := `{"type":"system","subtype":"init","session_id":"s","qwen_code_version":"0.24.4"}` + "\n" +
		`{"type":"assistant","session_id":"s","message":{"model":"m","content":[{"type":"thinking","thinking":` + q + "}]}}\n" +
		`{"type":"assistant","session_id":"s","message":{"model":"m","content":[{"type":"tool_use","id":"t1","name":"run_shell_command","input":{"command":` + q + "}}]}}\n" +
		`{"type":"user","session_id":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":` + q + "}]}}\n" +
		`{"type":"assistant","session_id":"s","message":{"model":"m","content":[{"type":"text","text":` + q + "}]}}\n"
	var all []presentation
	for cli, run := range agenttest.EveryCLI(t, map[string]struct{ begun, done string }{
		config.Codex:    {codex, `{"type":"turn.completed","usage":{"input_tokens":1}}`},
		config.Claude:   {claude, `{"type":"result","subtype":"success","is_error":false,"result":` + q + `,"session_id":"s"}`},
		config.Gemini:   {gemini, `{"type":"result","status":"success","stats":{}}`},
		config.OpenCode: {opencode, `{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}`},
		config.Qwen:     {qwen, `{"type":"result","subtype":"success","session_id":"s","is_error":false,"result":` + q + `}`},
	}) {
		all = append(all,
			presentation{"in a finished run", stream(cli), run.begun + run.done + "\n", "", &agent.Exit{}},
			presentation{"in a run that failed", stream(cli), run.begun, "", failed},
			presentation{"as plain text", stream(cli), q, "", failed})
	}
	return append(all,
		presentation{"as plain text", stream(config.Codex), text, "", nil},
		presentation{"as the last line", stream(config.Plain), "working\n" + text, "", failed})
}
