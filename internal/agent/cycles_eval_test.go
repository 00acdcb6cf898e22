//go:build eval

package agent_test

import (
	"slices"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// The corpus of real loops is outside the repository.
func TestEvalCorpusCyclesAreClassified(t *testing.T) {
	needShared(t)
	all := cycles(t, shared+"/corpora/loops/cycles.jsonl")
	for source, want := range map[string]policy.Ending{"hm715": policy.Auth, "hm729-rapid": policy.UsageLimit} {
		// The last cycle was cut off before its turn ended.
		finished := slices.DeleteFunc(all[source], func(c cycle) bool { return c.TurnFailed == "" })
		wantEnding(t, finished, want)
	}
}
