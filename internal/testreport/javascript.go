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
	nodeInfo  = regexp.MustCompile(`^ℹ .*`)
	nodeTotal = regexp.MustCompile(`^[ℹ#] (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$`)
	nodeList  = regexp.MustCompile(`^✖ failing tests:$`)
	nodeMark  = regexp.MustCompile(`^( *)([▶✖✔﹣]) (.*?)( \([0-9]+\.[0-9]+ms\)(?: # (?i:(todo|skip)|\w+).*)?)?$`)
	nodePlace = regexp.MustCompile(`^test at `)
	nodeText  = upTo(regexp.MustCompile(`^\s*at `))
)

// newNode reads node:test's spec reporter; its TAP is TAP. A test is "suite > test". A suite that fails with
// its tests is left out, as node leaves it out of its numbers.
func newNode() reader {
	n := &ruled{tally: tally{runner: "node"}}
	var around suites
	depth := 0 // of the open failure
	n.rules = []rule{
		{nodeInfo, func(m []string) bool {
			n.close()
			return n.nodeTotal(m[0])
		}},
		{nodeList, func([]string) bool {
			n.close()
			n.seen, n.again, around = true, true, nil
			return true
		}},
		{nodeMark, func(m []string) bool {
			mark, name := m[2], stableName(m[3])
			if at := len(m[1]); mark == "▶" && n.within != nil && at > depth || (mark == "✖" || mark == "✔") && m[4] == "" {
				return false // text of a failure
			}
			n.close()
			own := around.at(len(m[1]), name)
			around.leave(len(m[1]))
			switch {
			case mark == "▶" && own == nil: // a suite, or a test that has tests of its own
				around.enter(suite{name: name, depth: len(m[1]), failed: len(n.list)})
			case mark == "✔" && own == nil:
				n.pass(around.under(name))
			case mark == "✖":
				name = around.under(name)
				if own != nil && len(n.list) > own.failed || m[5] != "" {
					name = "" // which is not noted
				}
				depth = len(m[1])
				return n.begin(name, nodeText)
			}
			n.seen = n.seen || mark != "▶"
			return true
		}},
		{nodePlace, func([]string) bool {
			n.close()
			return n.again
		}},
		{nil, func(m []string) bool {
			if blank := strings.Trim(m[0], " ") == ""; !blank && indent(m[0]) <= depth {
				return n.ends(m)
			}
			return n.inside(m)
		}},
	}
	return n
}

// nodeTotal counts one of node:test's numbers, behind "ℹ" in its spec reporter and "#" in its TAP, if a line is
// one. That of tests comes first; without it others may be missing.
func (t *tally) nodeTotal(s string) bool {
	m := nodeTotal.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	all := t.hasCounts || m[1] == "tests"
	if t.seen = true; m[1] != "tests" {
		t.summary(m[2] + " " + m[1])
	}
	t.hasCounts = all
	return true
}
