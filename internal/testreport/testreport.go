package testreport

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// Bounds of what is read. A change that breaks more tests than maxFailing is told by the first.
const (
	maxFailing     = 200
	maxRan         = 5000     // names of tests that passed; with more than that none are told
	maxFailureText = 2000     // bytes of one assertion's text
	maxFailureName = 300      // bytes
	maxTestLine    = 64 << 10 // bytes read of one line
	maxXML         = 1 << 20  // bytes of JUnit's XML, which may be one line, and of a line that is read at all
)

// NotCounted stands for a number that the test runner did not print.
const NotCounted = -1

// Report is what test runners say. Without a known one Runner is empty and every number NotCounted.
type Report struct {
	// Runner names the runners whose output was seen, in the order of their names: cargo, go, jest, junit (XML), mocha,
	// pytest, tap, unittest, vitest, and summary, of which only the totals were read.
	Runner string
	// Passed, Failed and Skipped are as the runners count, or NotCounted. What failed before its tests ran,
	// such as a package that does not build, is one failure. Failed is never less than the failures listed.
	Passed, Failed, Skipped int
	// Passing says that something passed, also where the tests of it are not counted.
	Passing  bool
	Ran      []string         // the tests that passed, where the runner names them
	Failures []policy.Failing // the failing tests, each name once, in the order of the output
}

// Reader reads the output of a verify command as it is written, of whatever length. It may hold that of several
// runners and programs, begin in the middle and stop anywhere; what the readers do not know is left out. Make it with
// NewReader; it is for one goroutine.
type Reader struct {
	readers []*ruled
	line    []byte // that is not complete
	xml     junitXML
	totals  summaries
	lanes   lanes
	depth   int // how many labels were taken off its lines
}

// NewReader returns a reader that has read nothing.
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

// Write implements io.Writer. It never fails.
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

// end reads a line that is complete. What a terminal takes for several lines is several.
func (r *Reader) end() {
	plain := render.Clean(strings.TrimSuffix(string(r.line), "\r"))
	r.line = r.line[:0]
	for line := range strings.SplitSeq(plain, "\n") {
		r.read(line)
	}
}

// read takes a line without its end.
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

// Report is what the output said. Nothing may be written afterwards.
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

// Read reads an output that is there as a whole.
func Read(output string) Report {
	r := NewReader()
	_, _ = r.Write([]byte(output)) // never fails
	return r.Report()
}

// sameRun reports whether two reports are of one run: a runner that writes JUnit
// XML to standard output often prints its own report as well.
func (t Report) sameRun(other Report) bool {
	named := min(len(t.Failures), len(other.Failures)) > 0
	if named && len(t.Failures) != len(other.Failures) {
		return false
	}
	return t.numbers() == other.numbers()
}

func (t Report) numbers() numbers { return numbers{t.Passed, t.Failed, t.Skipped} }

// adds reports whether totals tell of tests beside those that are read otherwise.
func (t Report) adds(all []Report) bool {
	if t.Runner == "" {
		return false
	}
	if len(all) == 0 {
		return true
	}
	told := slices.ContainsFunc(all, t.sameRun) || t.sameRun(together(all))
	return !told && t.numbers() != numbers{}
}

// somethingPassed reports whether the runner counts a passed test, or says that something passed.
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

// failures collects failing tests, each name once, and the names of those that passed. The zero value is empty.
type failures struct {
	list []policy.Failing
	ran  []string
}

// pass notes a test that passed.
func (f *failures) pass(name string) {
	name = stableName(name)
	if name == "" || len(f.ran) > maxRan {
		return
	}
	f.ran = append(f.ran, name)
}

// add notes a failing test. Where it is known already, its first text stays.
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

// explain gives a text to the first test without one that is called so, behind whatever suites, if there is
// one.
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

// called reports whether a full name is this name, or this name behind suites.
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

// suite is a test whose subtests follow.
type suite struct {
	name   string
	depth  int // its indentation
	failed int // failures known when it began
	// The others are TAP's: tests known when it began, whether a brace ends it, and whether it failed itself.
	tests         int
	braces, notOK bool
}

// suites are those around a line, the outermost first, each deeper than the one before it.
type suites []suite

// enter begins a suite; within a hundred there are no further ones.
func (s *suites) enter(n suite) {
	if len(*s) < 100 {
		*s = append(*s, n)
	}
}

// leave ends the suites that lie as deep as a line or deeper.
func (s *suites) leave(depth int) {
	for n := len(*s); n > 0 && (*s)[n-1].depth >= depth; n-- {
		*s = (*s)[:n-1]
	}
}

// at is the suite of a name at a depth; nil where none is open.
func (s suites) at(depth int, name string) *suite {
	i := slices.IndexFunc(s, func(s suite) bool { return s.depth == depth && s.name == name })
	if i < 0 {
		return nil
	}
	return &s[i]
}

// under is a test's name behind those of its suites.
func (s suites) under(name string) string {
	for _, around := range slices.Backward(s) {
		name = around.name + " > " + name
	}
	return name
}
