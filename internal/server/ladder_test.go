package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
)

// tapping returns a repository whose verify command reports two tests in TAP. The test old fails. The other test fails
// once a.txt is broken.
func tapping() map[string]string {
	return map[string]string{
		"a.txt": "one\n",
		"test.sh": "echo TAP version 14\necho 1..2\necho 'not ok 1 - the old one'\n" +
			"if grep -q spoilt a.txt; then echo 'not ok 2 - the other one'; echo '  ---'; echo '  message: a.txt is spoilt'; echo '  ...'; else echo 'ok 2 - the other one'; fi\nexit 1\n",
		".github/pawl.yml": "verify:\n  - sh test.sh\n",
	}
}

func TestOldFailuresAreNotTheAgentsTask(t *testing.T) {
	t.Parallel()
	r := newRig(t, tapping())
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\n"+
		"ask() { sh -c \"$PAWL_TESTS\" > \"$CTRL/said.$1\" 2> /dev/null; echo $? > \"$CTRL/code.$1\"; }\n"+
		"[ $n -lt 3 ] || exit 0\n"+
		"if [ $n = 1 ]; then echo spoilt >> a.txt; ask 1; exit 0; fi\n"+
		"ask 2; echo one > a.txt; echo two >> a.txt; ask 3\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); r.Calls() != 3 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 3, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	for prompt, wants := range map[string][]string{
		"1": {"run: sh -c \"$PAWL_TESTS\"\n", "This failed before you began", "- the old one"},
		"2": {"These tests fail", "the other one", "a.txt is spoilt", "failed before you began", "- the old one"},
		"3": {"This still fails, as it did before you began", "the old one", "Is fixing it part of the task?"},
	} {
		for _, want := range wants {
			if p := r.Prompt(prompt); !strings.Contains(p, want) {
				t.Errorf("prompt %s does not say %q:\n%s", prompt, want, p)
			}
		}
	}
	if codes := r.Left("code.1") + r.Left("code.2") + r.Left("code.3"); codes != "1\n1\n0\n" {
		t.Errorf("the tool ended with %q", codes)
	}
	if answer := r.Left("said.3"); !strings.HasPrefix(answer, "PASSED: 1 test still fails, as before.") {
		t.Errorf("the tool's last answer is\n%s", answer)
	}
	check := r.Check(r.Head(r.PullOf(n)), "pawl")
	if check.Title != "Not verified: 1 test still fails, as on main" || check.Conclusion != "neutral" {
		t.Errorf("%s (%s)", check.Title, check.Conclusion)
	}
	for _, want := range []string{"rung 2, retry with what failed", "rung 4, the agent ran the tests, 2 ×: `the agent ran the tests; 1 of 2 calls failed`", "during the attempt`: helped"} {
		if !strings.Contains(check.Summary, want) {
			t.Errorf("the check run does not say %q:\n%s", want, check.Summary)
		}
	}
	if got := r.Metric(`pawl_rungs_total{recovered="true",rung="4"}`); got != 2 {
		t.Errorf("%v calls recovered, want 2", got)
	}
	if base := strings.Count(r.Log.String(), "the base was verified"); base != 1 {
		t.Errorf("the base was verified %d times, want once for both attempts", base)
	}
}

// The agent shares no folder with the test, so it reports through its change.
func TestPlainAgentRunsTestsInTheSandbox(t *testing.T) {
	t.Parallel()
	needs.All(t, "bubblewrap")
	r := newRig(t, tapping())
	r.Agent("", "")
	r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"), []byte("#!/bin/sh\ncat > /dev/null\n"+
		"ask() { sh -c \"$PAWL_TESTS\" > $1; echo \"exit $?\" >> $1; }\n"+
		"echo spoilt >> a.txt; ask first.txt; echo one > a.txt; echo two >> a.txt; ask second.txt\n"), 0o700))
	r.Config += "sandbox: {mode: auto}\n"
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	r.Ending(n)
	for file, wants := range map[string][]string{
		"first.txt":  {"the other one", "a.txt is spoilt", "exit 1\n"},
		"second.txt": {"PASSED: 1 test still fails, as before.", "exit 0\n"},
	} {
		text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), file)
		r.Must(err)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", file, want, text)
			}
		}
	}
}

func TestNoAnswerIsRetriedInTheOppositeMode(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(`n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > "$CTRL/prompt.$n"; echo "$PAWL_EFFORT $PAWL_RUNG" >> "$CTRL/env"
echo '{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}'; echo '{"type":"turn.started"}'
[ "$PAWL_RUNG" = 1 ] && { echo two >> a.txt; echo '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"Added."}}'; }
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":0}}'
`, "stream: codex, effort: medium")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" || r.Left("env") != "medium 0\nlow 1\n" {
		t.Fatalf("efforts and rungs %q, then %s (%s %q); want medium 0 and low 1, then done", r.Left("env"), s.State, s.Rule, s.Reasons)
	}
	if p := r.Prompt("2"); !strings.Contains(p, "ended without an answer") {
		t.Errorf("the second prompt is\n%s", p)
	}
	if summary := r.Check(r.Head(r.PullOf(n)), "pawl").Summary; !strings.Contains(summary, "thinking mode (low)`: helped (10 tokens") {
		t.Errorf("the check run says\n%s", summary)
	}
}
