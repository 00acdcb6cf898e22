package testreport

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	pytestTitle    = regexp.MustCompile(`^_{3,} (?:(ERROR at setup of |ERROR at teardown of |ERROR collecting ))?(.+?) _{3,}$`)
	pytestSection  = regexp.MustCompile(`^={3,} (.+?) ={3,}$`)
	pytestTotals   = regexp.MustCompile(`^(?:=+ )?(?:(?:no tests ran|\d+ [a-z]+)(?:, )?)+ in [0-9.]+s(?: \([0-9:]+\))?(?: =+)?$`)
	pytestPlace    = regexp.MustCompile(`^(\S+\.py):\d+: ?`)
	pytestListed   = regexp.MustCompile(`^(FAILED|ERROR) (.*)$`)
	pytestInternal = regexp.MustCompile(`^INTERNALERROR> (.*)$`)
	pytestConftest = regexp.MustCompile(`^ImportError while loading conftest .*`)
	pytestState    = regexp.MustCompile(`^(?:\[gw\d+\] \[ *\d+%\] (FAILED|ERROR|PASSED) (\S+?::.+?)|(\S+?::.+) (FAILED|ERROR|PASSED)(?: +\[ *\d+%\])?) *$`)
)

// pytestReader reads pytest: names from the short summary, else the lines of -v, else the tracebacks' titles;
// texts from the tracebacks, else the summary's reasons.
type pytestReader struct {
	ruled
	section string   // FAILURES, ERRORS or another between two rules
	states  failures // from the lines of -v
	blocks  []*pytestBlock
	current *pytestBlock // of blocks, whose lines follow
}

type pytestBlock struct {
	title string // "test_add", "TestShapes.test_lists", "tests/test_broken.py"
	setup bool   // an error before or after the test, or while collecting
	file  string // the test's, as the traceback's first place has it
	text  block
	used  bool
}

func newPytest() reader {
	p := &pytestReader{ruled: ruled{tally: tally{runner: "pytest"}}}
	p.rules = []rule{
		{pytestTotals, func(m []string) bool {
			p.section, p.current = "", nil
			return p.summary(m[0])
		}},
		{pytestSection, func(m []string) bool {
			p.section, p.current = m[1], nil
			p.seen = p.seen || slices.Contains([]string{"test session starts", "FAILURES", "ERRORS", "short test summary info"}, m[1])
			return p.seen
		}},
		{nil, func(m []string) bool { return (p.section == "FAILURES" || p.section == "ERRORS") && p.traceback(m[0]) }},
		{pytestListed, func(m []string) bool {
			name, reason := pytestName(m[2])
			file, _, ofTest := strings.Cut(name, "::")
			if strings.Contains(file, " ") || !ofTest && !(p.section == "short test summary info" && strings.HasSuffix(file, ".py")) {
				return false // other programs' lines begin like this, too
			}
			p.current = nil
			return p.note(name, cmp.Or(p.traceOf(name, m[1] == "ERROR"), reason))
		}},
		{pytestInternal, func(m []string) bool { return p.note("pytest [internal error]", m[1]) }},
		{pytestConftest, func(m []string) bool { return p.note("conftest.py [import failed]", m[0]) }},
		{pytestState, func(m []string) bool {
			p.seen = true
			if m[1]+m[4] == "PASSED" {
				p.pass(m[2] + m[3])
			} else {
				p.states.add(m[2]+m[3], "")
			}
			return true
		}},
	}
	return p
}

// pytestName cuts the reason off. Both a parameter and a reason may hold " - ".
func pytestName(s string) (name, reason string) {
	name, reason, _ = strings.Cut(s, " - ")
	if open := strings.IndexByte(name, '['); open < 0 || strings.HasSuffix(name, "]") {
		return name, reason
	}
	if i := strings.Index(s, "] - "); i >= 0 {
		return s[:i+1], s[i+len("] - "):]
	}
	if strings.HasSuffix(s, "]") {
		return s, ""
	}
	return name, reason
}

// traceback is a line between the rules of FAILURES or ERRORS.
func (p *pytestReader) traceback(s string) bool {
	if m := pytestTitle.FindStringSubmatch(s); m != nil {
		b := &pytestBlock{title: m[2], setup: m[1] != ""}
		p.current = nil
		if len(p.blocks) < maxFailing {
			p.blocks = append(p.blocks, b)
			p.current = b
		}
		return true
	}
	b := p.current
	if b == nil {
		return true
	}
	if m := pytestPlace.FindStringSubmatch(s); m != nil && b.file == "" {
		b.file = m[1]
	}
	switch {
	case strings.HasPrefix(s, "E  "), s == "E", strings.HasPrefix(s, ">  "), pytestPlace.MatchString(s):
		if strings.HasPrefix(s, "E   ") {
			s = "E   " + strings.TrimPrefix(s[len("E   "):], "    ")
		}
		b.text.add(s)
	default:
		b.text.lines++
	}
	if b.text.lines >= maxBlockLines {
		p.current, p.section = nil, ""
	}
	return true
}

// traceOf is the traceback of a test that the summary names; of equal names the file decides, else the order.
func (p *pytestReader) traceOf(name string, setup bool) string {
	file, test, ofTest := strings.Cut(name, "::")
	title := strings.ReplaceAll(test, "::", ".")
	if !ofTest {
		title = file
	}
	var found *pytestBlock
	for _, b := range p.blocks {
		if !b.used && b.setup == setup && b.title == title && (found == nil || b.file == file && found.file != file) {
			found = b
		}
	}
	if found == nil {
		return ""
	}
	found.used = true
	return found.text.text()
}

func (p *pytestReader) report() Report {
	if len(p.list) > 0 {
		return p.tally.report()
	}
	for _, f := range p.states.list {
		p.add(f.Name, cmp.Or(p.traceOf(f.Name, false), p.traceOf(f.Name, true)))
	}
	for _, b := range p.blocks {
		name := b.title
		if b.file != "" && !strings.HasSuffix(name, ".py") {
			name = b.file + "::" + strings.Replace(name, ".", "::", 1)
		}
		if !b.used {
			p.add(name, b.text.text())
		}
	}
	return p.tally.report()
}

var (
	unittestStart  = regexp.MustCompile(`^={70}$|^Ran \d+ tests? in `)
	unittestRule   = regexp.MustCompile(`^={70}$`)
	unittestDashes = regexp.MustCompile(`^-{70}$`)
	unittestFailed = regexp.MustCompile(`^(FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([\w.]+)\)(.*)$`)
	unittestRan    = regexp.MustCompile(`^Ran (\d+) tests? in [0-9.]+s$`)
	unittestEnd    = regexp.MustCompile(`^(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$`)
)

// newUnittest reads Python's unittest, also as Django runs it. A test is "module.Class.test", whichever version
// prints it, with the parameters of a subtest behind it.
func newUnittest() reader {
	u := &ruled{tally: tally{runner: "unittest"}, starts: unittestStart}
	after, dashed, ran, outside := false, false, NotCounted, 0 // after a rule; in a failure's text; tests, until the result, and what failed beside them
	u.rules = []rule{
		{unittestRule, func([]string) bool {
			u.close()
			after = true
			return true
		}},
		{unittestFailed, func(m []string) bool {
			name := strings.TrimSuffix(m[3], "."+m[2]) + "." + m[2] + m[4]
			if strings.HasPrefix(m[3], "unittest.loader.") {
				name = m[2] + " [import failed]"
			}
			if dashed = false; !after {
				return false
			}
			if strings.HasSuffix(m[2], "Class") || strings.HasSuffix(m[2], "Module") { // setUpClass
				outside++
			}
			return u.begin(name, unittestText)
		}},
		{unittestDashes, func([]string) bool {
			if dashed || u.within == nil {
				return u.ends(nil)
			}
			dashed, u.within = true, &block{} // without the test's description
			return true
		}},
		{unittestRan, func(m []string) bool {
			u.close()
			ran, _ = number(m[1])
			return true
		}},
		{unittestEnd, func(m []string) bool {
			if ran == NotCounted {
				return false
			}
			u.summary(fmt.Sprintf("%d tests, %s", ran+outside, m[1]))
			ran, outside = NotCounted, 0
			return true
		}},
		{nil, func(m []string) bool {
			after = false
			return u.inside(m)
		}},
	}
	return u
}

// unittestText leaves the frames of tracebacks out.
func unittestText(b *block) string {
	var kept []string
	frames := false
	for l := range strings.SplitSeq(b.text(), "\n") {
		frames = frames && strings.HasPrefix(l, "  ") || l == "Traceback (most recent call last):"
		if !frames {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}
