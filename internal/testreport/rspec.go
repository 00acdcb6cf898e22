package testreport

import (
	"path"
	"regexp"
	"strings"
)

var (
	rspecStart   = regexp.MustCompile(`^(?:Failures:|An error occurred |\d+ examples?, )`)
	rspecSection = regexp.MustCompile(`^(Failures|Pending):(?: \(.*\))?$`)
	rspecTitle   = regexp.MustCompile(`^  (\d+)\) (.+?)(?: FIXED)?$`)
	rspecOutside = regexp.MustCompile("^An error occurred (?:while loading (\\S+\\.rb)|in an? `(\\w+\\(:\\w+\\))` hook)\\.$")
	rspecEnd     = regexp.MustCompile(`^Finished in `)
	rspecTotals  = regexp.MustCompile(`^(\d+ examples?, \d+ failures?(?:, \d+ pending)?)(?:, (\d+ errors?) occurred outside of examples)?$`)

	phpunitStart   = regexp.MustCompile(`^PHPUnit \d|^(?:PHP )?(?:Fatal|Parse) error: `)
	phpunitSection = regexp.MustCompile(`^(?:There (?:was|were) )?\d+ (.+):$`)
	phpunitTitle   = regexp.MustCompile(`^(\d+)\) (.+)$`)
	phpunitEnd     = regexp.MustCompile(`^(?:--|FAILURES!|ERRORS!|WARNINGS!|OK, .*)$`)
	phpunitTotals  = regexp.MustCompile(`^OK \(\d+ tests?, \d+ assertions?\)$|^No tests executed!$|^Tests: \d+, Assertions: \d+.*\.$`)
	phpunitStack   = regexp.MustCompile(`^(?:/\S+:\d+$|#0 |Stack trace:)`)
	phpunitClass   = regexp.MustCompile(`^(?:\S.* \(([\w\\]+)\)|(\w[\w ]*))$`)
	phpunitMark    = regexp.MustCompile(`^ ✘ (.+?)(?: \[[0-9.]+ ms\])?$`)
	phpunitTree    = regexp.MustCompile(`^   [┐├┊│╵┴](?: (.*))?$`)
	phpError       = regexp.MustCompile(`^(?:PHP )?(?:Fatal|Parse) error: +(?:Uncaught )?(.+?) in (\S+\.php)(?::\d+| on line \d+)$`)
)

// newRSpec reads RSpec. A test goes by its whole description.
func newRSpec() reader {
	r := &ruled{tally: tally{runner: "rspec"}, starts: rspecStart}
	listed := false // within the failures
	r.rules = []rule{
		{rspecSection, func(m []string) bool {
			r.close()
			listed, r.last = m[1] == "Failures", 0
			return r.seen
		}},
		{rspecTitle, func(m []string) bool { return listed && r.next(m[1]) && r.begin(m[2], rspecText) }},
		{rspecOutside, func(m []string) bool { return r.begin(m[1]+m[2]+" [suite failed to run]", rspecText) }},
		{rspecEnd, func(m []string) bool {
			listed = false
			return r.ends(m)
		}},
		{rspecTotals, func(m []string) bool {
			r.summary(m[1])
			return r.summary(m[2])
		}},
		{nil, r.inside},
	}
	return r
}

// rspecText leaves the places out.
func rspecText(b *block) string {
	var kept []string
	for l := range strings.SplitSeq(b.text(), "\n") {
		if !strings.HasPrefix(strings.TrimSpace(l), "# ") {
			kept = append(kept, l)
		}
	}
	return dedent(strings.Join(kept, "\n"))
}

// newPHPUnit reads PHPUnit, also with --testdox, and the errors that end PHP. A test is "Class::test".
func newPHPUnit() reader {
	p := &ruled{tally: tally{runner: "phpunit"}, starts: phpunitStart}
	listed, class := false, "" // within the failures or errors; that of --testdox
	p.rules = []rule{
		{phpunitSection, func(m []string) bool {
			p.close()
			kind := strings.TrimSuffix(m[1], "s")
			listed, p.last = kind == "failure" || kind == "error", 0
			return true
		}},
		{phpunitTitle, func(m []string) bool { return listed && p.next(m[1]) && p.begin(m[2], upTo(phpunitStack)) }},
		{phpunitEnd, func(m []string) bool {
			listed = false
			return p.ends(m)
		}},
		{phpunitTotals, func(m []string) bool { return p.summary(m[0]) }},
		{phpunitMark, func(m []string) bool { return p.begin(class+"::"+m[1], (*block).text) }},
		{phpunitTree, func(m []string) bool { return p.within != nil && (m[1] == "" || p.inside(m[1:])) }},
		{phpError, func(m []string) bool { return p.note(path.Base(m[2])+" [suite failed to run]", m[1]) }},
		{nil, func(m []string) bool { return listed && p.inside(m) || p.ends(m) }},
		{phpunitClass, func(m []string) bool {
			class = m[1] + m[2]
			return false
		}},
	}
	return p
}
