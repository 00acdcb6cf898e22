package agent_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
)

// cycle is the end of an agent's stream in one turn of a wrapper that ran the agent in a loop.
type cycle struct {
	Source     string   `json:"source"`
	Errors     []string `json:"errors"`
	TurnFailed string   `json:"turn_failed"`
}

// cycles reads recorded cycles, one JSON object per line, and groups them by source.
func cycles(t *testing.T, path string) map[string][]cycle {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bySource := map[string][]cycle{}
	for line := range strings.Lines(string(text)) {
		var c cycle
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		bySource[c.Source] = append(bySource[c.Source], c)
	}
	return bySource
}

// stream formats the cycle as codex prints it.
func (c cycle) stream(reset time.Time) string {
	var b strings.Builder
	line := func(v map[string]any) {
		text, _ := json.Marshal(v) // a map of strings always marshals
		b.Write(append(text, '\n'))
	}
	line(map[string]any{"type": "thread.started", "thread_id": "019a72db-80ed-7911-8a8a-94994ffc009b"})
	for _, e := range c.Errors {
		line(map[string]any{"type": "error", "message": e})
	}
	if c.TurnFailed != "" {
		line(map[string]any{"type": "turn.failed", "error": map[string]any{"message": c.TurnFailed}})
	}
	return strings.ReplaceAll(b.String(), "{reset}", reset.UTC().Format("3:04 PM"))
}

// wantEnding checks the ending of each recorded cycle.
func wantEnding(t *testing.T, all []cycle, want policy.Ending) {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("no cycles were recorded")
	}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for i, c := range all {
		got, err := agent.Inspect(strings.NewReader(c.stream(now.Add(5*time.Hour))), stream("codex"), agent.InspectOptions{Exit: &agent.Exit{Code: 1}, Now: now})
		if err != nil || got.Ending != want {
			t.Errorf("cycle %d ended %s (%q), %v; want %s", i, got.Ending, got.Reasons, err, want)
		}
		if got.Limit == nil || want == policy.UsageLimit && strings.Contains(c.TurnFailed, "{reset}") && !got.Limit.ResetsAt.After(now) {
			t.Errorf("cycle %d has the limit %+v", i, got.Limit)
		}
	}
}

func TestRecordedLoopCyclesAreClassified(t *testing.T) {
	for name, want := range map[string]policy.Ending{"auth-401": policy.Auth, "usage-limit": policy.UsageLimit} {
		wantEnding(t, cycles(t, "testdata/loops/"+name+".jsonl")[name], want)
	}
}
