package testreport

import (
	"regexp"
	"strings"
)

var (
	nodeTime  = regexp.MustCompile(` \([0-9]+\.[0-9]+ms\)(?: # (\w+).*)?$`)
	nodeTotal = regexp.MustCompile(`^[ℹ#] (tests|pass|fail|cancelled|skipped|todo) (\d+)$`)
)

// nodeReader reads node:test's spec reporter; its TAP is TAP. A test is "suite > test". A suite that fails with
// its tests is left out, as node leaves it out of its numbers.
type nodeReader struct {
	tally
	suites suites
	atEnd  bool // within the list of failing tests at the end
	depth  int  // of the open failure
}

func (n *nodeReader) line(s string) bool {
	if strings.HasPrefix(s, "ℹ ") {
		return n.total(s)
	}
	trimmed := strings.TrimLeft(s, " ")
	depth := len(s) - len(trimmed)
	mark, name, _ := strings.Cut(trimmed, " ")
	switch {
	case s == "✖ failing tests:":
		n.close()
		n.seen, n.atEnd, n.suites = true, true, nil
		return true
	case mark == "▶" && n.within == nil || mark == "▶" && depth <= n.depth:
		n.suite(name, depth)
		return true
	case mark == "✖" && nodeTime.MatchString(name):
		n.failing(name, depth)
		return true
	case mark == "✔" && nodeTime.MatchString(name), mark == "﹣":
		n.close()
		n.seen = true
		suite := n.suites.at(depth, stableName(nodeTime.ReplaceAllString(name, ""))) != nil
		n.suites.leave(depth)
		if mark == "✔" && !suite {
			n.pass(n.suites.under(stableName(nodeTime.ReplaceAllString(name, ""))))
		}
		return true
	case n.atEnd && strings.HasPrefix(s, "test at "):
		n.close()
		return true
	case n.within != nil && (trimmed == "" || depth > n.depth):
		if !n.within.add(s) {
			n.close()
		}
		return true
	}
	n.close()
	return false
}

func (n *nodeReader) total(s string) bool {
	if !n.nodeTotal(s) {
		return strings.HasPrefix(s, "ℹ suites ") || strings.HasPrefix(s, "ℹ duration_ms ")
	}
	n.close()
	return true
}

// suite is "▶ name": a suite, or a test that has tests of its own.
func (n *nodeReader) suite(name string, depth int) {
	n.close()
	name = stableName(name)
	known := n.suites.at(depth, name) != nil
	n.suites.leave(depth)
	if !known {
		n.suites.enter(suite{name: name, depth: depth, failed: len(n.list)})
	}
}

// failing is "✖ name (1.2ms)", with a reason behind it where it does not count.
func (n *nodeReader) failing(name string, depth int) {
	n.close()
	n.seen = true
	m := nodeTime.FindStringSubmatch(name)
	name = nodeTime.ReplaceAllString(name, "")
	own := n.suites.at(depth, stableName(name))
	failedInside := own != nil && len(n.list) > own.failed
	n.suites.leave(depth)
	if failedInside || strings.EqualFold(m[1], "todo") || strings.EqualFold(m[1], "skip") {
		name = "" // which is not noted
	} else {
		name = n.suites.under(name)
	}
	n.depth = depth
	n.begin(name, nodeText)
}

// close ends the open failure; of one in the list at the end only the text may be new.
func (n *nodeReader) close() {
	if n.within != nil && n.atEnd && n.names[0] != "" && n.explain(n.names[0], nodeText(n.within)) {
		n.within = nil
	}
	n.tally.close()
}

var nodeText = upTo(regexp.MustCompile(`^\s*at `))

func (n *nodeReader) report() Report {
	n.close()
	return n.tally.report()
}

// nodeTotal counts one of node:test's numbers, behind "ℹ" in its spec reporter and "#" in its TAP, if a line is
// one. That of tests comes first; without it others may be missing.
func (t *tally) nodeTotal(s string) bool {
	m := nodeTotal.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	n, _ := number(m[2])
	t.seen = true
	switch m[1] {
	case "tests":
		t.hasCounts = true
	case "pass":
		t.passed += n
	case "fail", "cancelled":
		t.failed += n
	case "skipped", "todo":
		t.skipped += n
	}
	return true
}
