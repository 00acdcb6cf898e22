package testreport

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

var (
	mochaStart = regexp.MustCompile(`^  \d+ passing|^ Exception during run: `)
	mochaTotal = regexp.MustCompile(`^  \d+ (passing|pending|failing)(?: \(\d+\w+\))?$`)
	mochaTitle = regexp.MustCompile(`^  (\d+)\) (.+)$`)
	mochaLoad  = regexp.MustCompile(`^ Exception during run: (.+)$`)
	nodeStack  = regexp.MustCompile(`^\s*at .*:\d+\)?$`)

	playwrightStart = regexp.MustCompile(`^Running \d+ tests? using \d+ worker|^\w*Error: `)
	playwrightTitle = regexp.MustCompile(`^ +(\d+\) )?(\[[^\]]+\] › )?(\S.*?\.\w+):\d+:\d+ › (.+?)(?: ─*)?$`)
	playwrightTotal = regexp.MustCompile(`^  \d+ (failed|interrupted|flaky|skipped|did not run|passed)(?: \([0-9.]+\w+\))?$`)
	playwrightEnd   = regexp.MustCompile(`^\s*(?:>? *\d+ \||at .*:\d+$|Error Context: |Retry #\d+ )`)
	playwrightLoad  = regexp.MustCompile(`^\w*Error: (.+)$`)
	playwrightFile  = regexp.MustCompile(`^   at (\S+\.\w+):\d+$`)

	bunStart  = regexp.MustCompile(`^bun test v\d`)
	bunNone   = regexp.MustCompile(`^# Unhandled error between tests$|^No tests found!$`)
	bunFile   = regexp.MustCompile(`^(?:::group::)?(\S+\.[cm]?[jt]sx?):$`)
	bunTest   = regexp.MustCompile(`^(?:\((fail|pass|skip|todo)\)|([✗✓»✎])) (.+?)(?: \[[0-9.]+m?s\])?$`)
	bunReason = regexp.MustCompile(`^  \^ (.+)$`)
	bunError  = regexp.MustCompile(`^(?:error|\w*Error): .+$`)
	bunTotal  = regexp.MustCompile(`^ (?:(\d+ (?:pass|fail|skip|todo))s?|\d+ errors?)$`)
)

// newMocha reads what Mocha prints at the end, whichever reporter was used before. A test is "suite › test".
func newMocha() reader {
	m := &ruled{tally: tally{runner: "mocha"}, starts: mochaStart}
	var title []string // of a failure, one line each, deeper and deeper
	depth, stack := 0, false
	m.rules = []rule{
		{mochaTotal, func(g []string) bool {
			if g[1] != "passing" && !m.hasCounts {
				return false
			}
			m.close()
			m.last = 0
			return m.summary(g[0])
		}},
		{mochaTitle, func(g []string) bool {
			if m.last >= m.failed || !m.next(g[1]) {
				return false
			}
			m.close()
			title, depth = []string{g[2]}, len("  1) ")
			return true
		}},
		{nil, func(g []string) bool {
			if title == nil {
				return false
			}
			if d := indent(g[0]); d > depth && d < len(g[0]) && d%2 == 1 {
				title, depth = append(title, strings.TrimSpace(g[0])), d
				return true
			}
			m.begin(strings.TrimSuffix(strings.Join(title, " › "), ":"), upTo(nodeStack))
			title, stack = nil, false
			return m.inside(g)
		}},
		{mochaLoad, func(g []string) bool {
			m.begin("mocha [suite failed to run]", upTo(nodeStack))
			stack = false
			return m.within.add(g[1])
		}},
		{nil, func(g []string) bool {
			if m.within == nil {
				return false
			}
			if stack = stack || nodeStack.MatchString(g[0]); stack && g[0] == "" {
				return m.ends(nil)
			}
			return m.inside(g)
		}},
	}
	return m
}

// newPlaywright reads Playwright's reporters for people. A test is "[project] › file › suite › test"; one that
// passed when it was tried again has not failed.
func newPlaywright() reader {
	p := &ruled{tally: tally{runner: "playwright"}, starts: playwrightStart}
	section, load := "", "" // of the list at the end; the last error before any test
	p.rules = []rule{
		{playwrightTitle, func(m []string) bool {
			name := m[2] + m[3] + " › " + m[4]
			switch {
			case m[1] != "":
				return p.begin(name, upTo(playwrightEnd))
			case section == "failed" || section == "interrupted":
				return p.note(name, "")
			case section == "flaky":
				p.list = slices.DeleteFunc(p.list, func(f policy.Failing) bool { return f.Name == stableName(name) })
				return true
			}
			return false
		}},
		{playwrightTotal, func(m []string) bool {
			p.close()
			section = m[1]
			return p.summary(m[0])
		}},
		{jestDeeper, p.inside},
		{nil, p.ends},
		{playwrightFile, func(m []string) bool { return load != "" && p.note(m[1]+" [suite failed to run]", load) }},
		{playwrightLoad, func(m []string) bool {
			load = m[0]
			return m[1] == "No tests found." && p.count(0, 0, 0)
		}},
	}
	return p
}

// newBun reads bun test. A test is "file › suite > test".
func newBun() reader {
	b := &ruled{tally: tally{runner: "bun"}, starts: bunStart}
	file, last, text := "", "", block{} // the text comes before its test's end
	gathers, loads := false, false
	b.rules = []rule{
		{bunFile, func(m []string) bool {
			file = m[1]
			return true
		}},
		{bunTest, func(m []string) bool {
			if last = ""; m[1] == "fail" || m[2] == "✗" {
				last = strings.TrimPrefix(file+" › ", " › ") + m[3]
				b.note(last, text.text())
			}
			text, gathers = block{}, false
			return true
		}},
		{bunReason, func(m []string) bool { return last != "" && b.note(last, m[1]) }},
		{bunTotal, func(m []string) bool {
			gathers = false
			return b.summary(m[1])
		}},
		{bunNone, func(m []string) bool {
			loads = m[0][0] == '#'
			return b.count(0, 0, 0)
		}},
		{bunError, func(m []string) bool {
			if loads {
				b.note(file+" [suite failed to run]", m[0])
			}
			text, gathers, loads = block{}, !loads, false
			return gathers && text.add(m[0])
		}},
		{nil, func(m []string) bool {
			gathers = gathers && !nodeStack.MatchString(m[0])
			return gathers && text.add(m[0])
		}},
	}
	return b
}
