package testreport

import (
	"regexp"
	"strings"
)

var (
	jestFile  = regexp.MustCompile(`^ ?(FAIL|PASS) {1,2}(?:(\S+) )?(\S+\.\w+)(?: \([0-9.]+ m?s\))?$`)
	jestTests = regexp.MustCompile(`^Tests: +(\d+ \w+.*), \d+ total$`)

	vitestFail   = regexp.MustCompile(`^ FAIL  (.+)$`)
	vitestSuite  = regexp.MustCompile(`^(.+?) \[ .+ \]$`)
	vitestTests  = regexp.MustCompile(`^ +Tests  (\d+ \w+.*?)(?: \(\d+\))?$`)
	vitestMarked = regexp.MustCompile(`^ +× (.+)$`)

	// "a.ts(1,7): error TS2322: …" or, for people, "a.ts:1:7 - error TS2322: …".
	tscError = regexp.MustCompile(`^(\S.*?)(?:\(\d+,\d+\): |:\d+:\d+ - )error (TS\d+): (.+)$`)
)

// jestReader reads Jest: names and texts from the blocks that begin with "●", or, where the output stops
// before, names from the tree of --verbose. A test is "file › suite › test".
type jestReader struct {
	tally
	file    string
	console bool // within what the tests printed
}

func (j *jestReader) line(s string) bool {
	if m := jestFile.FindStringSubmatch(s); m != nil {
		j.close()
		j.seen, j.file, j.console = true, m[3], false
		return true
	}
	if title, ok := strings.CutPrefix(s, "  ● "); ok {
		j.close()
		if title == "Console" {
			j.console = true
			return true
		}
		j.console = false
		j.begin(j.qualified(title), jestText)
		return true
	}
	switch {
	case j.within != nil && (strings.TrimSpace(s) == "" || strings.HasPrefix(s, "    ")):
		j.take(s)
		return true
	case j.console && (strings.TrimSpace(s) == "" || strings.HasPrefix(s, "    ")):
		return true
	case strings.HasPrefix(s, "Tests:"):
		return j.totals(s)
	}
	j.close()
	trimmed := strings.TrimLeft(s, " ")
	if name, ok := strings.CutPrefix(trimmed, "✕ "); ok && len(trimmed) < len(s) {
		j.seen = true
		j.tree.add(name, "")
		return true
	}
	return false
}

// qualified is a block's title under its file.
func (j *jestReader) qualified(title string) string {
	if title == "Test suite failed to run" {
		return strings.TrimSpace(j.file + " [suite failed to run]")
	}
	if j.file != "" {
		return j.file + " › " + title
	}
	return title
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

// totals is the line "Tests: 5 failed, 1 skipped, 2 passed, 8 total".
func (j *jestReader) totals(s string) bool {
	m := jestTests.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	j.close()
	j.summary(m[1])
	j.file = ""
	return true
}

// vitestReader reads Vitest: names and texts from the blocks that begin with FAIL, or, where the output stops
// before, those marked × in the tree. A test is "file > suite > test".
type vitestReader struct {
	tally
	marked string // the last of the tree, whose reason may follow
}

func (v *vitestReader) line(s string) bool {
	if m := vitestFail.FindStringSubmatch(s); m != nil && v.failing(m[1]) {
		return true
	}
	if m := vitestTests.FindStringSubmatch(s); m != nil {
		v.close()
		v.summary(m[1])
		return true
	}
	if v.within != nil {
		if strings.HasPrefix(s, "⎯⎯⎯") {
			v.close()
		} else {
			v.take(s)
		}
		return true
	}
	if m := vitestMarked.FindStringSubmatch(s); m != nil {
		v.seen, v.marked = true, m[1]
		v.tree.add(m[1], "")
		return true
	}
	if reason, ok := strings.CutPrefix(strings.TrimLeft(s, " "), "→ "); ok && v.marked != "" {
		v.tree.add(v.marked, reason)
		return true
	}
	v.marked = ""
	if strings.HasPrefix(s, "⎯⎯⎯") {
		v.seen = true
		return true
	}
	return false
}

// failing is a line that begins with FAIL. Jest's have a file and nothing else.
func (v *vitestReader) failing(title string) bool {
	suite := vitestSuite.FindStringSubmatch(title)
	if suite == nil && !strings.Contains(title, " > ") {
		return false
	}
	if suite != nil {
		title = suite[1] + " [suite failed to run]"
	}
	if v.within == nil || v.within.lines > 0 {
		v.begin(title, (*block).text)
	} else if len(v.names) < maxFailing {
		v.names = append(v.names, title)
	}
	return true
}

// tscReader reads the errors of the TypeScript compiler. Those of one number in one
// file are one failure, called "file TS2322": the lines move.
type tscReader struct{ tally }

func (t *tscReader) line(s string) bool {
	if !strings.Contains(s, "error TS") {
		return false
	}
	m := tscError.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	t.seen = true
	t.add(m[1]+" "+m[2], m[3])
	return true
}
