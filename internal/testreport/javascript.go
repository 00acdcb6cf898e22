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

// jestReader reads Jest: the names and texts from the blocks that begin with "●",
// and, where the output stops before them, the names from the tree of --verbose. A
// test is called "file › suite › test".
type jestReader struct {
	tally
	file    string
	console bool // within what the tests printed
	within  *block
	name    string
	tree    []string // marked ✕
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
		j.seen, j.console, j.within, j.name = true, false, &block{}, j.qualified(title)
		return true
	}
	switch {
	case j.within != nil && (strings.TrimSpace(s) == "" || strings.HasPrefix(s, "    ")):
		if !j.within.add(s) {
			j.close()
		}
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
		if len(j.tree) < maxFailing {
			j.tree = append(j.tree, stableName(name))
		}
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

func (j *jestReader) close() {
	if j.within != nil {
		j.add(j.name, jestText(j.within.text()))
	}
	j.within = nil
}

// jestText leaves out the stack, which names the runner's own files and where the
// project lies.
func jestText(s string) string {
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
	j.count(totalOf(m[1], "passed"), totalOf(m[1], "failed"), totalOf(m[1], "skipped", "todo"))
	j.file = ""
	return true
}

func (j *jestReader) report() Report {
	j.close()
	for _, name := range j.tree {
		if !j.hasEnding(" › " + name) {
			j.add(name, "")
		}
	}
	return j.result("jest")
}

// hasEnding reports whether a failure's name ends in a test's own name.
func (f *failures) hasEnding(ending string) bool {
	for _, known := range f.list {
		if strings.HasSuffix(known.Name, ending) {
			return true
		}
	}
	return false
}

// vitestReader reads Vitest: the names and texts from the blocks that begin with
// FAIL, and, where the output stops before them, those marked × in the tree. A test
// is called "file > suite > test".
type vitestReader struct {
	tally
	titles []string // of the block; equal errors stand under several
	within *block
	tree   failures // marked ×
	marked string   // the last of them, whose reason may follow
}

func (v *vitestReader) line(s string) bool {
	if m := vitestFail.FindStringSubmatch(s); m != nil && v.begin(m[1]) {
		return true
	}
	if m := vitestTests.FindStringSubmatch(s); m != nil {
		v.close()
		v.count(totalOf(m[1], "passed"), totalOf(m[1], "failed"), totalOf(m[1], "skipped", "todo"))
		return true
	}
	if v.within != nil {
		if strings.HasPrefix(s, "⎯⎯⎯") || !v.within.add(s) {
			v.close()
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

// begin is a line that begins with FAIL. Jest's have a file and nothing else.
func (v *vitestReader) begin(title string) bool {
	suite := vitestSuite.FindStringSubmatch(title)
	if suite == nil && !strings.Contains(title, " > ") {
		return false
	}
	if suite != nil {
		title = suite[1] + " [suite failed to run]"
	}
	if v.within != nil && v.within.lines > 0 {
		v.close()
	}
	v.seen, v.within = true, &block{}
	if len(v.titles) < maxFailing {
		v.titles = append(v.titles, title)
	}
	return true
}

func (v *vitestReader) close() {
	if v.within != nil {
		text := v.within.text()
		for _, t := range v.titles {
			v.add(t, text)
		}
	}
	v.within, v.titles = nil, nil
}

func (v *vitestReader) report() Report {
	v.close()
	for _, f := range v.tree.list {
		if !v.hasEnding(" > " + f.Name) {
			v.add(f.Name, f.Text)
		}
	}
	return v.result("vitest")
}

// tscReader reads the errors of the TypeScript compiler. Those of one number in one
// file are one failure, called "file TS2322": the lines move.
type tscReader struct{ failures }

func (t *tscReader) line(s string) bool {
	if !strings.Contains(s, "error TS") {
		return false
	}
	m := tscError.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	t.add(m[1]+" "+m[2], m[3])
	return true
}

func (t *tscReader) report() Report {
	if len(t.list) == 0 {
		return Report{}
	}
	return t.counted("tsc", NotTold, len(t.list), NotTold)
}
