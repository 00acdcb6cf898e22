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
	javaError      = regexp.MustCompile(`^(?:\[ERROR\] +)?(\S+\.(?:java|kt|scala)):(?:\[\d+,\d+\]|\d+:) (?:error: )?(.+)$`)
	gradleTest     = regexp.MustCompile(`^(\S.* > .+) FAILED$`)
	gradleTotals   = regexp.MustCompile(`^(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?$`)
)

// javaReader reads the consoles of Maven (Surefire, Failsafe) and Gradle, and javac's errors. A test is
// "package.Class.test", as in JUnit XML, where the console tells the class.
type javaReader struct{ tally }

func (j *javaReader) line(s string) bool {
	if strings.Contains(s, "<<< ") {
		if m := surefireTest.FindStringSubmatch(s); m != nil {
			j.begin(m[2]+m[3]+"."+m[1]+m[4], (*block).text)
			return true
		}
	}
	if m := surefireTotals.FindStringSubmatch(s); m != nil {
		j.close()
		n := numbers(m)
		j.count(max(0, n[0]-n[1]-n[2]-n[3]), n[1]+n[2], n[3])
		return true
	}
	return j.gradle(s) || j.compiler(s) || j.inside(s)
}

// inside takes the reason and the stack up to an empty line or Maven's next.
func (j *javaReader) inside(s string) bool {
	if j.within == nil {
		return false
	}
	if s == "" || strings.HasPrefix(s, "[") || !j.within.add(s) {
		j.close()
		return false
	}
	return true
}

func (j *javaReader) gradle(s string) bool {
	if strings.HasSuffix(s, " FAILED") && !strings.HasPrefix(s, "> Task ") {
		if m := gradleTest.FindStringSubmatch(s); m != nil {
			j.begin(m[1], (*block).text)
			return true
		}
	}
	if m := gradleTotals.FindStringSubmatch(s); m != nil {
		j.close()
		n := numbers(m)
		j.count(max(0, n[0]-n[1]-n[2]), n[1], n[2])
		return true
	}
	return false
}

// compiler takes an error of javac. The file goes by its path in the sources, wherever the project lies.
func (j *javaReader) compiler(s string) bool {
	m := javaError.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	j.close()
	j.seen = true
	file := path.Base(m[1])
	if i := strings.LastIndex(m[1], "/src/"); i >= 0 {
		file = m[1][i+1:]
	}
	j.add(file+" [compilation failed]", m[2])
	return true
}
