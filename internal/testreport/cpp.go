package testreport

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	gtestStart   = regexp.MustCompile(`^Running main\(\) from \S*gtest|^\[(?:==========| RUN      )\] |^\S+:\d+: Failure$`)
	gtestRan     = regexp.MustCompile(`^\[==========\] (?:\d+ tests? from \d+ test (?:suite|case)s? ran\.|Running \d+ tests?)`)
	gtestRun     = regexp.MustCompile(`^\[ RUN      \] (\S+)$`)
	gtestFailure = regexp.MustCompile(`^(?:\S+:\d+|unknown file): Failure$`)
	gtestEnd     = regexp.MustCompile(`^\[ +(FAILED|OK|SKIPPED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)$`)
	gtestTotal   = regexp.MustCompile(`^\[  (PASSED|FAILED|SKIPPED) +\] (\d+) tests?[.,]`)

	ctestFirst  = regexp.MustCompile(`^Test project /`)
	ctestTest   = regexp.MustCompile(`^ *\d+/\d+ Test +#\d+: (.+?) \.+(?:\*\*\*| +)(\S.*?) +[0-9.]+ sec$`)
	ctestStart  = regexp.MustCompile(`^(?: *Start +\d+: |test \d+$|\d+% tests passed)`)
	ctestTotals = regexp.MustCompile(`^\d+% tests passed, (\d+) tests? failed out of (\d+)$|^No tests were found!!!$`)
)

// newGoogleTest reads GoogleTest. A test is "Suite.Test", or "Instance/Suite.Test/0"; one that the program ended in
// has failed.
func newGoogleTest() reader {
	g := &ruled{tally: tally{runner: "gtest"}, starts: gtestStart}
	g.rules = []rule{
		{gtestRan, func([]string) bool {
			g.close()
			return true
		}},
		{gtestRun, func(m []string) bool { return g.begin(m[1], gtestText) }},
		{gtestFailure, func(m []string) bool {
			if g.within == nil {
				g.begin("", gtestText) // with --gtest_brief the name follows
			}
			g.within.add(m[0])
			return true
		}},
		{gtestEnd, func(m []string) bool {
			if g.within == nil || g.names[0] != "" && g.names[0] != m[2] {
				return false // a test printed it
			}
			g.names[0] = m[2]
			if m[1] != "FAILED" {
				g.within = nil
			}
			g.close()
			return true
		}},
		{gtestTotal, func(m []string) bool { return g.summary(m[2] + " " + m[1]) }},
		{nil, func(m []string) bool {
			if g.within != nil {
				g.within.add(m[0])
			}
			return g.within != nil
		}},
	}
	return g
}

// gtestText leaves out what the test printed before it failed.
func gtestText(b *block) string {
	lines := strings.Split(b.text(), "\n")
	return strings.Join(lines[max(0, slices.IndexFunc(lines, gtestFailure.MatchString)):], "\n")
}

// newCTest reads CTest, also with the output of tests.
func newCTest() reader {
	c := &ruled{tally: tally{runner: "ctest"}, starts: ctestFirst}
	skipped := 0
	c.rules = []rule{
		{ctestStart, c.ends},
		{ctestTest, func(m []string) bool {
			c.close()
			c.seen = true
			switch m[2] {
			case "Passed", "Not Run (Disabled)":
				return true
			case "Skipped":
				skipped++
				return true
			}
			c.begin(m[1], (*block).text)
			return c.within.add(m[2])
		}},
		{ctestTotals, func(m []string) bool {
			c.summary(fmt.Sprintf("%s tests, %s failed, %d skipped", m[2], m[1], skipped))
			skipped = 0
			return true
		}},
		{nil, c.inside},
	}
	return c
}
