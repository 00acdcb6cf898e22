package testreport

import (
	"regexp"
	"strings"
)

var (
	jestFile   = regexp.MustCompile(`^ ?(FAIL|PASS) {1,2}(?:(\S+) )?(\S+\.\w+)(?: \([0-9.]+ m?s\))?$`)
	jestBlock  = regexp.MustCompile(`^  ● (.*)$`)
	jestDeeper = regexp.MustCompile(`^(?:\s*|    .*)$`)
	jestTests  = regexp.MustCompile(`^Tests: +(\d+ \w+.*), \d+ total$`)
	jestFailed = regexp.MustCompile(`^ +✕ (.*)$`)

	vitestFail   = regexp.MustCompile(`^ FAIL  (.+)$`)
	vitestSuite  = regexp.MustCompile(`^(.+?) \[ .+ \]$`)
	vitestTests  = regexp.MustCompile(`^ +Tests  (\d+ \w+.*?)(?: \(\d+\))?$`)
	vitestRule   = regexp.MustCompile(`^⎯⎯⎯`)
	vitestMarked = regexp.MustCompile(`^ +× (.+)$`)
	vitestReason = regexp.MustCompile(`^ *→ (.*)$`)

	// "a.ts(1,7): error TS2322: …" or, for people, "a.ts:1:7 - error TS2322: …".
	tscError = regexp.MustCompile(`^(\S.*?)(?:\(\d+,\d+\): |:\d+:\d+ - )error (TS\d+): (.+)$`)
)

// newJest reads Jest: names and texts from the blocks that begin with "●", or, where the output stops before,
// names from the tree of --verbose. A test is "file › suite › test".
func newJest() reader {
	j := &ruled{tally: tally{runner: "jest"}}
	file, console := "", false // console: within what the tests printed
	j.rules = []rule{
		{jestFile, func(m []string) bool {
			j.close()
			j.seen, file, console = true, m[3], false
			return true
		}},
		{jestBlock, func(m []string) bool {
			j.close()
			title := m[1]
			switch console = title == "Console"; {
			case console:
				return true
			case title == "Test suite failed to run":
				title = strings.TrimSpace(file + " [suite failed to run]")
			case file != "":
				title = file + " › " + title
			}
			return j.begin(title, jestText)
		}},
		{jestDeeper, func(m []string) bool { return j.inside(m) || console }},
		{nil, j.ends},
		{jestTests, func(m []string) bool {
			file = ""
			return j.summary(m[1])
		}},
		{jestFailed, func(m []string) bool { return j.mark(m[1], "") }},
	}
	return j
}

// jestText leaves out the stack, which names the runner's files and where the project lies.
func jestText(b *block) string {
	s := b.text()
	if i := strings.Index(s, "\n\n  at "); i >= 0 {
		return s[:i]
	}
	text, _, _ := strings.Cut(s, "\n\nat ")
	return text
}

// newVitest reads Vitest: names and texts from the blocks that begin with FAIL, or, where the output stops
// before, those marked × in the tree. A test is "file > suite > test".
func newVitest() reader {
	v := &ruled{tally: tally{runner: "vitest"}}
	marked := "" // the last of the tree, whose reason may follow
	v.rules = []rule{
		{vitestFail, func(m []string) bool {
			title := m[1]
			if suite := vitestSuite.FindStringSubmatch(title); suite != nil {
				title = suite[1] + " [suite failed to run]"
			} else if !strings.Contains(title, " > ") {
				return false // Jest's have a file and nothing else
			}
			if v.within == nil || v.within.lines > 0 {
				return v.begin(title, (*block).text)
			}
			if len(v.names) < maxFailing {
				v.names = append(v.names, title)
			}
			return true
		}},
		{vitestTests, func(m []string) bool {
			v.close()
			return v.summary(m[1])
		}},
		{vitestRule, func([]string) bool {
			v.close()
			v.seen, marked = true, ""
			return true
		}},
		{nil, v.inside},
		{vitestMarked, func(m []string) bool {
			marked = m[1]
			return v.mark(marked, "")
		}},
		{vitestReason, func(m []string) bool { return marked != "" && v.mark(marked, m[1]) }},
		{nil, func([]string) bool {
			marked = ""
			return false
		}},
	}
	return v
}

// newTSC reads the TypeScript compiler. The errors of one number in a file are one failure, "file TS2322": lines move.
func newTSC() reader {
	t := &ruled{tally: tally{runner: "tsc"}}
	t.rules = []rule{{tscError, func(m []string) bool { return t.note(m[1]+" "+m[2], m[3]) }}}
	return t
}

var (
	nodeTime  = regexp.MustCompile(` \([0-9]+\.[0-9]+ms\)(?: # (\w+).*)?$`)
	nodeTotal = regexp.MustCompile(`^[ℹ#] (tests|pass|fail|cancelled|skipped|todo) (\d+)$`)
)

// nodeReader reads node:test's spec reporter; its TAP is TAP. A test is "suite > test". A suite that fails with
// its tests is left out, as node leaves it out of its numbers.
type nodeReader struct {
	tally
	suites suites
	atEnd  bool // within the list of failing tests at the end
	depth  int  // of the open failure
}

func (n *nodeReader) line(s string) bool {
	if strings.HasPrefix(s, "ℹ ") {
		return n.total(s)
	}
	trimmed := strings.TrimLeft(s, " ")
	depth := len(s) - len(trimmed)
	mark, name, _ := strings.Cut(trimmed, " ")
	switch {
	case s == "✖ failing tests:":
		n.close()
		n.seen, n.atEnd, n.suites = true, true, nil
		return true
	case mark == "▶" && n.within == nil || mark == "▶" && depth <= n.depth:
		n.suite(name, depth)
		return true
	case mark == "✖" && nodeTime.MatchString(name):
		n.failing(name, depth)
		return true
	case mark == "✔" && nodeTime.MatchString(name), mark == "﹣":
		n.close()
		n.seen = true
		suite := n.suites.at(depth, stableName(nodeTime.ReplaceAllString(name, ""))) != nil
		n.suites.leave(depth)
		if mark == "✔" && !suite {
			n.pass(n.suites.under(stableName(nodeTime.ReplaceAllString(name, ""))))
		}
		return true
	case n.atEnd && strings.HasPrefix(s, "test at "):
		n.close()
		return true
	case n.within != nil && (trimmed == "" || depth > n.depth):
		if !n.within.add(s) {
			n.close()
		}
		return true
	}
	n.close()
	return false
}

func (n *nodeReader) total(s string) bool {
	if !n.nodeTotal(s) {
		return strings.HasPrefix(s, "ℹ suites ") || strings.HasPrefix(s, "ℹ duration_ms ")
	}
	n.close()
	return true
}

// suite is "▶ name": a suite, or a test that has tests of its own.
func (n *nodeReader) suite(name string, depth int) {
	n.close()
	name = stableName(name)
	known := n.suites.at(depth, name) != nil
	n.suites.leave(depth)
	if !known {
		n.suites.enter(suite{name: name, depth: depth, failed: len(n.list)})
	}
}

// failing is "✖ name (1.2ms)", with a reason behind it where it does not count.
func (n *nodeReader) failing(name string, depth int) {
	n.close()
	n.seen = true
	m := nodeTime.FindStringSubmatch(name)
	name = nodeTime.ReplaceAllString(name, "")
	own := n.suites.at(depth, stableName(name))
	failedInside := own != nil && len(n.list) > own.failed
	n.suites.leave(depth)
	if failedInside || strings.EqualFold(m[1], "todo") || strings.EqualFold(m[1], "skip") {
		name = "" // which is not noted
	} else {
		name = n.suites.under(name)
	}
	n.depth = depth
	n.begin(name, nodeText)
}

// close ends the open failure; of one in the list at the end only the text may be new.
func (n *nodeReader) close() {
	if n.within != nil && n.atEnd && n.names[0] != "" && n.explain(n.names[0], nodeText(n.within)) {
		n.within = nil
	}
	n.tally.close()
}

var nodeText = upTo(regexp.MustCompile(`^\s*at `))

func (n *nodeReader) report() Report {
	n.close()
	return n.tally.report()
}

// nodeTotal counts one of node:test's numbers, behind "ℹ" in its spec reporter and "#" in its TAP, if a line is
// one. That of tests comes first; without it others may be missing.
func (t *tally) nodeTotal(s string) bool {
	m := nodeTotal.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	n, _ := number(m[2])
	t.seen = true
	switch m[1] {
	case "tests":
		t.hasCounts = true
	case "pass":
		t.passed += n
	case "fail", "cancelled":
		t.failed += n
	case "skipped", "todo":
		t.skipped += n
	}
	return true
}
