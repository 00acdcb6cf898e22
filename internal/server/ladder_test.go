package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// tapping is a repository whose verify command reports two tests in TAP: the old
// one fails, the other one does once a.txt is spoilt.
func tapping() map[string]string {
	return map[string]string{
		"a.txt": "one\n",
		"test.sh": "echo TAP version 14\necho 1..2\necho 'not ok 1 - the old one'\n" +
			"if grep -q spoilt a.txt; then echo 'not ok 2 - the other one'; echo '  ---'; echo '  message: a.txt is spoilt'; echo '  ...'; else echo 'ok 2 - the other one'; fi\nexit 1\n",
		".github/pawl.yml": "verify:\n  - sh test.sh\n",
	}
}

func TestATestThatFailedBeforeDoesNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, tapping())
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\n"+
		"case $n in 1) echo spoilt >> a.txt;; *) echo one > a.txt; echo two >> a.txt;; esac\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	s := r.Ending(n)
	if r.Calls() != 2 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 2, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	second := r.Left("prompt.2")
	for _, want := range []string{"These tests fail", "the other one", "a.txt is spoilt", "failed before you began", "- the old one"} {
		if !strings.Contains(second, want) {
			t.Errorf("the second prompt does not say %q:\n%s", want, second)
		}
	}
	check := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
	if check.Title != "Done; 1 test fails as it did before" || check.Conclusion != "neutral" {
		t.Errorf("%s (%s)", check.Title, check.Conclusion)
	}
	summary := check.Summary
	for _, want := range []string{"Failed already before Pawl began, and not counted: `the old one`", "Failing tests: `the other one`", "rung 2, retry with what failed", "helped"} {
		if !strings.Contains(summary, want) {
			t.Errorf("the check run does not say %q:\n%s", want, summary)
		}
	}
	if base := strings.Count(r.Log.String(), "the base was verified"); base != 1 {
		t.Errorf("the base was verified %d times, want once for both attempts", base)
	}
}

func TestTheToolTellsAnAgentOfKindCommandWhatIsNotItsToMend(t *testing.T) {
	t.Parallel()
	r := newRig(t, tapping())
	r.Agent("cat > \"$CTRL/prompt\"\n"+
		"ask() { sh -c \"$PAWL_TESTS\" > \"$CTRL/said.$1\" 2> /dev/null; echo $? > \"$CTRL/code.$1\"; }\n"+
		"echo spoilt >> a.txt; ask 1\n"+
		"echo one > a.txt; echo two >> a.txt; ask 2\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); r.Calls() != 1 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 1, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	if prompt := r.Left("prompt"); !strings.Contains(prompt, "run: sh -c \"$PAWL_TESTS\"\n") {
		t.Errorf("the prompt does not name the tool:\n%s", prompt)
	}
	if codes := r.Left("code.1") + r.Left("code.2"); codes != "1\n0\n" {
		t.Errorf("exit codes %q", codes)
	}
	if said := r.Left("said.1"); !strings.Contains(said, "Failing tests:\n- the other one\n\nthe other one:\nmessage: a.txt is spoilt\n\nFailed before you began, in the same way; leave it: the old one.") {
		t.Errorf("the first answer is\n%s", said)
	}
	if said := r.Left("said.2"); !strings.HasPrefix(said, "PASSED: 1 test fails as it did before.") || strings.Contains(said, "Failing tests") {
		t.Errorf("the second answer is\n%s", said)
	}
	check := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
	if check.Title != "Done; 1 test fails as it did before" || !strings.Contains(check.Summary, "rung 4, the agent ran the tests, 2 ×: `the agent ran the tests; 1 of 2 calls failed`") ||
		!strings.Contains(check.Summary, "during the attempt`: helped") {
		t.Errorf("%s\n%s", check.Title, check.Summary)
	}
	if got := r.Metric(`pawl_rungs_total{recovered="true",rung="4"}`); got != 2 {
		t.Errorf("%v calls recovered, want 2", got)
	}
}

func TestCallsOfTheToolThatAllPassRecoverNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Config = fmt.Sprintf("sandbox: {mode: %s}\n", testrig.Kept(t))
	r.Agent("cat > /dev/null; echo done >> a.txt; $PAWL_TESTS > /dev/null || exit 3\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q); want done", s.State, s.Rule, s.Reasons)
	}
	if summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary; !strings.Contains(summary, "during the attempt`: nothing had failed") {
		t.Errorf("the check run says\n%s", summary)
	}
}

func TestMoreEffortForWorkThatWasDoneRecoversNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("cat > /dev/null; echo done >> a.txt; echo \"$PAWL_EFFORT\" >> \"$CTRL/efforts\"\n", "effort: low, escalated_effort: high")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	r.Ending(n)
	r.Must(r.Says(n, testrig.Writer, "/pawl escalate")())
	r.Settle()
	if s := r.Ending(n); r.Calls() != 2 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 2, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	if got := r.Left("efforts"); got != "low\nhigh\n" {
		t.Errorf("efforts %q", got)
	}
	if summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary; !strings.Contains(summary, "one attempt at the escalated effort (high)`: nothing had failed") {
		t.Errorf("the check run says\n%s", summary)
	}
}

func TestWithoutAHigherEffortTheLastRungIsSkippedAndThatIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > /dev/null; head -c 120 /dev/urandom | base64 > file$n.txt; echo $n >> a.txt\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	s := r.Ending(n)
	if r.Calls() != 3 || s.State != "stopped" || !strings.Contains(fmt.Sprint(s.Reasons), "backend mine has no higher effort to try") {
		t.Fatalf("%d calls, then %s (%s %q); want 3, and why there is no fourth", r.Calls(), s.State, s.Rule, s.Reasons)
	}
}

func TestWithoutATestNothingIsVerified(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		`ok  \tacme/widgets\t0.01s`:                       "Done: verified",
		`ok  \tacme/widgets\t0.01s [no tests to run]`:     "Done: unverified, no test ran",
		`?   \tacme/widgets\t[no test files]`:             "Done: unverified, no test ran",
		`TAP version 14\n1..0`:                            "Done: unverified, no test ran",
		`a program that is no test runner said something`: "Done: verified",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": fmt.Sprintf("verify: ['if grep -q line a.txt; then printf %q; fi']\n", said+"\\n")})
			r.Agent(testrig.PlainAgent, "")
			r.Start()
			n, _ := r.Solved()
			conclusion := "neutral"
			if want == "Done: verified" {
				conclusion = "success"
			}
			if c := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl"); c.Title != want || c.Conclusion != conclusion {
				t.Errorf("after %q: %s (%s), want %s (%s) on issue %d", said, c.Title, c.Conclusion, want, conclusion, n)
			}
		})
	}
}

func TestAnOutputThatNoRunnerIsKnownFromIsComparedAsText(t *testing.T) {
	t.Parallel()
	// The first change makes another complaint, which the second takes back.
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['echo x.ex:$$: old complaint; ! grep spoilt a.txt; exit 2']\n"})
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\ncase $n in 1) echo spoilt >> a.txt;; *) echo one > a.txt; echo two >> a.txt;; esac\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); r.Calls() != 2 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 2, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	check := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
	if check.Title != "Done; a command fails as it did before, compared as text" || check.Conclusion != "neutral" {
		t.Errorf("%s (%s)", check.Title, check.Conclusion)
	}
	for _, want := range []string{"Attempt 1: verify failed with exit code 2", "Attempt 2: verify exit code 2 with the same output as before", "The runner's output is not understood; it is compared as text."} {
		if !strings.Contains(check.Summary, want) {
			t.Errorf("the check run does not say %q:\n%s", want, check.Summary)
		}
	}
}

func TestTheEscalatedEffortMendsWhatTwoRetriesDidNot(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > /dev/null\n"+
		"head -c 120 /dev/urandom | base64 > file$n.txt; [ \"$PAWL_EFFORT\" = high ] && echo done >> a.txt; echo $n >> a.txt\n", "effort: low, escalated_effort: high")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	s := r.Ending(n)
	if r.Calls() != 4 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 4, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary
	for _, want := range []string{
		"attempt 2, rung 2, retry with what failed", "attempt 3, rung 2, retry with what failed",
		"attempt 4, rung 3, more effort", "one attempt at the escalated effort (high)`: helped",
	} {
		if !strings.Contains(summary, want) {
			t.Errorf("the check run does not say %q:\n%s", want, summary)
		}
	}
	if got := strings.Count(summary, "did not help"); got != 2 {
		t.Errorf("%d recoveries did not help, want 2:\n%s", got, summary)
	}
}

func TestAnAgentWithoutAnAnswerIsAskedOnceMoreInTheOppositeMode(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	stream := `echo '{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}'; echo '{"type":"turn.started"}'; ` +
		`[ "$PAWL_RUNG" = 1 ] && { echo two >> a.txt; echo '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"Added."}}'; }; ` +
		`echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":0}}'`
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"; echo \"$PAWL_EFFORT $PAWL_RUNG\" > \"$CTRL/env.$n\"\n"+stream+"\n", "stream: codex, effort: medium")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Ending(n)
	if r.Calls() != 2 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 2, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	if env := []string{strings.TrimSpace(r.Left("env.1")), strings.TrimSpace(r.Left("env.2"))}; !slices.Equal(env, []string{"medium 0", "low 1"}) {
		t.Errorf("efforts and rungs %q, want medium 0 and low 1", env)
	}
	if p := r.Left("prompt.2"); !strings.Contains(p, "ended without an answer") {
		t.Errorf("the second prompt is\n%s", p)
	}
	summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary
	for _, want := range []string{"attempt 2, rung 1, no answer", "thinking mode (low)`: helped (10 tokens", "thrown away before: 10 tokens)"} {
		if !strings.Contains(summary, want) {
			t.Errorf("the check run does not say %q:\n%s", want, summary)
		}
	}
}

func TestACleanPassVerifiesTheBaseAndTheWorkOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, with(`tail -n 1 a.txt >> "$HOME/../../../../../../ctrl/verified"`))
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); r.Calls() != 1 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 1, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	if got := r.Left("verified"); got != "one\ntwo\n" {
		t.Errorf("verified: %q, want the base and the work", got)
	}
	summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary
	if strings.Contains(summary, "Recoveries") {
		t.Errorf("the check run tells of recoveries:\n%s", summary)
	}
}

func TestReportsOfJUnitAreRead(t *testing.T) {
	t.Parallel()
	const report = `<testsuite name="s" tests="2" failures="1"><testcase classname="acme.Widget" name="counts"/><testcase classname="acme.Widget" name="sorts"><failure message="expected 1 but was 2">at Widget.java:3</failure></testcase></testsuite>`
	r := newRig(t, map[string]string{
		"a.txt":            "one\n",
		"old/report.xml":   strings.ReplaceAll(report, "sorts", "committed long ago"),
		".github/pawl.yml": "reports: [\"**/report.xml\"]\nverify:\n  - grep -q done a.txt || { mkdir -p out && cp xml.txt out/report.xml; exit 1; }\n",
		"xml.txt":          report + "\n",
	})
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\ncase $n in 1) echo two >> a.txt; sed -i s/sorts/merges/ xml.txt;; *) echo done >> a.txt;; esac\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); r.Calls() != 2 || s.State != "done" {
		t.Fatalf("%d calls, then %s (%s %q); want 2, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	p := r.Left("prompt.2")
	if !strings.Contains(p, "merges") || !strings.Contains(p, "expected 1 but was 2") || strings.Contains(p, "committed long ago") {
		t.Errorf("the second prompt is\n%s\nwant the test and its assertion from the report, and nothing of the committed one", p)
	}
	if strings.Contains(fmt.Sprint(r.Status()), "committed long ago") {
		t.Error("the status tells of a committed report")
	}
}
