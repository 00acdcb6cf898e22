package policy

import (
	"regexp"
	"strings"
)

var (
	jestFile  = regexp.MustCompile(`^ ?(FAIL|PASS) {1,2}(?:(\S+) )?(\S+\.\w+)(?: \([0-9.]+ m?s\))?$`)
	jestTests = regexp.MustCompile(`^Tests: +(\d+ \w+.*), \d+ total$`)
)

// jestReader reads Jest: the names and texts from the blocks that begin with "●",
// and, where the output stops before them, the names from the tree of --verbose. A
// test is called "file › suite › test".
type jestReader struct {
	failures
	seen, told              bool
	passed, failed, skipped int

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
	j.seen, j.told = true, true
	j.passed += totalOf(m[1], "passed")
	j.failed += totalOf(m[1], "failed")
	j.skipped += totalOf(m[1], "skipped", "todo")
	j.file = ""
	return true
}

func (j *jestReader) report() TestReport {
	j.close()
	if !j.seen {
		return TestReport{}
	}
	for _, name := range j.tree {
		if !j.hasEnding(" › " + name) {
			j.add(name, "")
		}
	}
	if !j.told {
		return j.counted("jest", NotTold, NotTold, NotTold)
	}
	return j.counted("jest", j.passed, j.failed, j.skipped)
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
