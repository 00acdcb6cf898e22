package policy

import (
	"regexp"
	"strings"
)

var (
	tapTest      = regexp.MustCompile(`^ *(not )?ok(?: +(\d+))?(?:( +-)? +(.*?))?$`)
	tapPlan      = regexp.MustCompile(`^ *1\.\.\d+(?: *#.*)?$`)
	tapDirective = regexp.MustCompile(`(?i)(?:^|\s)#\s*(todo|skip)\S*(?:\s.*)?$`)
	tapTotal     = regexp.MustCompile(`^# (tests|pass|fail|cancelled|skipped|todo) (\d+)$`)
)

// tapReader reads TAP 12 to 14 as Perl, node:test, Vitest and others write it:
// subtests before their parent's line or in braces behind it, YAML blocks, TODO
// and SKIP; and what prove prints. A test is called "parent > test"; a parent that
// fails with its subtests is left out. Tests without a name go by their number.
type tapReader struct {
	failures
	sure                    bool // it is TAP, and no prose that begins with "ok 1"
	passed, failed, skipped int
	tests                   int
	totals                  map[string]int

	open []tapParent
	last string // the failed test that a YAML block belongs to
	yaml *block
	prove
}

// tapParent is a test whose subtests follow.
type tapParent struct {
	name          string
	depth         int
	failed, tests int // when it began
	braces, notOK bool
}

func (t *tapReader) line(s string) bool {
	trimmed := strings.TrimSpace(s)
	if t.yaml != nil {
		if trimmed == "..." || !t.yaml.add(s) {
			t.add(t.last, yamlText(t.yaml))
			t.yaml, t.last = nil, ""
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
		t.yaml = &block{}
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

// test is a line "ok" or "not ok".
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
	for len(t.open) > 0 && t.open[len(t.open)-1].depth > depth {
		t.open = t.open[:len(t.open)-1]
	}
	parent := tapParent{name: name, depth: depth, failed: len(t.list), tests: t.tests, braces: braces, notOK: failed && directive == ""}
	if n := len(t.open); n > 0 && t.open[n-1].depth == depth && !t.open[n-1].braces {
		begun := t.open[n-1]
		t.open = t.open[:n-1]
		if begun.name == name && t.tests > begun.tests {
			// Its subtests are counted already.
			if failed && directive == "" && len(t.list) == begun.failed {
				t.fail(name)
			}
			return
		}
	}
	if braces {
		if len(t.open) < 100 {
			t.open = append(t.open, parent)
		}
		return
	}
	t.tests++
	switch {
	case directive != "":
		t.skipped++
	case failed:
		t.fail(name)
	default:
		t.passed++
	}
}

// fail notes a failed test under its parents.
func (t *tapReader) fail(name string) {
	for i := len(t.open) - 1; i >= 0; i-- {
		name = t.open[i].name + " > " + name
	}
	t.failed++
	t.last = name
	t.add(name, "")
}

// shut ends a parent that was opened with a brace.
func (t *tapReader) shut(depth int) bool {
	n := len(t.open)
	if n == 0 || !t.open[n-1].braces || t.open[n-1].depth != depth {
		return false
	}
	p := t.open[n-1]
	t.open = t.open[:n-1]
	if p.notOK && len(t.list) == p.failed {
		t.fail(p.name)
	}
	return true
}

// comment is a line that begins with "#".
func (t *tapReader) comment(s, trimmed string) bool {
	if name, ok := strings.CutPrefix(trimmed, "# Subtest: "); ok {
		t.sure = true
		depth := indent(s)
		for len(t.open) > 0 && t.open[len(t.open)-1].depth >= depth {
			t.open = t.open[:len(t.open)-1]
		}
		if len(t.open) < 100 {
			t.open = append(t.open, tapParent{name: stableName(strings.ReplaceAll(name, `\#`, "#")), depth: depth, failed: len(t.list), tests: t.tests})
		}
		return true
	}
	if m := tapTotal.FindStringSubmatch(s); m != nil {
		if t.totals == nil {
			t.totals = map[string]int{}
		}
		v, _ := number(m[2])
		t.totals[m[1]] += v
		return true
	}
	return t.diagnosis(trimmed)
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

func (t *tapReader) report() TestReport {
	if t.yaml != nil {
		t.add(t.last, yamlText(t.yaml))
	}
	byProve := t.settle(&t.failures, t.tests > 0)
	switch {
	case !t.sure && !t.ran && len(t.diags) == 0:
		return TestReport{} // prose such as "ok 1 thing"
	case t.totals["tests"] > 0:
		n := t.totals
		return t.counted("tap", n["pass"], n["fail"]+n["cancelled"], n["skipped"]+n["todo"])
	case byProve:
		return t.counted("tap", max(0, t.total-t.lost), t.lost, NotTold)
	}
	return t.counted("tap", t.passed, t.failed, t.skipped)
}
