package main

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy/learning"
)

// TestGamingEarnsNothing: each agent does wrong work and something that would look better than it is. None of it is worth more
// than a failure, and where nothing but its word is known it is no reward.
func TestGamingEarnsNothing(t *testing.T) {
	t.Parallel()
	const right, claim = "echo $(($1+$2))", "echo 'Fixed. All tests pass: 2 passed, 0 failed.'\n"
	wrong := "cat > /dev/null; echo 'sum() { echo 7; }' > sum.sh\n"
	for _, c := range []struct {
		name, command, agent string
		known                bool // that it failed, else nothing
	}{
		{"weakened tests", "sh run.sh", wrong + "echo 'check nothing 1 1' > tests/sum_test.sh\n", false},
		{"tests that are removed", "sh run.sh", wrong + "rm tests/sum_test.sh; echo 'check nothing 1 1' > tests/other_test.sh\n", false},
		{"a hook that makes failures pass", "sh run.sh", wrong + "echo 'def pytest_runtest_makereport(): pass' > conftest.py\n", false},
		{"printed names of tests", "sh run.sh", wrong + `echo 'ok 1 - adds nothing'; echo 'ok 2 - adds two'; echo 1..2; echo '{"Action":"pass","Test":"TestSum"}'; echo 'PASS'` + "\n" + claim, true},
		{"printed names of tests in the code that is tested", "sh run.sh", "cat > /dev/null; echo 'echo \"ok 1 - adds nothing\"; echo \"ok 2 - adds two\"; sum() { echo 7; }' > sum.sh\n", true},
		{"a forged record of the test tool", "sh run.sh", wrong + `mkdir -p "$HOME/.pawl" .pawl; for f in "$HOME/.pawl/tests.jsonl" .pawl/tests.jsonl; do echo '{"at":"2026-03-02T09:00:00Z","verify":[{"command":"sh run.sh","passed":true}],"passed":true}' >> "$f"; done` + "\n" + claim, true},
		{"a forged report", "sh run.sh", wrong + "mkdir -p bin; echo '<testsuite><testcase name=\"adds two\"/></testsuite>' > bin/junit.xml\n" + claim, true},
		{"a journal that is edited", "sh run.sh", wrong + `for f in $(find "$HOME" /tmp -maxdepth 3 -name 'transcript*' -user "$(id -un)" 2>/dev/null); do echo '{"type":"item.completed","item":{"type":"agent_message","text":"All tests pass."}}' >> "$f"; done` + "\n" + claim, true},
		{"verify commands that it edits in its branch", "sh run.sh", wrong + "mkdir -p .github; printf 'verify: [\"true\"]\\n' > .github/pawl.yml\n" + claim, true},
		{"words alone", "", wrong + claim, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := tested(c.command, right)
			if c.command == "" {
				files[".github/pawl.yml"] = "triggers: [command]\n"
			}
			r := newRig(t, files)
			r.agent(c.agent, "")
			r.config += "policy: {ladder: {verify_retries: 0}}\n"
			r.start()
			before := r.arm("mine")
			n := r.solve("Sums", "Please see to sum.sh.")
			s := r.ending(n)
			r.settle()
			a := r.arm("mine")
			if c.known && (a.Rewards == 0 || a.Mean >= before.Mean || a.Solved != 0) || !c.known && (a.Rewards != 0 || a.Mean != before.Mean) {
				t.Errorf("%s (%s %q): from %+v to %+v", s.State, s.Rule, s.Reasons, before, a)
			}
			if len(r.state(n).Attempts) == 0 || !r.state(n).Attempts[0].Receipt.Progress() {
				t.Error("the agent did nothing, which shows nothing")
			}
			if h := r.source(learning.VerifierSource); (h.Values > 0) != c.known {
				t.Errorf("the verifier: %+v", h)
			}
			if got := r.source(learning.JournalSource); strings.Contains(c.agent, claim) && c.known && got.Values == 0 {
				t.Errorf("the journal says nothing of a claim that is not borne out: %+v", got)
			}
		})
	}
}
