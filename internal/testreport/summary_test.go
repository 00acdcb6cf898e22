package testreport

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// written reads a file of many outputs. Each begins with "== NAME" or "== NAME | EXPECTED COUNTS".
func written(t *testing.T, file string) map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/written/" + file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for part := range strings.SplitSeq("\n"+string(b), "\n== ") {
		name, output, _ := strings.Cut(part, "\n")
		if output != "" {
			all[name] = output + "\n"
		}
	}
	return all
}

// shown returns a report's counts; "-" without a runner.
func shown(r Report) string {
	if r.Runner == "" {
		return "-"
	}
	return fmt.Sprint(r.Passed, r.Failed, r.Skipped)
}

func TestTotalsOfRunnersAreRead(t *testing.T) {
	all := written(t, "runners.txt")
	if len(all) < 60 {
		t.Fatalf("only %d outputs", len(all))
	}
	for title, output := range all {
		name, want, _ := strings.Cut(title, " | ")
		if got := shown(Read(output)); got != want {
			t.Errorf("%s: passed, failed, skipped are read as %s, want %s", name, got, want)
		}
	}
}

func TestOtherProgramsAreNotTests(t *testing.T) {
	all := written(t, "others.txt")
	if len(all) < 20 {
		t.Fatalf("only %d outputs", len(all))
	}
	for name, output := range all {
		if r := Read(output); r.Runner != "" {
			t.Errorf("%s is read as %s: %s", name, r.Runner, shown(r))
		}
	}
}

// The outputs come from public issues, before and after a change. Each change was called verified, although no test ran
// or a test failed: swift test (BasedHardware/omi#11441), Minitest (ruby/rake#167), turbo (vercel/turborepo#5298),
// Vitest (InsForge/insforge-mcp#100).
func TestReportedOutputsAreCounted(t *testing.T) {
	for _, tc := range []struct {
		file           string
		passed, failed int
		noTests        bool
		failing        string
	}{
		{"26-swift-zero-tests-before", 2, 0, false, ""},
		{"26-swift-zero-tests-after", 0, 0, true, ""},
		{"27-swift-failures-exit-0-before", 2, 0, false, ""},
		{"27-swift-failures-exit-0-after", 1, 1, false, ""},
		{"29-minitest-zero-runs-before", 2, 0, false, ""},
		{"29-minitest-zero-runs-after", 0, 0, true, ""},
		{"32-turbo-prefix-exit-0-before", 1, 0, false, ""},
		{"32-turbo-prefix-exit-0-after", 0, 1, false, "api:test src/sum.test.js › adds"},
		{"35-vitest-pass-with-no-tests-before", 1, 0, false, ""},
		{"35-vitest-pass-with-no-tests-after", 0, 0, true, ""},
	} {
		output, err := os.ReadFile("testdata/reports/" + tc.file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		v := policy.Verified{Passed: true}
		Count(&v, Read(string(output)))
		failing := strings.Join(policy.Names(v.Failing), ", ")
		counted := v.PassedTests == tc.passed && v.FailedTests == tc.failed && v.NoTests == tc.noTests
		if v.Runner == "" || !counted || failing != tc.failing {
			t.Errorf("%s: %q, %d passed, %d failed, none %t, %q", tc.file, v.Runner, v.PassedTests, v.FailedTests, v.NoTests, failing)
		}
	}
}

func TestRepeatedTotalsCountOnce(t *testing.T) {
	for name, tc := range map[string]struct{ output, want string }{
		"two runs with the same numbers":  {"a\nb\nc\nd\n3 tests, 1 failure\nrake\n# Running\n...\nFinished\nmore\n3 tests, 1 failure\n", "4 2 0"},
		"a total of earlier totals":       {"Executed 2 tests, with 1 failure\nx\nExecuted 3 tests, with 0 failures\ny\nExecuted 5 tests, with 1 failure\n", "4 1 0"},
		"parts and their total far apart": {"Tests run: 2, Failures: 1 - in a.BTest\n" + strings.Repeat("a line of a log\n", 50) + "Tests run: 2, Failures: 1\n", "1 1 0"},
		"progress on one line":            {"Cases: 3  Tried: 0  Errors: 0  Failures: 0\rCases: 3  Tried: 3  Errors: 0  Failures: 1\n", "2 1 0"},
		"no test in one of two packages":  {"No tests found.\nthe other\n3 tests, 0 failures\n", "3 0 0"},
		"go test, no test in one package": {"testing: warning: no tests to run\nok  \tp\t0.1s [no tests to run]\nok  \tq\t0.1s\n", "-1 0 -1"},
		"thousands":                       {"12,345 passed, 1 failed\n", "12345 1 0"},
	} {
		if got := shown(Read(tc.output)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestReportedFailureOutranksExitCode(t *testing.T) {
	for exit := range 2 {
		v := policy.Verified{Exit: exit, Passed: exit == 0}
		Count(&v, Read("1 example, 1 failure\n"))
		if v.Passed || v.Runner != totalsOnly || v.FailedTests != 1 || v.NoTests {
			t.Errorf("with exit code %d: %+v", exit, v)
		}
	}
}
