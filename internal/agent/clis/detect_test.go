package clis_test

import (
	"testing"

	"github.com/pawlbot/pawl/internal/agent/clis"
)

func TestTheCLIOfATranscriptIsDetected(t *testing.T) {
	for head, want := range map[string]string{
		`{"type":"thread.started","thread_id":"a"}`:                                                        "codex",
		"WARNING: noise\n" + `{"type":"error","message":"x"}` + "\n" + `{"type":"turn.failed","error":{}}`: "codex",
		`{"type":"system","subtype":"init","session_id":"a"}`:                                              "claude",
		`{"type":"system","subtype":"init","session_id":"a","qwen_code_version":"0.24.4"}`:                 "qwen",
		`{"type":"result","subtype":"success","is_error":true}`:                                            "claude",
		`{"type":"init","timestamp":"t","session_id":"a","model":"auto"}`:                                  "gemini",
		`{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{}}`:                                "opencode",
		`{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"APIErr"}}`:                     "opencode",
		`{"type":"text","timestamp":1,"sessionID":"ses_1","part":{"text":"x"}}`:                            "opencode",
		`{"type":"error","timestamp":"t","severity":"error","message":"x"}`:                                "gemini",
		"Working on it …\n{\"a\":1}\n":                                                                     "plain",
		"":                                                                                                 "plain",
	} {
		if got := clis.Detect([]byte(head)); got != want {
			t.Errorf("%q: %s, want %s", head, got, want)
		}
	}
}
