package policy

import (
	"regexp"
	"strings"
)

var (
	vitestFail   = regexp.MustCompile(`^ FAIL  (.+)$`)
	vitestSuite  = regexp.MustCompile(`^(.+?) \[ .+ \]$`)
	vitestTests  = regexp.MustCompile(`^ +Tests  (\d+ \w+.*?)(?: \(\d+\))?$`)
	vitestMarked = regexp.MustCompile(`^ +× (.+)$`)
)

// vitestReader reads Vitest: the names and texts from the blocks that begin with
// FAIL, and, where the output stops before them, those marked × in the tree. A test
// is called "file > suite > test".
type vitestReader struct {
	failures
	seen, told              bool
	passed, failed, skipped int

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
		v.seen, v.told = true, true
		v.passed += totalOf(m[1], "passed")
		v.failed += totalOf(m[1], "failed")
		v.skipped += totalOf(m[1], "skipped", "todo")
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

func (v *vitestReader) report() TestReport {
	v.close()
	if !v.seen {
		return TestReport{}
	}
	for _, f := range v.tree.list {
		if !v.hasEnding(" > " + f.Name) {
			v.add(f.Name, f.Text)
		}
	}
	if !v.told {
		return v.counted("vitest", NotTold, NotTold, NotTold)
	}
	return v.counted("vitest", v.passed, v.failed, v.skipped)
}
