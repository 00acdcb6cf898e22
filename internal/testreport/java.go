package testreport

import (
	"path"
	"regexp"
	"strings"
)

var (
	// Surefire 2 prints "adds(com.example.SumTest)  Time elapsed: …", Surefire 3
	// "com.example.SumTest.adds -- Time elapsed: …".
	surefireTest   = regexp.MustCompile(`^(?:\[ERROR\] +)?(?:(\S+)\(([\w.$]+)\)|([\w.$]+)\.(\S+?)) +(?:-- )?Time elapsed: [0-9.]+ s(?:ec)? +<<< (?:FAILURE|ERROR)!$`)
	surefireTotals = regexp.MustCompile(`^(?:\[\w+\] +)?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)$`)
	gradleTest     = regexp.MustCompile(`^(\S.* > .+) FAILED$`)
	gradleTotals   = regexp.MustCompile(`^(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?$`)
	javaTask       = regexp.MustCompile(`^(?:> Task )?:(?:\S+:)?test(?: (NO-SOURCE)| .*|[^C\s].*)?$|^\[INFO\] (No tests to run)\.$`)
	javaError      = regexp.MustCompile(`^(?:\[ERROR\] +)?(\S+\.(?:java|kt|scala)):(?:\[\d+,\d+\]|\d+:) (?:error: )?(.+)$`)
	javaEnd        = regexp.MustCompile(`^(?:$|\[)`)
)

// newJava reads the consoles of Maven (Surefire, Failsafe) and Gradle, and javac's errors. A test is
// "package.Class.test", as in JUnit XML, where the console tells the class.
func newJava() reader {
	j := &ruled{tally: tally{runner: "java"}}
	busy := false // a task ran tests; Gradle counts them only where some fail
	j.rules = []rule{
		{javaTask, func(m []string) bool {
			idle := m[1]+m[2] != ""
			j.seen, busy = j.seen || idle, busy || !idle
			j.hasCounts = j.passed+j.failed+j.skipped > 0 || !busy
			return true
		}},
		{surefireTest, func(m []string) bool { return j.begin(m[2]+m[3]+"."+m[1]+m[4], (*block).text) }},
		{surefireTotals, func(m []string) bool {
			j.close()
			n := numbers(m)
			return j.count(max(0, n[0]-n[1]-n[2]-n[3]), n[1]+n[2], n[3])
		}},
		{gradleTest, func(m []string) bool { return !strings.HasPrefix(m[0], "> Task ") && j.begin(m[1], (*block).text) }},
		{gradleTotals, func(m []string) bool {
			j.close()
			n := numbers(m)
			return j.count(max(0, n[0]-n[1]-n[2]), n[1], n[2])
		}},
		{javaError, func(m []string) bool {
			j.close()
			file := path.Base(m[1])
			if i := strings.LastIndex(m[1], "/src/"); i >= 0 {
				file = m[1][i+1:] // wherever the project lies
			}
			return j.note(file+" [compilation failed]", m[2])
		}},
		{javaEnd, j.ends},
		{nil, j.inside}, // the reason and the stack
	}
	return j
}
