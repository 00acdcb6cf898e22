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
	surefireTotals = regexp.MustCompile(`^(?:\[\w+\] +)?(Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+)$`)
	gradleTest     = regexp.MustCompile(`^(\S.* > .+) FAILED$`)
	gradleTotals   = regexp.MustCompile(`^\d+ tests? completed(?:, \d+ failed)?(?:, \d+ skipped)?$`)
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
			return j.summary(m[1])
		}},
		{gradleTest, func(m []string) bool { return !strings.HasPrefix(m[0], "> Task ") && j.begin(m[1], (*block).text) }},
		{gradleTotals, func(m []string) bool {
			j.close()
			return j.summary(m[0])
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

var (
	dotnetStart  = regexp.MustCompile(`^(?:  Determining projects to restore|Restore complete|MSBuild version |Test run for |Build started)`)
	dotnetTest   = regexp.MustCompile(`^  (Failed|Passed|Skipped) (.+?) \[[< ]*\d[\d hms]*\]$`)
	dotnetPart   = regexp.MustCompile(`^  ([A-Z][A-Za-z ]+):$`)
	dotnetTotals = regexp.MustCompile(`^(?:Failed|Passed|Skipped)! +- (Failed: +\d+, Passed: +\d+, Skipped: +\d+), Total: +\d+`)
	dotnetTotal  = regexp.MustCompile(`^Total tests: \d+$|^ {4,5}((?:Failed|Passed|Skipped): \d+)$`)
	dotnetNone   = regexp.MustCompile(`^No test (?:is available in|matches the given testcase filter) `)
	dotnetError  = regexp.MustCompile(`^ *(\S.*?\.(?:cs|fs|vb))\(\d+,\d+\): error (\w+): (.+?)(?: \[[^\]]*\])?$`)
)

// newDotnet reads the console of dotnet test, as VSTest's ConsoleLogger.cs writes it, and errors of the compilers.
func newDotnet() reader {
	d := &ruled{tally: tally{runner: "dotnet"}, starts: dotnetStart}
	part, total := "", false // of a failure; within the numbers of --verbosity normal
	d.rules = []rule{
		{dotnetTest, func(m []string) bool {
			d.close()
			part = ""
			return m[1] != "Failed" || d.begin(m[2], (*block).text)
		}},
		{dotnetPart, func(m []string) bool {
			part = m[1]
			return d.within != nil
		}},
		{dotnetTotals, func(m []string) bool {
			d.close()
			return d.summary(m[1])
		}},
		{dotnetTotal, func(m []string) bool {
			d.close()
			total = total || m[1] == ""
			return total && d.summary(m[1])
		}},
		{dotnetNone, func([]string) bool { return d.count(0, 0, 0) }},
		{dotnetError, func(m []string) bool {
			return d.note(path.Base(strings.ReplaceAll(m[1], `\`, "/"))+" [compilation failed]", m[2]+": "+m[3])
		}},
		{nil, func(m []string) bool {
			if total = total && m[0] == ""; part != "Error Message" && indent(m[0]) < 3 {
				return d.ends(m)
			}
			return d.within != nil && (part != "Error Message" || d.inside(m))
		}},
	}
	return d
}
