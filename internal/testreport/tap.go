package testreport

import (
	"cmp"
	"strings"
)

// tapReader reads TAP 12 to 14 of Perl, node:test, Vitest and others. It reads subtests before their parent or in
// braces after it, YAML blocks, TODO and SKIP. It also reads prove's output. A test's name is "parent > test", or its
// number. A parent that fails because of its subtests is omitted.
type tapReader struct {
	*tally
	sure   bool // whether this is TAP, and not prose that begins with "ok 1"
	tests  int
	totals tally // the totals that node:test prints

	open    suites
	failing string // the failed test that the next YAML block belongs to
	prove
}

func tap(r *ruled) []rule {
	t := &tapReader{tally: &r.tally}
	r.finish = t.finish
	return append([]rule{
		{"", func(m []string) bool {
			if t.within != nil && strings.TrimSpace(m[0]) == "..." {
				t.close()
				return true
			}
			return t.inside(m)
		}},
		{`^ *(not )?ok(?: +(\d+))?(?:( +-)? +(.*?))?$`, func(m []string) bool {
			if m[2] == "" && m[3] == "" {
				return false
			}
			t.test(m[1] != "", m[2], m[3] != "", m[4], indent(m[0]))
			return true
		}},
		{`^[ \t]+---\s*$`, func([]string) bool {
			if t.tests > 0 {
				t.begin(t.failing, yamlText)
				t.failing = ""
			}
			return t.tests > 0
		}},
		{`^\s*}\s*$`, func(m []string) bool { return t.shut(indent(m[0])) }},
		{`^TAP version |^ *1\.\.\d+(?: *#.*)?$`, func([]string) bool {
			t.sure = true
			return true
		}},
		{`^Bail out!(.*)`, func(m []string) bool {
			t.failed++
			return t.note("Bail out!", strings.TrimSpace(m[1]))
		}},
		{`^(\s*)# Subtest: (.*?)\s*$`, func(m []string) bool {
			t.sure = true
			t.open.leave(indent(m[0]))
			t.open.enter(suite{name: stableName(strings.ReplaceAll(m[2], `\#`, "#")), depth: indent(m[0]), failed: len(t.list), tests: t.tests})
			return true
		}},
		{`^#.*`, func(m []string) bool { return t.totals.nodeTotal(m[0]) }},
	}, t.prove.rules()...)
}

func (t *tapReader) test(failed bool, number string, dash bool, rest string, depth int) {
	t.failing = ""
	if dash {
		t.sure = true
	}
	rest, braces := strings.CutSuffix(rest, " {")
	directive := ""
	if m := form(`(?i)(?:^|\s)#\s*(todo|skip)\S*(?:\s.*)?$`).FindStringSubmatchIndex(rest); m != nil {
		directive, rest = strings.ToLower(rest[m[2]:m[3]]), rest[:m[0]]
	}
	name := stableName(strings.ReplaceAll(rest, `\#`, "#"))
	if name == "" {
		name = "test " + number
	}
	begun := t.open.at(depth, name)
	t.open.leave(depth)
	notOK := failed && directive == ""
	switch {
	case begun != nil && t.tests > begun.tests: // its subtests are already counted
		if notOK && len(t.list) == begun.failed {
			t.fail(name)
		}
		return
	case braces:
		t.open.enter(suite{name: name, depth: depth, failed: len(t.list), tests: t.tests, braces: true, notOK: notOK})
		return
	case directive != "":
		t.skipped++
	case failed:
		t.fail(name)
	default:
		t.passed++
		t.pass(t.open.under(name))
	}
	t.tests++
}

func (t *tapReader) fail(name string) {
	name = t.open.under(name)
	t.failed++
	t.failing = name
	t.add(name, "")
}

func (t *tapReader) shut(depth int) bool {
	if len(t.open) == 0 {
		return false
	}
	p := t.open[len(t.open)-1]
	if !p.braces || p.depth != depth {
		return false
	}
	t.open.leave(depth)
	if p.notOK && len(t.list) == p.failed {
		t.fail(p.name)
	}
	return true
}

// yamlText returns a YAML block without the stack and the duration, which change between runs.
func yamlText(b *block) string {
	lines := strings.Split(strings.Trim(b.b.String(), "\n"), "\n")
	depth := indent(lines[0])
	var kept []string
	stack := false
	for _, l := range lines {
		l = strings.TrimRight(l[min(depth, indent(l)):], " \t")
		switch {
		case strings.HasPrefix(l, "stack:"):
			stack = true
		case l != "" && indent(l) == 0:
			stack = false
		}
		if stack || strings.HasPrefix(l, "duration_ms:") {
			continue
		}
		kept = append(kept, l)
	}
	return strings.Join(kept, "\n")
}

func (t *tapReader) finish() {
	byProve := t.settle(&t.failures, t.tests > 0)
	t.seen = t.sure || t.prove.ran || len(t.diags) > 0 // otherwise it may be prose such as "ok 1 thing"
	t.hasCounts = true
	n := t.totals
	switch {
	case n.hasCounts && n.tests() > 0:
		t.passed, t.failed, t.skipped = n.passed, n.failed, n.skipped
	case byProve:
		t.passed, t.failed, t.skipped = max(0, t.total-t.lost), t.lost, NotCounted
	}
}

// prove holds the additional output of Test::More and prove: reasons of failures, and a summary by file.
type prove struct {
	ran   bool // whether prove printed its summary
	total int  // the number of tests in all files
	lost  int  // the number of failed tests in all files
	files []*proveResult
	file  *proveResult // the file that the next lines belong to
	diags []*proveDiag
	diag  *proveDiag
}

type proveResult struct {
	name   string
	failed int
	wstat  string
	text   block
}

type proveDiag struct {
	name, file string
	todo       bool
	text       block
}

// lost reports whether the file must be listed as a failure: it died without a failed test, or no failed test is listed.
func (r *proveResult) lost(listed int) bool {
	if r.failed == 0 {
		return r.wstat != "0"
	}
	return listed == 0
}

func (p *prove) rules() []rule {
	return []rule{
		{`^\s*#\s+Failed (\(TODO\) )?test(?: '(.+)')?(?: at (\S+) line \d+\.)?\s*$`, func(m []string) bool {
			p.diag = &proveDiag{name: m[2], file: m[3], todo: m[1] != ""}
			if len(p.diags) < maxFailing {
				p.diags = append(p.diags, p.diag)
			}
			return true
		}},
		{`^\s*#(\s+at (\S+) line \d+\.|.*?)\s*$`, func(m []string) bool {
			if p.diag == nil || strings.HasPrefix(m[1], " Looks like ") {
				p.diag = nil
				return false
			}
			p.diag.file = cmp.Or(p.diag.file, m[2])
			p.diag.text.add(m[1])
			return true
		}},
		{"", func([]string) bool {
			p.diag = nil
			return false
		}},
		{`^(\S+) +\(Wstat: (\d+).* Tests: (\d+) Failed: (\d+)\)$`, func(m []string) bool {
			n, _ := number(m[4])
			p.ran, p.lost = true, p.lost+n
			p.file = &proveResult{name: m[1], failed: n, wstat: m[2]}
			if len(p.files) < maxFailing {
				p.files = append(p.files, p.file)
			}
			return true
		}},
		{`^Files=\d+, Tests=(\d+), `, func(m []string) bool {
			n, _ := number(m[1])
			p.ran, p.total, p.file = true, p.total+n, nil
			return true
		}},
		{"", func(m []string) bool {
			if p.file == nil || !strings.HasPrefix(m[0], "  ") {
				p.file = nil
				return false
			}
			p.file.text.add(m[0])
			return true
		}},
	}
}

// settle adds the reasons to the failed tests. Without TAP, it records a failure for each reason. It reports whether
// prove's counts must be used, because there is no TAP.
func (p *prove) settle(f *failures, listed bool) bool {
	for _, d := range p.diags {
		if d.todo {
			continue
		}
		text := d.text.text()
		explained := f.explain(d.name, text)
		if explained || listed {
			continue
		}
		switch {
		case d.name != "":
			f.add(d.name, text)
		case d.file != "":
			f.add(d.file+" [unnamed test]", text)
		}
	}
	for _, r := range p.files {
		if r.lost(len(f.list)) {
			p.lost += max(0, 1-r.failed)
			f.add(r.name, r.text.text())
		}
	}
	return p.total > 0 && !listed
}

// nodeTotal reads a total below the TAP of node --test. The number of tests comes first. If it is missing, the output was
// cut, and other totals may be missing as well.
func (t *tally) nodeTotal(s string) bool {
	m := form(`^# (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$`).FindStringSubmatch(s)
	if m == nil {
		return false
	}
	all := t.hasCounts || m[1] == "tests"
	t.seen = true
	if m[1] != "tests" {
		t.summary(m[2] + " " + m[1])
	}
	t.hasCounts = all
	return true
}
