package testreport

import (
	"regexp"
	"strings"
)

var (
	tapTest      = regexp.MustCompile(`^ *(not )?ok(?: +(\d+))?(?:( +-)? +(.*?))?$`)
	tapPlan      = regexp.MustCompile(`^ *1\.\.\d+(?: *#.*)?$`)
	tapDirective = regexp.MustCompile(`(?i)(?:^|\s)#\s*(todo|skip)\S*(?:\s.*)?$`)

	proveFailed = regexp.MustCompile(`^#\s+Failed (\(TODO\) )?test(?: '(.+)')?(?: at (\S+) line \d+\.)?$`)
	proveAt     = regexp.MustCompile(`^#\s+at (\S+) line \d+\.$`)
	proveFile   = regexp.MustCompile(`^(\S+) +\(Wstat: (\d+).* Tests: (\d+) Failed: (\d+)\)$`)
	proveTotal  = regexp.MustCompile(`^Files=\d+, Tests=(\d+), `)
)

// tapReader reads TAP 12 to 14 of Perl, node:test, Vitest and others: subtests before their parent's line or in
// braces behind it, YAML blocks, TODO and SKIP; and what prove prints. A test is "parent > test", or its
// number; a parent that fails with its subtests is left out.
type tapReader struct {
	tally
	sure   bool // it is TAP, and no prose that begins with "ok 1"
	tests  int
	totals tally // as node:test prints them

	open suites
	last string // the failed test that a YAML block belongs to
	prove
}

func (t *tapReader) line(s string) bool {
	trimmed := strings.TrimSpace(s)
	if t.within != nil {
		if trimmed == "..." {
			t.close()
		} else {
			t.inside([]string{s})
		}
		return true
	}
	switch {
	case strings.HasPrefix(trimmed, "ok") || strings.HasPrefix(trimmed, "not ok"):
		if m := tapTest.FindStringSubmatch(s); m != nil && (m[2] != "" || m[3] != "") {
			t.test(m[1] != "", m[2], m[3] != "", m[4], indent(s))
			return true
		}
	case trimmed == "---" && t.tests > 0 && indent(s) > 0:
		t.begin(t.last, yamlText)
		t.last = ""
		return true
	case trimmed == "}" && t.shut(indent(s)):
		return true
	case strings.HasPrefix(s, "TAP version ") || tapPlan.MatchString(s):
		t.sure = true
		return true
	case strings.HasPrefix(s, "Bail out!"):
		t.failed++
		t.add("Bail out!", strings.TrimSpace(s[len("Bail out!"):]))
		return true
	case strings.HasPrefix(trimmed, "#") && t.comment(s, trimmed):
		return true
	}
	return t.proveLine(s)
}

func (t *tapReader) test(failed bool, number string, dash bool, rest string, depth int) {
	t.last = ""
	t.sure = t.sure || dash
	rest, braces := strings.CutSuffix(rest, " {")
	directive := ""
	if m := tapDirective.FindStringSubmatchIndex(rest); m != nil {
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
	case begun != nil && t.tests > begun.tests: // its subtests are counted already
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
	t.last = name
	t.add(name, "")
}

func (t *tapReader) shut(depth int) bool {
	n := len(t.open)
	if n == 0 || !t.open[n-1].braces || t.open[n-1].depth != depth {
		return false
	}
	p := t.open[n-1]
	t.open.leave(depth)
	if p.notOK && len(t.list) == p.failed {
		t.fail(p.name)
	}
	return true
}

func (t *tapReader) comment(s, trimmed string) bool {
	if name, ok := strings.CutPrefix(trimmed, "# Subtest: "); ok {
		t.sure = true
		t.open.leave(indent(s))
		t.open.enter(suite{name: stableName(strings.ReplaceAll(name, `\#`, "#")), depth: indent(s), failed: len(t.list), tests: t.tests})
		return true
	}
	return t.totals.nodeTotal(s) || t.diagnosis(trimmed)
}

// yamlText leaves out what changes from run to run, and the stack.
func yamlText(b *block) string {
	lines := strings.Split(strings.Trim(b.b.String(), "\n"), "\n")
	depth := indent(lines[0])
	var kept []string
	stack := false
	for _, l := range lines {
		l = strings.TrimRight(l[min(depth, indent(l)):], " \t")
		stack = stack && (l == "" || indent(l) > 0) || strings.HasPrefix(l, "stack:")
		if !stack && !strings.HasPrefix(l, "duration_ms:") {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

func (t *tapReader) report() Report {
	t.close()
	byProve := t.settle(&t.failures, t.tests > 0)
	switch {
	case !t.sure && !t.ran && len(t.diags) == 0:
		return Report{} // prose such as "ok 1 thing"
	case t.totals.hasCounts && t.totals.passed+t.totals.failed+t.totals.skipped > 0:
		return t.counted("tap", t.totals.passed, t.totals.failed, t.totals.skipped)
	case byProve:
		return t.counted("tap", max(0, t.total-t.lost), t.lost, NotCounted)
	}
	return t.counted("tap", t.passed, t.failed, t.skipped)
}

// prove is what Test::More and prove print beside TAP: reasons, and a summary by file.
type prove struct {
	ran   bool // prove's summary was there
	total int  // tests of all files
	lost  int  // failed tests of all files
	files []*proveResult
	file  *proveResult // of files, whose lines follow
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

func (p *prove) diagnosis(s string) bool {
	if m := proveFailed.FindStringSubmatch(s); m != nil {
		p.diag = &proveDiag{name: m[2], file: m[3], todo: m[1] != ""}
		if len(p.diags) < maxFailing {
			p.diags = append(p.diags, p.diag)
		}
		return true
	}
	if p.diag == nil || strings.HasPrefix(s, "# Looks like ") {
		p.diag = nil
		return false
	}
	if m := proveAt.FindStringSubmatch(s); m != nil && p.diag.file == "" {
		p.diag.file = m[1]
	}
	p.diag.text.add(strings.TrimPrefix(s, "#"))
	return true
}

func (p *prove) proveLine(s string) bool {
	p.diag = nil
	if m := proveFile.FindStringSubmatch(s); m != nil {
		n, _ := number(m[4])
		p.ran, p.lost = true, p.lost+n
		p.file = &proveResult{name: m[1], failed: n, wstat: m[2]}
		if len(p.files) < maxFailing {
			p.files = append(p.files, p.file)
		}
		return true
	}
	if m := proveTotal.FindStringSubmatch(s); m != nil {
		n, _ := number(m[1])
		p.ran, p.total, p.file = true, p.total+n, nil
		return true
	}
	if p.file != nil && strings.HasPrefix(s, "  ") {
		p.file.text.add(s)
		return true
	}
	p.file = nil
	return false
}

// settle brings the reasons to the failed tests, or notes them from the reasons where prove kept the tests to
// itself. It reports whether the numbers are prove's.
func (p *prove) settle(f *failures, listed bool) bool {
	for _, d := range p.diags {
		text := d.text.text()
		switch {
		case d.todo, f.explain(d.name, text), listed:
		case d.name != "":
			f.add(d.name, text)
		case d.file != "":
			f.add(d.file+" [unnamed test]", text)
		}
	}
	for _, r := range p.files {
		if r.failed == 0 && r.wstat != "0" || r.failed > 0 && len(f.list) == 0 {
			p.lost += max(0, 1-r.failed)
			f.add(r.name, r.text.text())
		}
	}
	return p.ran && p.total > 0 && !listed
}
