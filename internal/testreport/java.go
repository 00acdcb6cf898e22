package testreport

import (
	"path"
	"strings"
)

// java reads the consoles of Maven (Surefire, Failsafe) and Gradle, and javac's errors. A test is
// "package.Class.test", as in JUnit XML, where the console tells the class.
func java(j *ruled) []rule {
	busy := false // a task ran tests; Gradle counts them only where some fail
	return []rule{
		{`^(?:> Task )?:(?:\S+:)?test(?: (NO-SOURCE)| .*|[^C\s].*)?$|^\[INFO\] (No tests to run)\.$`, func(m []string) bool {
			idle := m[1]+m[2] != ""
			j.seen, busy = j.seen || idle, busy || !idle
			j.hasCounts = j.passed+j.failed+j.skipped > 0 || !busy
			return true
		}},
		// Surefire 2 prints "adds(com.example.SumTest)  Time elapsed: …", Surefire 3 "com.example.SumTest.adds -- Time elapsed: …".
		{`^(?:\[ERROR\] +)?(?:(\S+)\(([\w.$]+)\)|([\w.$]+)\.(\S+?)) +(?:-- )?Time elapsed: [0-9.]+ s(?:ec)? +<<< (?:FAILURE|ERROR)!$`, func(m []string) bool {
			return j.begin(m[2]+m[3]+"."+m[1]+m[4], (*block).text)
		}},
		{`^(?:\[\w+\] +)?(Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+)$`, j.numbers},
		{`^(\S.* > .+) FAILED$`, func(m []string) bool { return !strings.HasPrefix(m[0], "> Task ") && j.begin(m[1], (*block).text) }},
		{`^\d+ tests? completed(?:, \d+ failed)?(?:, \d+ skipped)?$`, j.numbers},
		{`^(?:\[ERROR\] +)?(\S+\.(?:java|kt|scala)):(?:\[\d+,\d+\]|\d+:) (?:error: )?(.+)$`, func(m []string) bool {
			j.close()
			file := path.Base(m[1])
			if i := strings.LastIndex(m[1], "/src/"); i >= 0 {
				file = m[1][i+1:] // wherever the project lies
			}
			return j.note(file+" [compilation failed]", m[2])
		}},
		{`^(?:$|\[)`, j.ends},
		{"", j.inside}, // the reason and the stack
	}
}

// dotnet reads the console of dotnet test, as VSTest's ConsoleLogger.cs writes it, and errors of the compilers.
func dotnet(d *ruled) []rule {
	part, total := "", false // of a failure; within the numbers of --verbosity normal
	return []rule{
		{`^  (Failed|Passed|Skipped) (.+?) \[[< ]*\d[\d hms]*\]$`, func(m []string) bool {
			d.close()
			part = ""
			return m[1] != "Failed" || d.begin(m[2], (*block).text)
		}},
		{`^  ([A-Z][A-Za-z ]+):$`, func(m []string) bool {
			part = m[1]
			return d.within != nil
		}},
		{`^(?:Failed|Passed|Skipped)! +- (Failed: +\d+, Passed: +\d+, Skipped: +\d+), Total: +\d+`, d.numbers},
		{`^Total tests: \d+$|^ {4,5}((?:Failed|Passed|Skipped): \d+)$`, func(m []string) bool {
			total = total || m[1] == ""
			return total && d.numbers(m) || d.ends(m)
		}},
		{`^No test (?:is available in|matches the given testcase filter) `, func([]string) bool { return d.count(0, 0, 0) }},
		{`^ *(\S.*?\.(?:cs|fs|vb))\(\d+,\d+\): error (\w+): (.+?)(?: \[[^\]]*\])?$`, func(m []string) bool {
			return d.note(path.Base(strings.ReplaceAll(m[1], `\`, "/"))+" [compilation failed]", m[2]+": "+m[3])
		}},
		{"", func(m []string) bool {
			if total = total && m[0] == ""; part != "Error Message" && indent(m[0]) < 3 {
				return d.ends(m)
			}
			return d.within != nil && (part != "Error Message" || d.inside(m))
		}},
	}
}
