package testreport

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Groups of counts.
const (
	groupNone = iota // no number, or counts of other things
	groupTests
	groupPassed
	groupFailed
	groupSkipped
	groupOther // files, suites, steps
)

// word is a word's meaning in a total. Words with equal keys count the same thing.
type word struct {
	key     string
	group   int
	means   meaning
	ordinal bool // makes a following number an ordinal: "test 3"
	splits  bool // the following words belong to another count
	any     bool // does not prove that tests are counted, because other programs use the word, too
}

// words are the words in runners' totals, by count; see TestTotalsOfRunnersAreRead. A star marks words that make a number
// an ordinal. A question mark marks words that other programs use, too.
var words = vocabulary(map[string]string{
	"tests":      "tests* test* testcases testcase* cases case* examples example* specs spec* scenarios scenario* runs total?",
	"doctests":   "doctests doctest*",
	"properties": "properties property*",

	"passed":  "passed pass passes passing success successes succeeded? successful? successfully? ok?",
	"xpassed": "xpassed",
	"flaky":   "flaky",

	"failed":    "failed fail fails failing failure failures issue issues unsuccessful",
	"errors":    "error errors errored",
	"cancelled": "cancelled",
	"aborted":   "aborted",
	"timeout":   "timeout timeouts",
	"upassed":   "upassed xpass",

	"skipped":   "skipped skip skips",
	"pending":   "pending pendings",
	"ignored":   "ignored",
	"todo":      "todo",
	"xfailed":   "xfailed xfail",
	"omitted":   "omitted omissions",
	"broken":    "broken",
	"undefined": "undefined",
	"disabled":  "disabled",
	"canceled":  "canceled",
	"unrun":     "unrun",
	"unsure":    "incomplete inconclusive",
})

// Words without their own count: verbs, names of other things, and fillers.
const (
	verbs  = "ran run executed completed complete finished done tried summary result results status"
	others = "suites suite* files file* steps step* features feature* groups group* snapshots snapshot* containers container* build* " +
		"assertions assertion* expectations"
	fillers = "all a are at the some were was have has time times took elapsed duration seconds second secs sec ms s m t z locally remotely " +
		"listed below expect calls including known unexpected warn warning warnings notifications measured filtered deselected rerun reruns " +
		"info number count overall risky deprecation deprecations notice notices testing exit exiting code real cpu no ℹ"
	splitting = "and with in out of from for across containing after by"
)

func vocabulary(counts map[string]string) map[string]word {
	all := map[string]word{}
	for key, list := range counts {
		for w := range strings.FieldsSeq(list) {
			name := strings.TrimRight(w, "*?")
			group := groupOf(key)
			all[name] = word{
				key: key, group: group, means: saysOf(group),
				ordinal: strings.HasSuffix(w, "*"), any: strings.HasSuffix(w, "?"),
			}
		}
	}
	for w := range strings.FieldsSeq(verbs) {
		all[w] = word{means: aVerdict}
	}
	for w := range strings.FieldsSeq(others) {
		name, order := strings.CutSuffix(w, "*")
		all[name] = word{group: groupOther, ordinal: order}
	}
	all["assertions"] = word{group: groupOther, means: aVerdict} // only tests count assertions
	for w := range strings.FieldsSeq(fillers) {
		all[w] = word{}
	}
	for w := range strings.FieldsSeq(splitting) {
		all[w] = word{splits: true}
	}
	return all
}

func groupOf(key string) int {
	switch key {
	case "tests", "doctests", "properties":
		return groupTests
	case "passed", "xpassed", "flaky":
		return groupPassed
	case "failed", "errors", "cancelled", "aborted", "timeout", "upassed":
		return groupFailed
	}
	return groupSkipped
}

type meaning int

const (
	ofTests  meaning = 1 << iota // the total counts tests
	aVerdict                     // the total has a result, or says that tests ran
	ofPassed                     // the total has the word "passed"
	aTime                        // the total has a duration
)

func (s meaning) has(what meaning) bool { return s&what != 0 }

func saysOf(group int) meaning {
	if group == groupTests {
		return 0
	}
	return aVerdict
}

// phrases are word groups with their own meaning.
var phrases = strings.NewReplacer(
	"unexpected successes", "upassed", "unexpected success", "upassed", "unexpected pass", "upassed",
	"expected failures", "xfailed", "expected failure", "xfailed", "expected fail", "xfailed",
	"did not run", "unrun", "not run", "unrun", "filtered out", "filtered",
)

var (
	// partName matches the name of the counted part after a total: "- in com.acme.WidgetTest", "- Widget.Tests.dll
	// (net8.0)".
	partName = regexp.MustCompile(`\s-+\s+(?:in\s+)?([\w$/-]+\.[\w.$/-]+)(?:\s+\([^)]*\))?$`)
	// times matches numbers that are not counts: durations, times of day, percentages and decimal fractions.
	times = regexp.MustCompile(`\d{4}-\d\d-\d\d[t ]\d\d:\d\d\S*|\d+(?::\d\d)+(?:\.\d+)?|\d+(?:\.\d+)? ?(?:ms|µs|us|ns|s|secs?|(?:milli|micro|nano)?seconds?|min|mins|minutes?|h)\b|` +
		`\d+m\d+(?:\.\d+)?s|\d+(?:\.\d+)? ?%|\d+\.\d+|exit(?:ing|ed)? with (?:exit )?code \d+`)
	// signed matches Dart's form: +11 passed, ~2 skipped, -1 failed.
	signed = regexp.MustCompile(`\+(\d+)(?: ~(\d+))?(?: -(\d+))?:`)
	lexeme = regexp.MustCompile(`\d+(?:,\d{3})*|\p{L}[\p{L}'’]*|  +|\t|[^\s]`)
)

// scanned is a total's line, divided into one segment for each number.
type scanned struct {
	segments []segment
	columns  []string // the keys of the words without a number, in order
	means    meaning
	of       string
}

// segment is a number with the words before and after it.
type segment struct {
	before, behind []word
	n, outOf       int // NotCounted if missing
	end            string
	unit           bool // whether the segment follows "with", so that its next word is the unit
	parens         bool // whether the segment follows "("
}

// scan parses a line's words and numbers. ok is false if a word is unknown.
func scan(line string) (scanned, bool) {
	var l scanned
	line = strings.ToLower(strings.TrimSpace(line))
	if at := partName.FindStringSubmatchIndex(line); at != nil {
		l.of, line = line[at[2]:at[3]], line[:at[0]]
	}
	line = phrases.Replace(line)
	if !known(line) {
		return l, false
	}
	plain := times.ReplaceAllString(line, " ")
	if plain != line {
		l.means = aTime
	}
	plain = signed.ReplaceAllString(plain, "$1 passed, $2 skipped, $3 failed,")
	return l, l.cut(plain)
}

// known reports whether all words of a line are known.
func known(line string) bool {
	if strings.Contains(line, "\t") {
		return false // columns
	}
	some := false
	for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if _, ok := words[w]; !ok {
			return false
		}
		some = true
	}
	return some
}

// cut divides a line into segments. It returns false if a number follows "#", which makes it an ordinal.
func (l *scanned) cut(line string) bool {
	c := cutting{segment: empty}
	for _, lex := range lexeme.FindAllString(line, -1) {
		w, isWord := words[lex]
		n, isNumber := number(strings.ReplaceAll(lex, ",", ""))
		if lex == "no" {
			n, isNumber = 0, true
		}
		switch {
		case isNumber:
			if c.last == "#" {
				return false
			}
			c.number(n)
		case !isWord:
			c.end(strings.TrimSpace(lex))
		case w.splits:
			c.end("")
			c.unit = slices.Contains([]string{"with", "containing"}, lex)
		case c.n == NotCounted:
			c.segment.before = append(c.segment.before, w)
		default:
			c.behind = append(c.behind, w)
		}
		if lex != "out" { // "out of" means "of"
			c.last, c.lastBut = lex, c.last
		}
	}
	c.end("")
	l.segments = c.done
	return true
}

type cutting struct {
	done          []segment
	segment              // the current segment
	last, lastBut string // the last lexeme, and the one before it
}

var empty = segment{n: NotCounted, outOf: NotCounted}

func (c *cutting) number(n int) {
	if c.divides() {
		c.segment = c.done[len(c.done)-1]
		c.done = c.done[:len(c.done)-1]
		c.outOf = n
		return
	}
	if c.last == "of" {
		c.outOf = n
		return
	}
	if c.n != NotCounted {
		c.end("")
	}
	c.n = n
}

// divides reports whether a number and "of" or "/" precede the current lexeme.
func (c *cutting) divides() bool {
	_, divided := number(c.lastBut)
	return divided && slices.Contains([]string{"/", "of"}, c.last)
}

func (c *cutting) end(by string) {
	c.segment.end = by
	if c.segment.blank() {
		c.late(by)
	} else {
		c.done = append(c.done, c.segment)
	}
	c.segment = empty
	c.parens = by == "("
}

func (c *cutting) late(by string) {
	if by != "]" || len(c.done) == 0 {
		return
	}
	last := &c.done[len(c.done)-1]
	last.end = cmp.Or(last.end, by)
}

func (s segment) blank() bool {
	if len(s.before) > 0 {
		return false
	}
	return s.numberless() && s.outOf == NotCounted
}

func (s segment) numberless() bool { return s.n == NotCounted }

func (s segment) around() []word { return slices.Concat(s.before, s.behind) }

// head reports whether the segment is a heading in brackets: "[  PASSED  ]", "[doctest]".
func (s segment) head() bool { return s.numberless() && s.end == "]" }

// total sums the segments. The second result is false if a number is an ordinal, or if no word says what it counts.
func (l *scanned) total() (total, bool) {
	c := counting{total: total{n: map[string]int{}, means: l.means, of: l.of}}
	for _, seg := range l.segments {
		c.note(seg)
		if seg.numberless() {
			c.name(seg)
			continue
		}
		if !c.take(seg) {
			return c.total, false
		}
	}
	l.columns = c.columns
	if c.subject == groupTests {
		c.means |= ofTests
	}
	return c.total, true
}

type counting struct {
	total
	columns []string
	subject int     // the line's unit: tests, or something else such as files
	label   segment // the previous segment, if it has no number
}

func (c *counting) note(seg segment) {
	around := seg.around()
	for _, w := range around {
		c.means |= w.means
	}
	if seg.head() {
		return
	}
	switch unitOf(around) {
	case groupTests:
		c.subject = groupTests
	case groupOther:
		c.subject = cmp.Or(c.subject, groupOther)
	}
}

// name handles a segment without a number. It is a label for the next segment, or a table's column.
func (c *counting) name(seg segment) {
	for _, w := range seg.around() {
		if w.key != "" {
			c.columns = append(c.columns, w.key)
		}
	}
	c.whole(seg)
	c.label = seg
}

// whole handles a segment with the number of all tests: "out of 10".
func (c *counting) whole(seg segment) {
	if seg.outOf == NotCounted || c.subject == groupOther {
		return
	}
	c.n["tests"] = seg.outOf
}

func (c *counting) take(seg segment) bool {
	if seg.ordinal() {
		return false
	}
	kind, ok := c.kind(seg)
	if ok && !c.otherUnit(seg) {
		c.count(seg, kind)
	}
	c.label = segment{}
	return ok
}

func (c *counting) otherUnit(seg segment) bool {
	around := seg.around()
	if len(around) == 0 {
		around = c.label.before
	}
	return cmp.Or(unitOf(around), c.subject) == groupOther
}

// kind returns the word that a segment's number counts, from its own words or from the label before it. The second result
// is false if neither has such a word and the number does not belong to another number.
func (c *counting) kind(seg segment) (word, bool) {
	named := lastCount(c.label.before)
	if len(seg.around()) == 0 {
		explained := seg.outOf != NotCounted || seg.parens
		return named, explained || len(c.label.before) > 0
	}
	kind := seg.counts()
	if kind.group == groupTests && c.label.end == "]" {
		return cmp.Or(named, kind), true
	}
	return kind, true
}

func (c *counting) count(seg segment, kind word) {
	c.whole(seg)
	if kind.key == "" {
		return
	}
	if _, twice := c.n[kind.key]; !twice {
		c.n[kind.key] = seg.n
	}
	if kind.any {
		return
	}
	if strings.HasSuffix(kind.key, "passed") {
		c.means |= ofPassed
	}
}

// ordinal reports whether the number is a position: "test 3 failed".
func (s segment) ordinal() bool {
	if s.outOf != NotCounted {
		return false
	}
	return len(s.before) > 0 && s.before[len(s.before)-1].ordinal
}

// counts returns the word that the number counts. A result wins over tests: "12 tests passed" counts passed tests. After
// "with", the next word wins: "with 12 tests failed after 0.1 seconds" counts tests.
func (s segment) counts() word {
	behind, before := lastCount(s.behind), lastCount(s.before)
	next := before
	if len(s.behind) > 0 {
		next = s.behind[0]
	}
	verdict := s.unit && behind.group != groupSkipped
	if verdict || next.isResult() {
		return next
	}
	if before.isResult() && !behind.isResult() {
		return before
	}
	return cmp.Or(behind, before)
}

func (w word) isResult() bool { return w.group > groupTests && w.group < groupOther }

// lastCount returns the last word that can be counted. A result wins over tests.
func lastCount(all []word) (found word) {
	for _, w := range all {
		if w.isResult() || found.key == "" {
			found = w
		}
	}
	return found
}

// unitOf returns the words' unit: tests, or files, suites, steps.
func unitOf(all []word) int {
	unit := groupNone
	for _, w := range all {
		switch w.group {
		case groupOther:
			return groupOther
		case groupTests:
			if !w.any {
				unit = groupTests
			}
		}
	}
	return unit
}

// row parses a table row below column names (Julia).
func row(heads []string, line string) (total, bool) {
	if i := strings.LastIndex(line, "|"); i >= 0 {
		line = line[i+1:]
	}
	t := total{n: map[string]int{}, means: ofTests | aVerdict}
	fields := strings.Fields(times.ReplaceAllString(line, " "))
	first := len(heads) - len(fields)
	if first < 0 || len(fields) < 2 {
		return t, false
	}
	for i, field := range fields {
		n, ok := number(field)
		if !ok {
			return t, false
		}
		t.n[heads[first+i]] = n
	}
	return t, true
}

// counted parses a line that is known to be a total. Unlike scan, it ignores unknown words.
func counted(line string) (passed, failed, skipped int) {
	var l scanned
	plain := times.ReplaceAllString(phrases.Replace(strings.ToLower(line)), " ")
	l.cut(plain)
	t, _ := l.total()
	n := t.counts()
	return max(0, n.passed), n.failed, n.skipped
}
