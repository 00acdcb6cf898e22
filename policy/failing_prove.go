package policy

import (
	"regexp"
	"strings"
)

var (
	proveFailed = regexp.MustCompile(`^#\s+Failed (\(TODO\) )?test(?: '(.+)')?(?: at (\S+) line \d+\.)?$`)
	proveAt     = regexp.MustCompile(`^#\s+at (\S+) line \d+\.$`)
	proveFile   = regexp.MustCompile(`^(\S+) +\(Wstat: (\d+).* Tests: (\d+) Failed: (\d+)\)$`)
	proveTotal  = regexp.MustCompile(`^Files=\d+, Tests=(\d+), `)
)

// prove is what Test::More and prove print beside TAP: the reasons of failed tests,
// and a summary by file.
type prove struct {
	ran    bool // prove's summary was there
	total  int  // tests of all files
	lost   int  // failed tests of all files
	files  []*proveResult
	within *proveResult // of files, whose lines follow
	diags  []*proveDiag
	diag   *proveDiag
}

type proveResult struct {
	name   string
	failed int
	wstat  string
	text   block
}

// proveDiag is the reason of one failed test.
type proveDiag struct {
	name, file string
	todo       bool
	text       block
}

// diagnosis is a comment about a failed test. It reports whether it is one.
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

// proveLine is a line of prove's summary.
func (p *prove) proveLine(s string) bool {
	p.diag = nil
	if m := proveFile.FindStringSubmatch(s); m != nil {
		n, _ := number(m[4])
		p.ran, p.lost = true, p.lost+n
		p.within = &proveResult{name: m[1], failed: n, wstat: m[2]}
		if len(p.files) < maxFailing {
			p.files = append(p.files, p.within)
		}
		return true
	}
	if m := proveTotal.FindStringSubmatch(s); m != nil {
		n, _ := number(m[1])
		p.ran, p.total, p.within = true, p.total+n, nil
		return true
	}
	if p.within != nil && strings.HasPrefix(s, "  ") {
		p.within.text.add(s)
		return true
	}
	p.within = nil
	return false
}

// settle brings the reasons to the failed tests and, where prove kept the tests
// themselves to itself, notes them from the reasons. It reports whether the numbers
// are prove's.
func (p *prove) settle(f *failures, listed bool) bool {
	for _, d := range p.diags {
		if d.todo {
			continue
		}
		text := d.text.text()
		known := false
		for i := range f.list {
			if name := f.list[i].Name; d.name != "" && (name == stableName(d.name) || strings.HasSuffix(name, " > "+stableName(d.name))) {
				known = true
				if f.list[i].Text == "" {
					f.list[i].Text = clip(text, maxFailureText)
				}
			}
		}
		switch {
		case known || listed:
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
