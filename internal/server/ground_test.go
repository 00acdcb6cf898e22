package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// with is a repository with a file a.txt, an ignored folder bin and verify commands; more files
// may follow, each behind its name.
func with(verify string, more ...string) map[string]string {
	files := map[string]string{"a.txt": "one\n", ".gitignore": "bin/\n", ".github/pawl.yml": "verify:\n  - " + fmt.Sprintf("%q", verify) + "\n"}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

func TestNothingThatTheAgentLeftBesideItsWorkTakesPartInTheVerification(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"go", "pytest"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			// Tools of the repository and of HOME come first in many projects' commands.
			r := newRig(t, with(`PATH="$PWD/bin:$HOME/bin:$PWD/tools:$PATH"; chmod +x tools/*; `+tool,
				"tools/"+tool, "#!/bin/sh\ngrep -q two a.txt && exit 1\nexit 0\n"))
			r.Agent("cat > /dev/null; echo two >> a.txt; mkdir -p bin $HOME/bin; for d in bin $HOME/bin; do printf '#!/bin/sh\\nexit 0\\n' > $d/"+tool+"; chmod +x $d/"+tool+"; done\n", "")
			r.Config += "policy: {ladder: {verify_retries: 0}}\n"
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			if s := r.Ending(n); s.Rule != "verify_failed" || r.Calls() != 1 || len(r.State(n).Attempts[0].Receipt.LeftOut) != 0 {
				t.Errorf("%d calls, then %s (%s %q); want one, then stopped by verify_failed", r.Calls(), s.State, s.Rule, s.Reasons)
			}
		})
	}
}

func TestAFailingTestAtTheBeginningOfALongLogIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, with("sh test.sh", "test.sh", `grep -q spoilt a.txt || { printf 'ok  \tacme/widgets\t0.01s\n'; exit 0; }
printf -- '--- FAIL: TestSum (0.00s)\n    sum_test.go:9: got 3, want 4\nFAIL\nFAIL\tacme/widgets\t0.01s\n' >&2
yes 'a line of a log that goes on and on' | head -c 9000000
exit 1
`))
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\ncase $n in 1) echo spoilt >> a.txt;; *) echo two > a.txt;; esac\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.State != "done" || r.Calls() != 2 {
		t.Fatalf("%d calls, then %s (%s %q); want 2, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	if p := r.Prompt("2"); !strings.Contains(p, "acme/widgets TestSum\n") || !strings.Contains(p, "got 3, want 4") {
		t.Errorf("the second prompt does not name the test with its assertion:\n%.2000s", p)
	}
}

func TestCommandsThatCannotWorkHereCostNoAttempt(t *testing.T) {
	t.Parallel()
	for verify, why := range map[string]string{
		"nosuchtool --all":                         "nosuchtool --all cannot work here: exit code 127, a program is missing or may not be run",
		"./a.txt":                                  "./a.txt cannot work here: exit code 126, a program is missing or may not be run",
		"echo no tests ran in 0.01s; exit 5":       "echo no tests ran in 0.01s; exit 5 cannot work here: no test runs",
		`printf "TAP version 14\n1..0\n"`:          `printf "TAP version 14\n1..0\n" cannot work here: no test runs`,
		"kill -9 $$":                               "kill -9 $$ cannot work here: it is killed, as where the memory is not enough",
		`printf "FAIL\tw [build failed]\n"; false`: `printf "FAIL\tw [build failed]\n"; false cannot work here: the build is broken, w [build failed]`,
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			says := render.Subject(why, 255).String() // what a command prints is a stranger's
			r := newRig(t, with(verify))
			r.Agent(testrig.PlainAgent, "")
			r.Start()
			base := r.World.Branches(testrig.Repo)["main"]
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			s := r.Ending(n)
			c := r.Check(base, "pawl")
			if s.Rule != "verify_broken" || r.Calls() != 0 || c.Conclusion != "action_required" || c.Title != "Stopped: "+says {
				t.Fatalf("%d calls, then %s (%s %q), check run %q (%s)", r.Calls(), s.State, s.Rule, s.Reasons, c.Title, c.Conclusion)
			}
			_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "Please go on.")
			r.Must(err)
			r.Settle()
			if r.Calls() != 0 {
				t.Errorf("%d calls after a remark, want none", r.Calls())
			}
			// A person may want the work all the same. What it comes to is said once, and nothing is repeated.
			_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
			r.Must(err)
			r.Await("the attempt", func() bool { return r.Calls() == 1 })
			s = r.Ending(n)
			c = r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
			unverified := strings.HasPrefix(verify, "printf \"TAP") && c.Title == "Done: unverified, no test ran" && c.Conclusion == "neutral"
			if !unverified && (s.Rule != "verify_broken" || c.Title != "Stopped: "+says || c.Conclusion != "action_required") || r.Calls() != 1 {
				t.Errorf("after /pawl retry %d calls, then %s (%s %q), check run %q (%s)", r.Calls(), s.State, s.Rule, s.Reasons, c.Title, c.Conclusion)
			}
		})
	}
}

func TestACommandThatIsMendedMeanwhileIsTriedWhenSomebodyAsksAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, with(`PATH="$PATH:$HOME/../../../../../../ctrl"; mended a.txt`))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.Rule != "verify_broken" {
		t.Fatalf("%s (%s %q), want verify_broken", s.State, s.Rule, s.Reasons)
	}
	r.Program("mended", "#!/bin/sh\nexec test -s \"$1\"\n")
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
	r.Must(err)
	r.Await("the attempt", func() bool { return r.Calls() == 1 })
	if s := r.Ending(n); s.State != "done" || r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Title != "Done: verified" {
		t.Errorf("%s (%s %q), want done and verified", s.State, s.Rule, s.Reasons)
	}
	if c := r.Check(r.World.Branches(testrig.Repo)["main"], "pawl"); c.Conclusion != "neutral" {
		t.Errorf("the check run on the base is left as %q (%s)", c.Title, c.Conclusion)
	}
}

// two is a repository whose verify command reports in TAP what two tests say: a line of a.txt each, "ok" where it
// passes. What is red is told in the first prompt.
func two(first, second string) map[string]string {
	return with("sh test.sh", "a.txt", first+"\n"+second+"\n", "test.sh", `echo TAP version 14; echo 1..2; n=0; code=0
while read -r line; do n=$((n+1)); if [ "$line" = ok ]; then echo "ok $n - test $n"; else code=1; echo "not ok $n - test $n"; echo '  ---'; echo "  message: $line"; echo '  ...'; fi; done < a.txt
exit $code
`)
}

func TestAFailureIsJudgedByWhatTheBaseSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second string   // on the base
		writes        []string // what each call leaves of both
		title, says   string
	}{
		{"what failed in the same way is not the change's", "is 1", "ok", []string{"is 1,ok,ok"}, "Done; 1 test fails as it did before", "Failed already before Pawl began, and not counted: `test 1`"},
		{"another assertion of the same test is a failure", "is 1", "ok", []string{"is 2,ok", "is 1,ok,ok"}, "Done; 1 test fails as it did before", "Failing tests: `test 1`"},
		{"a new failure is a failure", "ok", "ok", []string{"ok,is 3", "ok,ok,ok"}, "Done: verified", "Failing tests: `test 2`"},
		{"what turned green is told", "is 1", "is 2", []string{"ok,is 2"}, "Done; 1 test fails as it did before", "Failed before Pawl began, and no longer: `test 1`"},
		{"also where all of it did", "is 1", "ok", []string{"ok,ok,ok"}, "Done: verified", "Failed before Pawl began, and no longer: `test 1`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, two(c.first, c.second))
			r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\ncase $n in\n1) echo '"+strings.Join(c.writes, "';;\n*) echo '")+"';;\nesac | tr , '\\n' > a.txt\n", "")
			r.Start()
			// The words of the task decide nothing.
			n := r.Solve("Fix the failing tests", "CI is red: please mend test 1.")
			if s := r.Ending(n); s.State != "done" || r.Calls() != len(c.writes) {
				t.Fatalf("%d calls, then %s (%s %q); want %d, then done", r.Calls(), s.State, s.Rule, s.Reasons, len(c.writes))
			}
			check := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
			if check.Title != c.title || !strings.Contains(check.Summary, c.says) {
				t.Errorf("%q, want %q, and %q in\n%s", check.Title, c.title, c.says, check.Summary)
			}
			if p := r.Prompt("1"); strings.Contains(p, "This failed before you began") != (c.first != "ok") || c.first != "ok" && !strings.Contains(p, "- test 1\n") {
				t.Errorf("what fails on the base is told otherwise than it is:\n%s", p)
			}
		})
	}
}

func TestAFailureThatPassesWhenItIsRunAgainCostsNoAttempt(t *testing.T) {
	t.Parallel()
	// It fails in the second run, which is the first one on the change.
	r := newRig(t, with(`runs="$HOME/../../../../../../ctrl/runs"; echo x >> "$runs"; test $(wc -l < "$runs") != 2 || { echo "not ok 1 - the flaky one"; exit 1; }; echo "ok 1 - the flaky one"`))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	check := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
	if got := r.Left("runs"); r.Calls() != 1 || got != "x\nx\nx\n" || check.Title != "Done: verified" {
		t.Errorf("issue %d: %d calls, runs %q, %q; want one call, three runs, verified", n, r.Calls(), got, check.Title)
	}
	if want := "Flaky, failed and then passed on the same commit: `the flaky one`"; !strings.Contains(check.Summary, want) {
		t.Errorf("the check run does not say %q:\n%s", want, check.Summary)
	}
}

func TestWhatIsMergedIntoTheWorkBeforeThePushIsVerifiedWithIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, with("test ! -e theirs.txt || { grep -q 'line 1' theirs.txt && exit 1; test ! -e a.txt || ! grep -q 'line 2' a.txt; }"))
	r.Agent(testrig.PlainAgent+"[ $n = 1 ] && exit 0\n[ $n = 2 ] || { rm theirs.txt; exit 0; }\n"+testrig.Gated, "")
	r.Start()
	n, _ := r.Solved()
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve one more")
	r.Must(err)
	r.Await("the agent at work", func() bool { return r.Has("ready") })
	_, err = r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: fmt.Sprintf("pawl/issue-%d", n), Message: "Mine", Files: map[string]string{"theirs.txt": "theirs\n"}})
	r.Must(err)
	r.Touch("go")
	r.Ending(n)
	second := r.State(n).Attempts[1].Receipt
	if !second.Merged || second.Outcome != policy.VerifyFailed {
		t.Errorf("merged %v, %s; want what does not fit together to fail", second.Merged, second.Outcome)
	}
}

func TestOnlyTheBasesVerificationLeavesItsCaches(t *testing.T) {
	t.Parallel()
	// Each run says what it finds in HOME, and adds to it.
	r := newRig(t, with(`tr '\n' ' ' < "$HOME/seen" >> "$HOME/../../../../../../ctrl/seen"; tail -n 1 a.txt >> "$HOME/seen"; echo / >> "$HOME/../../../../../../ctrl/seen"; true`))
	r.Agent("cat > /dev/null; echo $PWD > \"$HOME/seen\"; echo two >> a.txt\n", "")
	r.Start()
	for range 2 {
		r.Ending(r.Solve("A second line", "Please add a second line to a.txt."))
	}
	if got := r.Left("seen"); got != "/\none /\none /\n" {
		t.Errorf("what was found in HOME: %q; want nothing at the base, then only what that left", got)
	}
}
