package testreport

import (
	"regexp"
	"sync"
)

// runners are those that are known, in the order in which they are asked.
var runners = []struct {
	name   string
	starts string // the first line that is looked at more closely; "" for each
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

// tally is what most readers keep: failing tests, the runner's own numbers, the failure that is being read.
type tally struct {
	runner string
	failures
	tree                    failures // whose own names are known, and not their suites
	seen                    bool     // the output is this runner's
	hasCounts               bool     // its numbers were there
	okay                    bool     // something passed, also where the tests of it are not counted
	passed, failed, skipped int

	last int // number of the last failure of a list whose failures are numbered

	within *block   // takes the lines of a failure; nil between them
	names  []string // of that failure; several where equal ones stand together
	textOf func(*block) string
}

// ruled reads the output of one runner, line by line, without colours and line ends: lines of known forms, and blocks of
// failures between them. The first rule that takes a line has it.
type ruled struct {
	tally
	starts *regexp.Regexp
	begun  bool
	rules  []rule
	forms  []*regexp.Regexp // of the rules
	finish func()           // notes what is still to be noted when the output has ended; may be nil
}

// rule takes a line of a form ("": any), whose groups it gets. False leaves the line to those after it.
type rule struct {
	form string
	take func(m []string) bool
}

// line reports whether the line was the runner's own, so that no other looks at it.
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

var forms sync.Map // of compiled patterns

// form is a pattern, compiled once in the process.
func form(pattern string) *regexp.Regexp {
	known, ok := forms.Load(pattern)
	if !ok {
		known, _ = forms.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	return known.(*regexp.Regexp)
}

// What a rule does with its line, which it takes.

// begin opens a failure, whose lines follow; textOf is what of them is its text.
func (t *tally) begin(name string, textOf func(*block) string) bool {
	t.close()
	t.seen, t.within, t.names, t.textOf = true, &block{}, []string{name}, textOf
	return true
}

// note is a failure of this line alone, mark one of the runner's tree, whose suites are not known.
func (t *tally) note(name, text string) bool {
	t.seen = true
	t.add(name, text)
	return true
}

// next reports whether a number is that of the next failure of a list, and no text that looks like one.
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

// inside gives the line to the open failure, if there is one; ends ends that, and leaves the line to others.
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

// numbers ends the open failure and adds the numbers of what the last group matched, or of the line without groups.
func (t *tally) numbers(m []string) bool {
	t.close()
	return t.summary(m[len(m)-1])
}

// summary adds the numbers of a line, such as "5 failed, 1 skipped, 2 passed" or "Tests run: 3, Failures: 1". Where it
// tells how many ran and not how many passed, those that are left did.
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

// tests is the number of tests that were counted.
func (t *tally) tests() int { return t.passed + t.failed + t.skipped }

// report is that of a reader that knows no numbers but the runner's own.
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
