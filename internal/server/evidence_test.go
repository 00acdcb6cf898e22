package server_test

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
)

// tested is a repository whose tests are functions of the shell that report in TAP; sum is its code, and more files may
// follow, each behind its name. Each run of the verify command is noted.
func tested(command, sum string, more ...string) map[string]string {
	return with(`echo x >> "$HOME/../../../../../../ctrl/runs"; `+command, append([]string{
		"sum.sh", "sum() { " + sum + "; }\n", "README.md", "# Sums\n",
		"tests/sum_test.sh", "check 'adds nothing' $(sum 1 0) 1\ncheck 'adds two' $(sum 0 2) 2\n",
		"run.sh", `n=0; code=0
check() { n=$((n+1)); if test "$2" = "$3"; then echo "ok $n - $1"; elif test -f conftest.py; then echo "ok $n - $1"; else echo "not ok $n - $1"; code=1; fi; }
eval "$(cat sum.sh)"
for t in tests/*_test.sh; do eval "$(cat $t)"; done
echo 1..$n
exit $code
`}, more...)...)
}

func TestAVerificationThatPassedIsHeldAgainstTheTestsAsTheyWere(t *testing.T) {
	t.Parallel()
	const right, wrong = "echo $(($1+$2))", "echo $1"
	manifest := func(script string) string { return fmt.Sprintf(`{"name": "sums", "scripts": {"test": %q}}`, script) }
	for _, c := range []struct {
		name, needs string
		files       map[string]string
		agent       string
		runs        int // of the verify command: on the base, on the change, and for comparison
		title       string
		says        []string
	}{
		{"a test that is gutted beside wrong code", "", tested("sh run.sh", right), "echo 'sum() { echo 7; }' > sum.sh; echo 'check nothing 1 1' > tests/sum_test.sh", 5,
			"Done: verified only with changed tests", []string{"it removes 2 tests (adds nothing, adds two); edits tests/sum_test.sh", "with the tests as they were: adds nothing, adds two fail",
				"its new tests pass without the change, so they show nothing of it", "attempt 1 changed the tree and is verified only with changed tests"}},
		{"a fix with a test that needs it", "", tested("sh run.sh", "test $2 = 9 && echo 0 || "+right), "echo 'sum() { echo $(($1+$2)); }' > sum.sh; echo 'check \"adds nine\" $(sum 1 9) 10' > tests/nine_test.sh", 5,
			"Done: verified", []string{"it adds tests/nine_test.sh", "with the tests as they were: 2 pass", "its new tests without the change: 2 pass, adds nine fails"}},
		{"a fix with a test that tests nothing of it", "", tested("sh run.sh", "test $2 = 9 && echo 0 || "+right), "echo 'sum() { echo $(($1+$2)); }' > sum.sh; echo 'check \"adds one\" $(sum 1 1) 2' > tests/one_test.sh", 4,
			"Done: verified", []string{"its new tests pass without the change, so they show nothing of it"}},
		{"a fix of what failed, beside an edited test", "", tested("sh run.sh", wrong), "echo 'sum() { echo $(($1+$2)); }' > sum.sh; sed -i s/nothing/naught/ tests/sum_test.sh", 4,
			"Done: verified", []string{"it removes 1 test (adds nothing); edits tests/sum_test.sh", "with the tests as they were: 2 pass", "its new tests without the change: 1 pass, adds two fails"}},
		{"a Makefile that verifies nothing any more", "make", tested("make test", right, "Makefile", "test:\n\tsh run.sh\n"), "echo 'sum() { echo 7; }' > sum.sh; printf 'test:\\n\\ttrue\\n' > Makefile", 4,
			"Done: verified only with changed tests", []string{"it runs 2 tests fewer than before; edits Makefile, which verification runs", "with the tests as they were: adds nothing, adds two fail"}},
		{"a script of package.json that verifies nothing any more", "npm", tested("npm test", right, "package.json", manifest("sh run.sh")), "echo 'sum() { echo 7; }' > sum.sh; echo '" + manifest("true") + "' > package.json", 4,
			"Done: verified only with changed tests", []string{"edits the scripts of package.json, which verification runs", "with the tests as they were: adds nothing, adds two fail"}},
		{"a package.json with another dependency", "npm", tested("npm test", right, "package.json", manifest("sh run.sh")), `echo '{"name": "sums", "scripts": {"test": "sh run.sh"}, "dependencies": {}}' > package.json`, 2,
			"Done: verified", []string{"it touches no test"}},
		{"a hook that turns failures into passes", "", tested("sh run.sh", right), "echo 'sum() { echo 7; }' > sum.sh; echo 'def pytest_runtest_makereport(): pass' > conftest.py", 4,
			"Done: verified only with changed tests", []string{"it adds conftest.py", "with the tests as they were: adds nothing, adds two fail"}},
		{"tests that are removed", "", tested("sh run.sh", right, "tests/more_test.sh", "check a 1 1\ncheck b 1 1\ncheck c 1 1\n"), "rm tests/more_test.sh; echo '# as before' >> sum.sh", 3,
			"Done: verified", []string{"it removes 3 tests (a, b, c); deletes tests/more_test.sh", "with the tests as they were: 5 pass"}},
		{"a change of a description", "", tested("sh run.sh", right), "echo 'They add.' >> README.md", 2,
			"Done: verified", []string{"it touches no test"}},
		{"failures that are reported with exit code 0", "", tested("sh run.sh || true", right), "echo 'sum() { echo 7; }' > sum.sh", 2,
			"Done: unverified, exit code 0 with 2 failures reported", []string{"attempt 1 changed the tree and is unverified, exit code 0 with 2 failures reported"}},
		{"a JUnit report that says otherwise than the exit code", "", junitReported(), "echo 'sum() { echo 7; }' > sum.sh", 2,
			"Done: unverified, exit code 0 with 1 failure reported", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.needs != "" {
				needs.Program(t, c.needs)
			}
			r := newRig(t, c.files)
			r.Agent("cat > /dev/null\n"+c.agent+"\n", "")
			r.Start()
			n := r.Solve("Sums", "Please see to sum.sh.")
			if s := r.Ending(n); s.State != "done" || r.Calls() != 1 {
				t.Fatalf("%d calls, then %s (%s %q); want one, then done", r.Calls(), s.State, s.Rule, s.Reasons)
			}
			if got := strings.Count(r.Left("runs"), "x"); got != c.runs {
				t.Errorf("the verify command ran %d times, want %d", got, c.runs)
			}
			check, conclusion := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl"), "neutral"
			if c.title == "Done: verified" {
				conclusion = "success"
			}
			if check.Title != c.title || check.Conclusion != conclusion {
				t.Errorf("%q (%s), want %q (%s)", check.Title, check.Conclusion, c.title, conclusion)
			}
			_, page := r.Get(fmt.Sprintf("/threads/%s/%d", testrig.Repo, n))
			for where, text := range map[string]string{"check run": check.Summary, "comment": r.World.Comments(testrig.Repo, n)[1].Body, "page": page} {
				text = html.UnescapeString(strings.NewReplacer("\\", "", "`", "").Replace(text))
				for _, want := range c.says {
					if !strings.Contains(text, want) {
						t.Errorf("the %s does not say %q:\n%s", where, want, text)
					}
				}
			}
		})
	}
}

// junitReported is a repository whose verify command writes a JUnit report beside its exit code.
func junitReported() map[string]string {
	files := tested(`mkdir -p bin; . ./sum.sh; if test $(sum 1 1) = 2; then r=''; else r='<failure message="not 2"/>'; fi; echo "<testsuite><testcase name='adds'>$r</testcase></testsuite>" > bin/junit.xml`, "echo $(($1+$2))")
	files[config.RepoFile] += "reports: [bin/junit.xml]\n"
	return files
}

func TestAHookOfPytestThatRewritesOutcomesIsFound(t *testing.T) {
	t.Parallel()
	needs.Program(t, "pytest")
	r := newRig(t, with("pytest -v", "total.py", "def total(a, b):\n    return a + b\n", "test_total.py", "from total import total\n\n\ndef test_adds():\n    assert total(1, 2) == 3\n"))
	r.Agent(`cat > /dev/null
echo 'def total(a, b): return 7' > total.py
cat > conftest.py <<'END'
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome = "passed"
END
`, "")
	r.Start()
	n := r.Solve("Sums", "Please make total faster.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	check := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
	for _, want := range []string{"it adds conftest.py", "with the tests as they were: test_total.py::test_adds fails"} {
		if !strings.Contains(strings.NewReplacer("\\", "", "`", "").Replace(check.Summary), want) || check.Title != "Done: verified only with changed tests" {
			t.Errorf("%q, and does not say %q:\n%s", check.Title, want, check.Summary)
		}
	}
}
