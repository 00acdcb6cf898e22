package main

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
)

// TestHalvesOfAValueInTwoAttemptsDoNotBothLeave has an agent that commits half of a value with each of two attempts on
// one branch, and in a second case takes the first half away again, which the branch's history keeps.
func TestHalvesOfAValueInTwoAttemptsDoNotBothLeave(t *testing.T) {
	t.Parallel()
	const value, half = "Tq7vB2x9Lm4Zr4KpWd81cYhQeN", 13
	for name, second := range map[string]string{"both are there": "", "the first is removed": "rm one.txt\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: "verify: ['grep -q two a.txt']\n"})
			r.agent("cat > /dev/null\nif [ -e one.txt ]; then "+second+` printf 'b = %s\n' "$(printf %s "$AGENT_VALUE" | cut -c14-)" > two.txt
else printf 'a = %s\n' "$(printf %s "$AGENT_VALUE" | cut -c-13)" > one.txt; echo two >> a.txt; fi
`, "env: [AGENT_VALUE]")
			r.startBehindProxy([]string{"AGENT_VALUE=" + value})
			n := r.solve("A second line", "Please add a second line to a.txt.")
			if s := r.ending(n); s.State != "done" {
				t.Fatalf("the first half: %s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			r.writes(n, writer, "/pawl solve once more")
			r.await("another attempt", func() bool { return len(r.state(n).Attempts) == 2 })
			if s := r.ending(n); s.State != "stopped" || s.Rule != "secret" {
				t.Errorf("the second half: %s (%s %q), want secret", s.State, s.Rule, s.Reasons)
			}
			if leaks := r.state(n).Attempts[1].Receipt.Leaks; len(leaks) != 1 || leaks[0].Path != "two.txt" || leaks[0].Line != 1 {
				t.Errorf("found: %+v", leaks)
			}
			log, err := r.world.Git(t.Context(), rigRepo, "log", "-p", "--all")
			r.must(err)
			if !strings.Contains(log, value[:half]) || strings.Contains(log, value[half:]) {
				t.Errorf("the branches hold:\n%s", log)
			}
		})
	}
}
