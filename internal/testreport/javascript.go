package testreport

import (
	"strings"
)

const (
	deeper    = `^(?:\s*|    .*)$`  // a line of a failure's text, for Jest and Playwright
	nodeStack = `^\s*at .*:\d+\)?$` // of a stack, for Jest, Mocha and bun
	nodeTotal = `^[ℹ#] (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$`
)

// jest reads Jest: names and texts from the blocks that begin with "●", or, where the output stops before,
// names from the tree of --verbose. A test is "file › suite › test".
func jest(j *ruled) []rule {
	file, console := "", false // console: within what the tests printed
	return []rule{
		{`^ ?(FAIL|PASS) {1,2}(?:(\S+) )?(\S+\.\w+)(?: \([0-9.]+ m?s\))?$`, func(m []string) bool {
			j.close()
			j.seen, file, console = true, m[3], false
			return true
		}},
		{`^  ● (.*)$`, func(m []string) bool {
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
			return j.begin(title, upTo(nodeStack))
		}},
		{deeper, func(m []string) bool { return j.inside(m) || console }},
		{"", j.ends},
		{`^Tests: +(\d+ \w+.*), \d+ total$`, func(m []string) bool {
			file = ""
			return j.summary(m[1])
		}},
		{`^ +✕ (.*)$`, func(m []string) bool { return j.mark(m[1], "") }},
	}
}

// vitest reads Vitest: names and texts from the blocks that begin with FAIL, or, where the output stops
// before, those marked × in the tree. A test is "file > suite > test".
func vitest(v *ruled) []rule {
	marked := "" // the last of the tree, whose reason may follow
	return []rule{
		{`^ FAIL  (.+)$`, func(m []string) bool {
			title := m[1]
			if suite := form(`^(.+?) \[ .+ \]$`).FindStringSubmatch(title); suite != nil {
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
		{`^ +Tests  (\d+ \w+.*?)(?: \(\d+\))?$`, v.numbers},
		{`^⎯⎯⎯`, func([]string) bool {
			v.close()
			v.seen, marked = true, ""
			return true
		}},
		{"", v.inside},
		{`^ +× (.+)$`, func(m []string) bool {
			marked = m[1]
			return v.mark(marked, "")
		}},
		{`^ *→ (.*)$`, func(m []string) bool { return marked != "" && v.mark(marked, m[1]) }},
		{"", func([]string) bool {
			marked = ""
			return false
		}},
	}
}

// tsc reads the TypeScript compiler. The errors of one number in a file are one failure, "file TS2322": lines move.
func tsc(t *ruled) []rule {
	// "a.ts(1,7): error TS2322: …" or, for people, "a.ts:1:7 - error TS2322: …".
	return []rule{{`^(\S.*?)(?:\(\d+,\d+\): |:\d+:\d+ - )error (TS\d+): (.+)$`, func(m []string) bool { return t.note(m[1]+" "+m[2], m[3]) }}}
}

// node reads node:test's spec reporter; its TAP is TAP. A test is "suite > test". A suite that fails with
// its tests is left out, as node leaves it out of its numbers.
func node(n *ruled) []rule {
	var around suites
	depth := 0 // of the open failure
	return []rule{
		{`^ℹ .*`, func(m []string) bool {
			n.close()
			return n.nodeTotal(m[0])
		}},
		{`^✖ failing tests:$`, func([]string) bool {
			n.close()
			n.seen, n.again, around = true, true, nil
			return true
		}},
		{`^( *)([▶✖✔﹣]) (.*?)( \([0-9]+\.[0-9]+ms\)(?: # (?i:(todo|skip)|\w+).*)?)?$`, func(m []string) bool {
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
				return n.begin(name, upTo(`^\s*at `))
			}
			n.seen = n.seen || mark != "▶"
			return true
		}},
		{`^test at `, func([]string) bool {
			n.close()
			return n.again
		}},
		{"", func(m []string) bool {
			if blank := strings.Trim(m[0], " ") == ""; !blank && indent(m[0]) <= depth {
				return n.ends(m)
			}
			return n.inside(m)
		}},
	}
}

// nodeTotal counts one of node:test's numbers, behind "ℹ" in its spec reporter and "#" in its TAP, if a line is
// one. That of tests comes first; without it others may be missing.
func (t *tally) nodeTotal(s string) bool {
	m := form(nodeTotal).FindStringSubmatch(s)
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
