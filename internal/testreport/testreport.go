package testreport

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// Limits of a report. Failing tests after maxFailing are only counted.
const (
	maxFailing     = 200
	maxRan         = 5000     // names of passed tests; if there are more, none is listed
	maxFailureText = 2000     // bytes per failure
	maxFailureName = 300      // bytes
	maxTestLine    = 64 << 10 // bytes per line
	maxXML         = 1 << 20  // bytes of JUnit XML, which may be one line
)

// NotCounted is a number that the runner did not print.
const NotCounted = -1

// Report is the result of test runners. Without a known runner, Runner is empty and all numbers are NotCounted.
type Report struct {
	// Runner names the runners, sorted: cargo, go, jest, junit (XML), mocha, pytest, tap, unittest, vitest, and
	// summary for runners with only totals.
	Runner string
	// The runners' counts, or NotCounted. A failure before the tests, such as a build failure, counts as one failed test.
	// Failed is at least len(Failures).
	Passed, Failed, Skipped int
	// Passing means that something passed, even if not counted.
	Passing  bool
	Ran      []string         // the passed tests, if the runner names them
	Failures []policy.Failing // failing tests without duplicates, in output order
}

// Reader reads a verify command's output. The output may mix several runners and programs, and may lack its beginning or
// end. Unknown text is ignored. Create a Reader with NewReader. A Reader is not safe for concurrent use.
type Reader struct {
	readers []*ruled
	line    []byte // the incomplete last line
	xml     junitXML
	totals  summaries
	lanes   lanes
	depth   int // the number of labels that were removed from the lines
}

func NewReader() *Reader {
	r := &Reader{}
	for _, known := range runners {
		one := &ruled{tally: tally{runner: known.name}, starts: form(known.starts)}
		one.rules = known.rules(one)
		for _, its := range one.rules {
			one.forms = append(one.forms, form(its.form))
		}
		r.readers = append(r.readers, one)
	}
	return r
}

func (r *Reader) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		r.line = append(r.line, part[:min(len(part), maxXML-len(r.line))]...)
		if rest = after; ended {
			r.end()
		}
	}
	return len(p), nil
}

// end reads a complete line. It may contain carriage returns, and so be several lines on a terminal.
func (r *Reader) end() {
	plain := render.Clean(strings.TrimSuffix(string(r.line), "\r"))
	r.line = r.line[:0]
	for line := range strings.SplitSeq(plain, "\n") {
		r.read(line)
	}
}

func (r *Reader) read(line string) {
	line, own := r.xml.cut(line)
	if !own {
		return
	}
	line = line[:min(len(line), maxTestLine)]
	for _, one := range r.readers {
		if one.line(line) {
			return
		}
	}
	of := labelled{rest: line}
	if r.depth < maxLaneDepth {
		of = label(line)
	}
	if !r.lanes.known(of) && r.totals.line(line) {
		return
	}
	r.lanes.add(of, r.depth)
}

// Report returns the result. Do not call Write afterwards.
func (r *Reader) Report() Report {
	r.end()
	var all []Report
	for _, one := range r.readers {
		if rep := one.report(); rep.Runner != "" {
			all = append(all, rep)
		}
	}
	all = append(all, r.lanes.reports()...)
	if rest := r.totals.report(); rest.adds(all) {
		all = append(all, rest)
	}
	if rep := readJUnit(r.xml.text.String()); rep.Runner != "" && !slices.ContainsFunc(all, rep.sameRun) {
		all = append(all, rep)
	}
	return together(all)
}

func Read(output string) Report {
	r := NewReader()
	_, _ = r.Write([]byte(output)) // never fails
	return r.Report()
}

// sameRun reports whether two reports describe the same run. A runner may print JUnit XML in addition to its own report.
func (t Report) sameRun(other Report) bool {
	named := min(len(t.Failures), len(other.Failures)) > 0
	if named && len(t.Failures) != len(other.Failures) {
		return false
	}
	return t.numbers() == other.numbers()
}

func (t Report) numbers() numbers { return numbers{t.Passed, t.Failed, t.Skipped} }

// adds reports whether totals count tests that no other report has.
func (t Report) adds(all []Report) bool {
	if t.Runner == "" {
		return false
	}
	if len(all) == 0 {
		return true
	}
	repeated := slices.ContainsFunc(all, t.sameRun) || t.sameRun(together(all))
	return !repeated && t.numbers() != numbers{}
}

func (t Report) somethingPassed() bool { return t.Passing || t.Passed > 0 }

func together(all []Report) Report {
	sum := Report{Passed: NotCounted, Failed: NotCounted, Skipped: NotCounted}
	var names []string
	var found failures
	for _, r := range all {
		names = append(names, r.Runner)
		sum.Passed, sum.Failed, sum.Skipped = plus(sum.Passed, r.Passed), plus(sum.Failed, r.Failed), plus(sum.Skipped, r.Skipped)
		sum.Ran = append(sum.Ran, r.Ran...)
		sum.Passing = sum.Passing || r.somethingPassed()
		for _, f := range r.Failures {
			found.add(f.Name, f.Text)
		}
	}
	slices.Sort(names)
	sum.Runner = strings.Join(slices.Compact(names), ", ")
	sum.Failures = found.list
	return sum
}

func plus(a, b int) int {
	if a == NotCounted {
		return b
	}
	return a + max(0, b)
}

// failures collects failing tests without duplicates, and names of passed tests.
type failures struct {
	list []policy.Failing
	ran  []string
}

func (f *failures) pass(name string) {
	name = stableName(name)
	if name == "" || len(f.ran) > maxRan {
		return
	}
	f.ran = append(f.ran, name)
}

func (f *failures) add(name, text string) {
	name, text = stableName(name), clip(text, maxFailureText)
	known := slices.IndexFunc(f.list, func(t policy.Failing) bool { return t.Name == name })
	switch {
	case name == "":
	case known >= 0:
		f.list[known].Text = cmp.Or(f.list[known].Text, text)
	case len(f.list) < maxFailing:
		f.list = append(f.list, policy.Failing{Name: name, Text: text})
	}
}

// explain gives the text to the first test with this name that has no text, in any suite. It reports whether there is a
// test with this name.
func (f *failures) explain(name, text string) bool {
	name = stableName(name)
	known := false
	for i, t := range f.list {
		if !called(t.Name, name) {
			continue
		}
		known = true
		if t.Text == "" {
			f.list[i].Text = clip(text, maxFailureText)
			break
		}
	}
	return known
}

func called(full, name string) bool {
	before, ok := strings.CutSuffix(full, name)
	if !ok {
		return false
	}
	if before == "" {
		return true
	}
	return strings.HasSuffix(before, " > ") || strings.HasSuffix(before, " › ")
}

type suite struct {
	name   string
	depth  int // indentation
	failed int // the number of failures before the suite
	// For TAP: the number of tests before the suite, whether a brace ends it, and whether the suite itself is "not ok".
	tests         int
	braces, notOK bool
}

// suites are the open suites, outermost first.
type suites []suite

// enter begins a suite, up to a depth of a hundred.
func (s *suites) enter(n suite) {
	if len(*s) < 100 {
		*s = append(*s, n)
	}
}

// leave ends the suites at a depth or deeper.
func (s *suites) leave(depth int) {
	for n := len(*s); n > 0 && (*s)[n-1].depth >= depth; n-- {
		*s = (*s)[:n-1]
	}
}

func (s suites) at(depth int, name string) *suite {
	i := slices.IndexFunc(s, func(s suite) bool { return s.depth == depth && s.name == name })
	if i < 0 {
		return nil
	}
	return &s[i]
}

func (s suites) under(name string) string {
	for _, around := range slices.Backward(s) {
		name = around.name + " > " + name
	}
	return name
}
