package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/testrig"
)

// cycle is one turn of a wrapper that ran its agent in a loop: what the agent's
// stream ended with, and what the wrapper then took for feedback.
type cycle struct {
	Source     string   `json:"source"`
	Errors     []string `json:"errors"`
	TurnFailed string   `json:"turn_failed"`
	Feedback   []string `json:"feedback"`
}

// cycles reads recorded cycles, one JSON object a line, by their source.
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

// stream is the cycle as codex prints it. The agent also posts remark through a
// person's token.
func (c cycle) stream(remark string) string {
	var b strings.Builder
	line := func(v map[string]any) {
		text, _ := json.Marshal(v) // maps of strings always can
		b.Write(append(text, '\n'))
	}
	line(map[string]any{"type": "thread.started", "thread_id": "019a72db-80ed-7911-8a8a-94994ffc009b"})
	line(map[string]any{"type": "turn.started"})
	line(map[string]any{"type": "item.completed", "item": map[string]any{"id": "item_0", "type": "command_execution",
		"command": "gh pr comment --body '" + remark + "'", "aggregated_output": "", "exit_code": 0, "status": "completed"}})
	for _, e := range c.Errors {
		line(map[string]any{"type": "error", "message": e})
	}
	if c.TurnFailed != "" {
		line(map[string]any{"type": "turn.failed", "error": map[string]any{"message": c.TurnFailed}})
	}
	return strings.ReplaceAll(b.String(), "{reset}", testrig.ResetText(time.Now().Add(5*time.Hour)))
}

// replayCycles plays recorded cycles on Pawl's own pull request and returns how often
// the agent was called. After each cycle comes what the wrapper reacted to:
// comments under the person's login, one by the agent and one by whoever, and a
// description that was saved again.
func replayCycles(t *testing.T, all []cycle) (calls int, last status.Thread) {
	t.Helper()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; n=$(wc -l < \"$CTRL/calls\" | tr -d ' ')\nif [ $n = 1 ]; then echo two >> a.txt\n"+
		`echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}'; echo '{"type":"turn.completed","usage":{}}'; exit 0; fi`+
		"\ncat \"$CTRL/cycle\"; exit 1\n", "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Ending(n)
	pull := r.World.Pulls(testrig.Repo)[0]
	for i, c := range all {
		remark := fmt.Sprintf("Session %d is over, and I will go on with the next one.", i+1)
		r.Must(os.WriteFile(filepath.Join(r.Ctrl(), "cycle"), []byte(c.stream(remark)), 0o600))
		for _, text := range []string{fmt.Sprintf("Work session %d has begun.", i+1), remark} {
			_, err := r.World.Comment(testrig.Repo, pull.Number, testrig.Writer, text)
			r.Must(err)
			r.Settle()
		}
		r.Must(r.World.TouchIssue(testrig.Repo, pull.Number, testrig.Writer))
		r.Must(r.World.EditBody(testrig.Repo, pull.Number, testrig.Writer, r.World.Pulls(testrig.Repo)[0].Body))
		r.Settle()
	}
	r.Once(n)
	return r.Calls() - 1, r.Ending(n)
}

func TestTheRecordedLoopsEndAfterThreeAttempts(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"auth-401": "auth", "usage-limit": "usage_limit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, s := replayCycles(t, cycles(t, filepath.Join("testdata", "loops", name+".jsonl"))[name])
			if calls == 0 || calls > 3 || s.State != "stopped" || !strings.HasPrefix(string(s.Rule), rule) {
				t.Errorf("%d calls, then %s (%s %q); want 1 to 3, then stopped by %s", calls, s.State, s.Rule, s.Reasons, rule)
			}
		})
	}
}
