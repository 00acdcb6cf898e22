package testreport

import (
	"regexp"
	"strings"
)

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
			ran = numbers(m)[0]
			return true
		}},
		{unittestEnd, func(m []string) bool {
			if ran == NotCounted {
				return false
			}
			n := labels(m[1])
			failed, skipped := n["failures"]+n["errors"]+n["unexpected successes"], n["skipped"]+n["expected failures"]
			u.count(max(0, ran+outside-failed-skipped), failed, skipped)
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
