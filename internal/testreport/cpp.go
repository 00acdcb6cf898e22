package testreport

import (
	"fmt"
	"slices"
	"strings"
)

const gtestFailure = `^(?:\S+:\d+|unknown file): Failure$`

// gtest reads GoogleTest. A test is "Suite.Test", or "Instance/Suite.Test/0"; one that the program ended in
// has failed.
func gtest(g *ruled) []rule {
	return []rule{
		{`^\[==========\] (?:\d+ tests? from \d+ test (?:suite|case)s? ran\.|Running \d+ tests?)`, func([]string) bool {
			g.close()
			return true
		}},
		{`^\[ RUN      \] (\S+)$`, func(m []string) bool { return g.begin(m[1], gtestText) }},
		{gtestFailure, func(m []string) bool {
			if g.within == nil {
				g.begin("", gtestText) // with --gtest_brief the name follows
			}
			g.within.add(m[0])
			return true
		}},
		{`^\[ +(FAILED|OK|SKIPPED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)$`, func(m []string) bool {
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
		{`^\[  (PASSED|FAILED|SKIPPED) +\] (\d+) tests?[.,]`, func(m []string) bool { return g.summary(m[2] + " " + m[1]) }},
		{"", func(m []string) bool {
			if g.within != nil {
				g.within.add(m[0])
			}
			return g.within != nil
		}},
	}
}

// gtestText leaves out what the test printed before it failed.
func gtestText(b *block) string {
	lines := strings.Split(b.text(), "\n")
	return strings.Join(lines[max(0, slices.IndexFunc(lines, form(gtestFailure).MatchString)):], "\n")
}

// ctest reads CTest, also with the output of tests.
func ctest(c *ruled) []rule {
	skipped := 0
	return []rule{
		{`^(?: *Start +\d+: |test \d+$|\d+% tests passed)`, c.ends},
		{`^ *\d+/\d+ Test +#\d+: (.+?) \.+(?:\*\*\*| +)(\S.*?) +[0-9.]+ sec$`, func(m []string) bool {
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
		{`^\d+% tests passed, (\d+) tests? failed out of (\d+)$|^No tests were found!!!$`, func(m []string) bool {
			c.summary(fmt.Sprintf("%s tests, %s failed, %d skipped", m[2], m[1], skipped))
			skipped = 0
			return true
		}},
		{"", c.inside},
	}
}
