package testreport

import (
	"path"
	"strings"
)

// rspec reads RSpec. A test goes by its whole description.
func rspec(r *ruled) []rule {
	listed := false // within the failures
	return []rule{
		{`^(Failures|Pending):(?: \(.*\))?$`, func(m []string) bool {
			r.close()
			listed, r.last = m[1] == "Failures", 0
			return r.seen
		}},
		{`^  (\d+)\) (.+?)(?: FIXED)?$`, func(m []string) bool { return listed && r.next(m[1]) && r.begin(m[2], rspecText) }},
		{"^An error occurred (?:while loading (\\S+\\.rb)|in an? `(\\w+\\(:\\w+\\))` hook)\\.$", func(m []string) bool {
			return r.begin(m[1]+m[2]+" [suite failed to run]", rspecText)
		}},
		{`^Finished in `, func(m []string) bool {
			listed = false
			return r.ends(m)
		}},
		{`^(\d+ examples?, \d+ failures?(?:, \d+ pending)?)(?:, (\d+ errors?) occurred outside of examples)?$`, func(m []string) bool {
			r.summary(m[1])
			return r.summary(m[2])
		}},
		{"", r.inside},
	}
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

// phpunit reads PHPUnit, also with --testdox, and the errors that end PHP. A test is "Class::test".
func phpunit(p *ruled) []rule {
	listed, class := false, "" // within the failures or errors; that of --testdox
	return []rule{
		{`^(?:There (?:was|were) )?\d+ (.+):$`, func(m []string) bool {
			p.close()
			kind := strings.TrimSuffix(m[1], "s")
			listed, p.last = kind == "failure" || kind == "error", 0
			return true
		}},
		{`^(\d+)\) (.+)$`, func(m []string) bool {
			return listed && p.next(m[1]) && p.begin(m[2], upTo(`^(?:/\S+:\d+$|#0 |Stack trace:)`))
		}},
		{`^(?:--|FAILURES!|ERRORS!|WARNINGS!|OK, .*)$`, func(m []string) bool {
			listed = false
			return p.ends(m)
		}},
		{`^OK \(\d+ tests?, \d+ assertions?\)$|^No tests executed!$|^Tests: \d+, Assertions: \d+.*\.$`, p.numbers},
		{`^ ✘ (.+?)(?: \[[0-9.]+ ms\])?$`, func(m []string) bool { return p.begin(class+"::"+m[1], (*block).text) }},
		{`^   [┐├┊│╵┴](?: (.*))?$`, func(m []string) bool { return p.within != nil && (m[1] == "" || p.inside(m[1:])) }},
		{`^(?:PHP )?(?:Fatal|Parse) error: +(?:Uncaught )?(.+?) in (\S+\.php)(?::\d+| on line \d+)$`, func(m []string) bool {
			return p.note(path.Base(m[2])+" [suite failed to run]", m[1])
		}},
		{"", func(m []string) bool { return listed && p.inside(m) || p.ends(m) }},
		{`^(?:\S.* \(([\w\\]+)\)|(\w[\w ]*))$`, func(m []string) bool {
			class = m[1] + m[2]
			return false
		}},
	}
}
