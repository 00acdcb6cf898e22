package testreport

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const totalsOnly = "summary"

// summaries reads the totals of runners that have no reader of their own. A total is one line, or a few lines close
// together, with only counts and words that runners use: "Executed 12 tests, with 1 failure", "# pass 11", "12 examples, 1
// failure", "[ FAIL 1 | SKIP 0 | PASS 11 ]".
//
// A line with any other word is not a total, because logs and prose count other things ("12 jobs completed, 1 failed"). A
// total must have a result. It must also have "passed" or a word for tests, because deployments print "3 succeeded, 1
// failed". Runs without such a total are reported as uncounted.
type summaries struct {
	all   []total
	open  total    // the current total
	near  int      // the number of other lines since open's last line
	since int      // the number of other lines since the last total
	depth int      // the indentation of open's last line
	heads []string // the table's columns if the previous line was a table's head
	none  bool     // whether a line reported that there are no tests
}

type total struct {
	n     map[string]int // the counts by the words' keys
	means meaning
	of    string // the part of the tests that is counted; empty for all tests
}

// strong reports whether the words prove that the total counts tests.
func (t total) strong() bool {
	results := 0
	for key := range t.n {
		if words[key].group != groupTests {
			results++
		}
	}
	switch {
	case t.empty():
		return false
	case t.means.has(ofTests):
		return results > 0 || t.means.has(aVerdict)
	case t.means.has(ofPassed):
		return results > 1 || t.means.has(aTime)
	}
	return false
}

func (t total) empty() bool { return len(t.n) == 0 }

func (t total) sum(group int) (sum int, ok bool) {
	for key, n := range t.n {
		if words[key].group == group {
			sum, ok = sum+n, true
		}
	}
	return sum, ok
}

type numbers struct{ passed, failed, skipped int }

// counts returns passed, failed and skipped tests; passed may be NotCounted.
func (t total) counts() (n numbers) {
	passed, ranPassed := t.sum(groupPassed)
	n.failed, _ = t.sum(groupFailed)
	n.skipped, _ = t.sum(groupSkipped)
	tests, counted := t.sum(groupTests)
	switch {
	case ranPassed:
		n.passed = passed
	case counted:
		n.passed = max(0, tests-n.failed-n.skipped)
	case n.skipped > 0: // nothing else ran
		n.passed = 0
	default:
		n.passed = NotCounted
	}
	return n
}

// contradicts reports whether two totals have different numbers for one count, or count different parts.
func (t total) contradicts(other total) bool {
	for key, n := range other.n {
		if t.value(key, n) != n {
			return true
		}
	}
	return cmp.Or(other.of, t.of) != cmp.Or(t.of, other.of)
}

func (t total) value(key string, missing int) int {
	if n, ok := t.n[key]; ok {
		return n
	}
	return missing
}

// grew reports whether another total is a later state of this one, as in progress output.
func (t total) grew(other total) bool {
	if t.value("tests", NotCounted) != other.n["tests"] {
		return false
	}
	for key, n := range t.n {
		if other.n[key] < n {
			return false
		}
	}
	return t.of == other.of
}

func (t *total) merge(other total) {
	if t.n == nil {
		t.n = map[string]int{}
	}
	maps.Copy(t.n, other.n)
	t.means |= other.means
	t.of = cmp.Or(t.of, other.of)
}

// Limits of totals. Our choice, from the outputs in testdata. At most maxNear other lines, such as names of failed
// tests, separate the lines of one total. At most maxSince other lines precede a sum of totals.
const (
	maxTotalLine = 200 // bytes
	maxNear      = 3   // non-blank lines
	maxSince     = 6
	maxTotals    = 1000
)

func (s *summaries) line(line string) bool {
	if strings.TrimSpace(line) == "" {
		return false
	}
	if len(line) > maxTotalLine {
		s.other(indent(line))
		return false
	}
	if noTests.MatchString(line) {
		s.none = true
	}
	t, own := s.parse(line)
	if !own {
		s.other(indent(line))
		return false
	}
	s.add(t, indent(line))
	return !t.empty()
}

// other handles a line with other words. A more deeply indented line is a detail of the previous total.
func (s *summaries) other(depth int) {
	if depth <= s.depth {
		s.near++
	}
	s.since++
	if s.near > maxNear {
		s.close()
	}
}

// parse reads a line of counts and runners' words. A line without counts may be a heading for the next counts, or the head
// of a table.
func (s *summaries) parse(line string) (total, bool) {
	if s.heads != nil {
		t, ok := row(s.heads, line)
		s.heads = nil
		if ok {
			return t, true
		}
	}
	l, ok := scan(line)
	if !ok {
		return total{}, false
	}
	t, ok := l.total()
	if ok {
		s.heads = l.heads(t)
	}
	return t, ok
}

func (l *scanned) heads(t total) []string {
	if !t.heading() || len(l.columns) < 2 {
		return nil
	}
	return l.columns
}

func (t total) heading() bool { return t.empty() && t.means.has(ofTests) }

func (s *summaries) add(t total, depth int) {
	if t.heading() && s.open.empty() && t.means.has(aVerdict) {
		s.open, s.near, s.depth = t, 0, depth
	}
	if t.empty() {
		return
	}
	if s.open.empty() && t.onlyErrors() {
		return
	}
	if s.open.contradicts(t) && !s.open.grew(t) {
		s.close()
	}
	s.open.merge(t)
	s.near, s.depth = 0, depth
}

// onlyErrors reports whether the total counts only errors, like a compiler's.
func (t total) onlyErrors() bool {
	if t.means.has(ofTests) {
		return false
	}
	_, errors := t.n["errors"]
	return errors && len(t.n) == 1
}

// close ends the open total. It drops a repetition. A sum of earlier totals replaces those totals.
func (s *summaries) close() {
	t := s.open
	since := s.since
	s.open, s.near, s.since = total{}, 0, 0
	if !t.strong() || len(s.all) >= maxTotals {
		return
	}
	if len(s.all) > 0 && t.repeats(s.all[len(s.all)-1]) {
		return
	}
	for first := len(s.all) - 1; first >= 0; first-- {
		if t.sums(s.all[first:], since) {
			s.all = s.all[:first]
			break
		}
	}
	s.all = append(s.all, t)
}

// repeats reports whether a total only repeats failures of the last one: "1 FAILED TEST".
func (t total) repeats(last total) bool {
	for key, n := range t.n {
		part := words[key].group == groupFailed
		if !part || last.value(key, NotCounted) != n {
			return false
		}
	}
	return true
}

// sums reports whether a total is the sum of the totals before it. The totals before it must count parts, or be at
// least two totals at most maxSince lines away.
func (t total) sums(before []total, since int) bool {
	if t.of != "" {
		return false
	}
	whole := slices.ContainsFunc(before, func(one total) bool { return one.of == "" })
	far := since > maxSince || len(before) == 1
	if whole && far {
		return false
	}
	return t.counts() == sum(before)
}

func sum(all []total) numbers {
	n := numbers{passed: NotCounted}
	for _, t := range all {
		one := t.counts()
		n.passed, n.failed, n.skipped = plus(n.passed, one.passed), n.failed+one.failed, n.skipped+one.skipped
	}
	return n
}

func (s *summaries) report() Report {
	s.close()
	n := sum(s.all)
	switch {
	case len(s.all) > 0:
	case s.none:
		n.passed = 0
	default:
		return Report{}
	}
	return Report{Runner: totalsOnly, Passed: n.passed, Failed: n.failed, Skipped: n.skipped}
}

// noTests matches a line that reports that there are no tests. It does not match "no tests failed".
var noTests = regexp.MustCompile(`(?i)^\W*(?:(?:error|warning|warn|info|testing)\b\W*)*(?:there (?:are|were|was) )?` +
	`(?:no|zero|nothing|(?:could|did)(?:n['’]t| not) find any|found no)\b[\w ]{0,20}?\b(?:tests?|testcases?|specs?|examples?|scenarios?)` +
	`(?: (?:files?|cases?|suites?|modules?|classes|methods|specs?))?` +
	`(?:\s*[.!,:;]|\s*$|\s+(?:to run|were|was|found|ran|run|executed|collected|match|matche[sd]|matching|is available|available|specified|discovered|selected|defined|exist|related)\b)` +
	`|^\W*(?:collected|executed|found|ran|running|discovered) 0 (?:items|tests?|specs?|examples?|scenarios?)\b`)
