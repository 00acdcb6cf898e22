package policy

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxFailing bounds the failing tests that are told apart. A change that breaks
// more is told by the first of them in order.
const maxFailing = 200

// FailingTests reads the names of failing tests from the output of a test
// runner: go test (also -json), pytest, Jest and Vitest, cargo test, and TAP. The
// names are sorted and each stands once. Output of other programs gives none.
func FailingTests(output string) []string {
	var names []string
	for line := range strings.Lines(output) {
		if name := failingOn(strings.TrimSpace(line)); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxFailing)]
}

// failingOn is the failing test that a line names; empty when it names none.
func failingOn(line string) string {
	switch {
	case strings.HasPrefix(line, "{"):
		return failingJSON(line)
	case strings.HasPrefix(line, "--- FAIL: "):
		return firstWord(line[len("--- FAIL: "):])
	case strings.HasPrefix(line, "FAILED ") || strings.HasPrefix(line, "ERROR "):
		// pytest: FAILED path::test - reason. Other lines begin like this, too.
		_, rest, _ := strings.Cut(line, " ")
		if name, _, _ := strings.Cut(rest, " - "); strings.Contains(name, "::") {
			return name
		}
	case strings.HasPrefix(line, "test ") && strings.HasSuffix(line, " ... FAILED"):
		return strings.TrimSuffix(line[len("test "):], " ... FAILED")
	case strings.HasPrefix(line, "not ok ") && !strings.Contains(line, "# TODO"):
		return withoutNumber(line[len("not ok "):])
	}
	for _, mark := range []string{"✕ ", "× ", "● "} {
		if name, ok := strings.CutPrefix(line, mark); ok {
			return withoutTime(name)
		}
	}
	return ""
}

// failingJSON reads one event of go test -json.
func failingJSON(line string) string {
	var e struct{ Action, Package, Test string }
	if json.Unmarshal([]byte(line), &e) != nil || e.Action != "fail" || e.Test == "" {
		return ""
	}
	return e.Package + " " + e.Test
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// withoutNumber is the description of a TAP line, whose number moves when tests
// are added.
func withoutNumber(s string) string {
	s = strings.TrimLeft(s, "0123456789 ")
	return strings.TrimSpace(strings.TrimPrefix(s, "-"))
}

// withoutTime drops what Jest and Vitest put behind a name, such as "(5 ms)" or
// "12ms".
func withoutTime(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndex(s, " "); i > 0 && (strings.HasSuffix(s, "ms") || strings.HasSuffix(s, "ms)")) {
		s = strings.TrimRight(strings.TrimSuffix(s[:i], " "), "( 0123456789")
	}
	return s
}
