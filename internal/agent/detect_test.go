package agent

import (
	"strings"
	"testing"
)

func TestTheCLIOfATranscriptIsDetected(t *testing.T) {
	for head, want := range map[string]string{
		`{"type":"thread.started","thread_id":"a"}`:                                                        "codex",
		"WARNING: noise\n" + `{"type":"error","message":"x"}` + "\n" + `{"type":"turn.failed","error":{}}`: "codex",
		`{"type":"system","subtype":"init","session_id":"a"}`:                                              "claude",
		`{"type":"result","subtype":"success","is_error":true}`:                                            "claude",
		`{"type":"init","timestamp":"t","session_id":"a","model":"auto"}`:                                  "gemini",
		`{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{}}`:                                "opencode",
		`{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"APIErr"}}`:                     "opencode",
		`{"type":"text","timestamp":1,"sessionID":"ses_1","part":{"text":"x"}}`:                            "opencode",
		`{"type":"error","timestamp":"t","severity":"error","message":"x"}`:                                "gemini",
		"Working on it …\n{\"a\":1}\n":                                                                     "plain",
		"":                                                                                                 "plain",
	} {
		if got := Detect([]byte(head)); got != want {
			t.Errorf("%q: %s, want %s", head, got, want)
		}
	}
	for _, run := range loadRecorded(t) {
		if strings.TrimSpace(run.stdout) == "" {
			continue
		}
		if got := Detect([]byte(run.stdout)); got != "codex" {
			t.Errorf("%s: %s", run.name, got)
		}
	}
}
