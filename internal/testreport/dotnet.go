package testreport

import (
	"path"
	"regexp"
	"strings"
)

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
			n := labels(m[1])
			return d.count(n["passed"], n["failed"], n["skipped"])
		}},
		{dotnetTotal, func(m []string) bool {
			d.close()
			n := labels(m[1])
			total = total || m[1] == ""
			return total && d.count(n["passed"], n["failed"], n["skipped"])
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
