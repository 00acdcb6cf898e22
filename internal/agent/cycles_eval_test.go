//go:build eval

package agent_test

import (
	"slices"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// TestEvalCyclesOfTheCorpusAreRead reads the real loops, which are kept outside the repository.
func TestEvalCyclesOfTheCorpusAreRead(t *testing.T) {
	needShared(t)
	all := cycles(t, shared+"/corpora/loops/cycles.jsonl")
	for source, want := range map[string]policy.Ending{"hm715": policy.Auth, "hm729-rapid": policy.UsageLimit} {
		// The last one was cut off before its turn ended.
		finished := slices.DeleteFunc(all[source], func(c cycle) bool { return c.TurnFailed == "" })
		wantEnding(t, finished, want)
	}
}
