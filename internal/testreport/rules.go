package testreport

import (
	"regexp"
	"sync"
)

var runners = []struct {
	name   string
	starts string // matches the first line that the reader reads; "" for any line
	rules  func(*ruled) []rule
}{
	{"go", "", golang},
	{"pytest", "", pytest},
	{"cargo", "", cargo},
	{"jest", "", jest},
	{"vitest", "", vitest},
	{"unittest", `^={70}$|^Ran \d+ tests? in `, unittest},
	{"mocha", `^  \d+ passing|^ Exception during run: `, mocha},
	{"tap", "", tap},
}

// tally holds the failing tests, the runner's counts, and the current failure.
type tally struct {
	runner string
	failures
	tree                    failures // failures from the tree of tests, whose names lack their suites
	seen                    bool     // whether this runner's output was found
	hasCounts               bool     // whether the runner printed its counts
	okay                    bool     // whether something passed, even if it was not counted
	passed, failed, skipped int

	last int // the last number in a numbered list

	within *block   // the current failure's lines; nil between failures
	names  []string // the current failure's names; equal failures may share a text
	textOf func(*block) string
}

// ruled reads one runner's output line by line, without colours and line ends. Each line goes to the first rule that
// accepts it.
type ruled struct {
	tally
	starts *regexp.Regexp
	begun  bool
	rules  []rule
	forms  []*regexp.Regexp // the rules' compiled forms
	finish func()           // called at the output's end; may be nil
}

// rule handles the lines that match form; "" matches any line. take gets the form's groups, and returns false to pass the
// line to the next rule.
type rule struct {
	form string
	take func(m []string) bool
}

// line reports whether the line belongs to this runner. Such a line is not passed to other readers.
func (r *ruled) line(s string) bool {
	if !r.begun {
		r.begun = r.starts.MatchString(s)
	}
	if !r.begun {
		return false
	}
	whole := []string{s}
	for i, one := range r.rules {
		m := whole
		if one.form != "" {
			m = r.forms[i].FindStringSubmatch(s)
		}
		if m != nil && one.take(m) {
			return true
		}
	}
	return false
}

func (r *ruled) report() Report {
	r.close()
	if r.finish != nil {
		r.finish()
	}
	return r.tally.report()
}

var forms sync.Map // compiled patterns by pattern

func form(pattern string) *regexp.Regexp {
	known, ok := forms.Load(pattern)
	if !ok {
		known, _ = forms.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	return known.(*regexp.Regexp)
}

// Actions for rules:

// begin opens a failure; textOf extracts its text from the next lines.
func (t *tally) begin(name string, textOf func(*block) string) bool {
	t.close()
	t.seen, t.within, t.names, t.textOf = true, &block{}, []string{name}, textOf
	return true
}

// note records a failure that is complete in one line. mark records a failure from the tree of tests, whose name lacks its
// suites.
func (t *tally) note(name, text string) bool {
	t.seen = true
	t.add(name, text)
	return true
}

// next reports whether a number continues a numbered list of failures. A failure's text may contain similar lines.
func (t *tally) next(s string) bool {
	n, ok := number(s)
	if !ok || n != t.last+1 {
		return false
	}
	t.last = n
	return true
}

func (t *tally) mark(name, text string) bool {
	t.seen = true
	t.tree.add(name, text)
	return true
}

// inside adds the line to the open failure. ends closes the open failure and passes the line to the next rule.
func (t *tally) inside(m []string) bool {
	if t.within == nil {
		return false
	}
	if more := t.within.add(m[0]); !more {
		t.close()
	}
	return true
}

func (t *tally) ends([]string) bool {
	t.close()
	return false
}

func (t *tally) close() {
	if t.within != nil {
		text := t.textOf(t.within)
		for _, name := range t.names {
			t.add(name, text)
		}
	}
	t.within = nil
}

// numbers closes the open failure and adds the counts in the last group, or in the line if there are no groups.
func (t *tally) numbers(m []string) bool {
	t.close()
	return t.summary(m[len(m)-1])
}

// summary adds the counts of a line such as "5 failed, 1 skipped, 2 passed" or "Tests run: 3, Failures: 1". If the line
// has a total but no number of passed tests, all other tests passed.
func (t *tally) summary(s string) bool {
	passed, failed, skipped := counted(s)
	return t.count(passed, failed, skipped)
}

func (t *tally) count(passed, failed, skipped int) bool {
	t.seen, t.hasCounts = true, true
	t.passed += passed
	t.failed += failed
	t.skipped += skipped
	return true
}

func (t *tally) tests() int { return t.passed + t.failed + t.skipped }

func (t *tally) report() Report {
	t.close()
	for _, f := range t.tree.list {
		if !t.explain(f.Name, f.Text) {
			t.add(f.Name, f.Text)
		}
	}
	if !t.seen {
		return Report{}
	}
	passed, skipped := t.passed, t.skipped
	if !t.hasCounts {
		passed, skipped = NotCounted, NotCounted
	}
	if len(t.ran) > maxRan {
		t.ran = nil
	}
	return Report{
		Runner: t.runner, Passed: passed, Failed: max(t.failed, len(t.list)), Skipped: skipped, Passing: t.okay, Failures: t.list, Ran: t.ran,
	}
}
