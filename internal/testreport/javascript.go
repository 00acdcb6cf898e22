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
