//go:build eval

package server_test

import (
	"path/filepath"
	"testing"
)

// TestEvalCyclesOfTheCorpusEndAfterThreeAttempts replays the real loops, which are
// kept outside the repository: go test -tags eval ./internal/server.
func TestEvalCyclesOfTheCorpusEndAfterThreeAttempts(t *testing.T) {
	all := cycles(t, filepath.Join("..", "..", "..", "shared", "corpora", "loops", "cycles.jsonl"))
	for _, source := range []string{"hm715", "hm729-rapid"} {
		t.Run(source, func(t *testing.T) {
			if len(all[source]) == 0 {
				t.Fatal("the corpus has no such rows")
			}
			calls, s := replayCycles(t, all[source])
			t.Logf("%d recorded cycles, %d calls, then %s (%s %q)", len(all[source]), calls, s.State, s.Rule, s.Reasons)
			if calls == 0 || calls > 3 || s.State != "stopped" {
				t.Errorf("%d calls of the agent, then %s; want 1 to 3, then stopped", calls, s.State)
			}
		})
	}
}
