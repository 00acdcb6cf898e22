package testreport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

const (
	pytestPlace     = `^(\S+\.py):\d+: ?`
	pytestAssertion = `^(?:E$|E  |>  )` // a traceback's line with the failure
)

type pytestTraces struct {
	all     []*pytestTrace
	current *pytestTrace // the traceback that the next lines belong to
}

type pytestTrace struct {
	title string // "test_add", "TestShapes.test_lists", "tests/test_broken.py"
	setup bool   // whether the error happened before or after the test, or during collection
	file  string // the test's file, from the traceback's first location
	text  block
	used  bool
}

// pytest reads pytest. Names come from the short summary; without it, from the lines of -v; without these, from
// tracebacks. Texts come from tracebacks, or from the summary if there are none.
func pytest(p *ruled) []rule {
	section := "" // FAILURES, ERRORS or another heading
	var traces pytestTraces
	var states failures // from -v lines
	p.finish = func() {
		if len(p.list) == 0 {
			traces.settle(&p.failures, states.list)
		}
	}
	return []rule{
		{`^(?:=+ )?(?:(?:no tests ran|\d+ [a-z]+)(?:, )?)+ in [0-9.]+s(?: \([0-9:]+\))?(?: =+)?$`, func(m []string) bool {
			section, traces.current = "", nil
			return p.summary(m[0])
		}},
		{`^={3,} (.+?) ={3,}$`, func(m []string) bool {
			section, traces.current = m[1], nil
			switch m[1] {
			case "test session starts", "FAILURES", "ERRORS", "short test summary info":
				p.seen = true
			}
			return p.seen
		}},
		{"", func(m []string) bool {
			switch section {
			case "FAILURES", "ERRORS":
				more := traces.line(m[0])
				if !more {
					section = ""
				}
				return true
			}
			return false
		}},
		{`^(FAILED|ERROR) (.*)$`, func(m []string) bool {
			name, reason := pytestName(m[2])
			if !pytestFailed(name, section) {
				return false // other programs also print such lines
			}
			traces.current = nil
			return p.note(name, cmp.Or(traces.of(name, m[1] == "ERROR"), reason))
		}},
		{`^INTERNALERROR> (.*)$`, func(m []string) bool { return p.note("pytest [internal error]", m[1]) }},
		{`^ImportError while loading conftest .*`, func(m []string) bool { return p.note("conftest.py [import failed]", m[0]) }},
		{`^(?:\[gw\d+\] \[ *\d+%\] (FAILED|ERROR|PASSED) (\S+?::.+?)|(\S+?::.+) (FAILED|ERROR|PASSED)(?: +\[ *\d+%\])?) *$`, func(m []string) bool {
			p.seen = true
			state, name := m[1]+m[4], m[2]+m[3] // pytest-xdist prints the state first
			if state == "PASSED" {
				p.pass(name)
			} else {
				states.add(name, "")
			}
			return true
		}},
	}
}

func pytestFailed(name, section string) bool {
	file, _, ofTest := strings.Cut(name, "::")
	switch {
	case strings.Contains(file, " "):
		return false
	case ofTest:
		return true
	}
	return section == "short test summary info" && strings.HasSuffix(file, ".py")
}

// pytestName separates a test's name and the reason. Parameters and reasons may contain " - ".
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

// line handles a line of the section FAILURES or ERRORS. It returns false if a traceback is longer than maxBlockLines,
// because the section's end is probably missing.
func (p *pytestTraces) line(s string) bool {
	if m := form(`^_{3,} (?:(ERROR at setup of |ERROR at teardown of |ERROR collecting ))?(.+?) _{3,}$`).FindStringSubmatch(s); m != nil {
		p.current = nil
		if len(p.all) < maxFailing {
			p.current = &pytestTrace{title: m[2], setup: m[1] != ""}
			p.all = append(p.all, p.current)
		}
		return true
	}
	b := p.current
	if b == nil {
		return true
	}
	place := form(pytestPlace).FindStringSubmatch(s)
	if place != nil {
		b.file = cmp.Or(b.file, place[1])
	}
	kept := place != nil || form(pytestAssertion).MatchString(s)
	if kept {
		if strings.HasPrefix(s, "E   ") {
			s = "E   " + strings.TrimPrefix(s[len("E   "):], "    ")
		}
		b.text.add(s)
	} else {
		b.text.lines++
	}
	if b.text.lines >= maxBlockLines {
		p.current = nil
	}
	return p.current != nil
}

// of returns the traceback of a test in the summary. If several tracebacks have its name, it prefers the one with the
// test's file, and otherwise takes the first.
func (p *pytestTraces) of(name string, setup bool) string {
	file, test, ofTest := strings.Cut(name, "::")
	title := strings.ReplaceAll(test, "::", ".")
	if !ofTest {
		title = file
	}
	var same []*pytestTrace
	for _, b := range p.all {
		if b.used {
			continue
		}
		if b.setup == setup && b.title == title {
			same = append(same, b)
		}
	}
	if len(same) == 0 {
		return ""
	}
	found := same[0]
	if i := slices.IndexFunc(same, func(b *pytestTrace) bool { return b.file == file }); i >= 0 {
		found = same[i]
	}
	found.used = true
	return found.text.text()
}

func (p *pytestTraces) settle(f *failures, states []policy.Failing) {
	for _, t := range states {
		f.add(t.Name, cmp.Or(p.of(t.Name, false), p.of(t.Name, true)))
	}
	for _, b := range p.all {
		name := b.title
		if b.file != "" && !strings.HasSuffix(name, ".py") {
			name = b.file + "::" + strings.Replace(name, ".", "::", 1)
		}
		if !b.used {
			f.add(name, b.text.text())
		}
	}
}

// unittest reads Python's unittest, also from Django. A test's name is "module.Class.test"; a subtest's parameters follow
// it.
func unittest(u *ruled) []rule {
	after, dashed, ran, outside := false, false, NotCounted, 0 // whether the last line was all "="; whether a failure's text has begun; the number of tests, until the result line; failures outside tests
	return []rule{
		{`^={70}$`, func([]string) bool {
			u.close()
			after = true
			return true
		}},
		{`^(FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([\w.]+)\)(.*)$`, func(m []string) bool {
			name := strings.TrimSuffix(m[3], "."+m[2]) + "." + m[2] + m[4]
			if strings.HasPrefix(m[3], "unittest.loader.") {
				name = m[2] + " [import failed]"
			}
			dashed = false
			if !after {
				return false
			}
			if form(`(?:Class|Module)$`).MatchString(m[2]) { // setUpClass
				outside++
			}
			return u.begin(name, unittestText)
		}},
		{`^-{70}$`, func([]string) bool {
			if dashed || u.within == nil {
				return u.ends(nil)
			}
			dashed, u.within = true, &block{} // drops the test's description
			return true
		}},
		{`^Ran (\d+) tests? in [0-9.]+s$`, func(m []string) bool {
			u.close()
			ran, _ = number(m[1])
			return true
		}},
		{`^(?:OK|PASSED|FAILED|NO TESTS RAN)(?: \((.*)\))?$`, func(m []string) bool {
			if ran == NotCounted {
				return false
			}
			u.summary(fmt.Sprintf("%d tests, %s", ran+outside, m[1]))
			ran, outside = NotCounted, 0
			return true
		}},
		{"", func(m []string) bool {
			after = false
			return u.inside(m)
		}},
	}
}

func unittestText(b *block) string {
	var kept []string
	frames := false
	for l := range strings.SplitSeq(b.text(), "\n") {
		switch {
		case l == "Traceback (most recent call last):":
			frames = true
		case !strings.HasPrefix(l, "  "):
			frames = false
		}
		if !frames {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}
