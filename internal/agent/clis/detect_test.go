package clis_test

import (
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/agent/clis"
)

func TestCLIIsDetectedFromItsTranscript(t *testing.T) {
	for _, kind := range config.CLIs() {
		if a, err := clis.ForStream(kind); err != nil || a.Wrote == nil {
			t.Fatalf("internal/agent/clis/clis.go: adapters lacks %s, or its Wrote: %v", kind, err)
		}
	}
	for want, heads := range agenttest.EveryCLI(t, map[string][]string{
		config.Codex: {
			`{"type":"thread.started","thread_id":"a"}`,
			"WARNING: noise\n" + `{"type":"error","message":"x"}` + "\n" + `{"type":"turn.failed","error":{}}`,
		},
		config.Claude: {
			`{"type":"system","subtype":"init","session_id":"a"}`,
			`{"type":"result","subtype":"success","is_error":true}`,
		},
		config.Gemini: {
			`{"type":"init","timestamp":"t","session_id":"a","model":"auto"}`,
			`{"type":"error","timestamp":"t","severity":"error","message":"x"}`,
		},
		config.OpenCode: {
			`{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{}}`,
			`{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"APIErr"}}`,
			`{"type":"text","timestamp":1,"sessionID":"ses_1","part":{"text":"x"}}`,
		},
		config.Qwen:  {`{"type":"system","subtype":"init","session_id":"a","qwen_code_version":"0.24.4"}`},
		config.Plain: {"Working on it …\n{\"a\":1}\n", ""},
	}) {
		for _, head := range heads {
			if got := clis.Detect([]byte(head)); got != want {
				t.Errorf("%q: %s, want %s", head, got, want)
			}
		}
	}
}
