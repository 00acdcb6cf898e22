package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLastMessageIsParsed(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		want    Answer
	}{
		"nothing":   {"", Answer{}},
		"only text": {"I added a line.\n\nIt works.", Answer{Text: "I added a line.\n\nIt works."}},
		"every field": {"TITLE: fix: keep  the port\r\nI did it.\nLEFT OUT: the docs, since there are none\nREMARK 3000000001: done as you say\nREMARK 3000000002 DECLINED: it would break b.go\nQUESTION: shall 8080 go?\n",
			Answer{Title: "fix: keep the port", Question: "shall 8080 go?", LeftOut: []string{"the docs, since there are none"}, Text: "I did it.",
				Remarks: []RemarkAnswer{{3000000001, "done as you say", false}, {3000000002, "it would break b.go", true}}}},
		"a decline":                  {"DECLINED: it contradicts itself\nBoth cannot be.", Answer{Declined: "it contradicts itself", Text: "DECLINED: it contradicts itself\nBoth cannot be."}},
		"in a block of code":         {"```\nTITLE: an example\n```\nDone.", Answer{Text: "```\nTITLE: an example\n```\nDone."}},
		"in a block of tildes":       {"~~~go\nTITLE: an example\n```\nQUESTION: none\n~~~\nTITLE: a title", Answer{Text: "~~~go\nTITLE: an example\n```\nQUESTION: none\n~~~", Title: "a title"}},
		"a shorter fence inside":     {"````\n```\nTITLE: an example\n```\n````\nLEFT OUT: it", Answer{Text: "````\n```\nTITLE: an example\n```\n````", LeftOut: []string{"it"}}},
		"behind a block without end": {"I ran\n```sh\ngo test\nTITLE: a title\nREMARK 7: done", Answer{Text: "I ran\n```sh\ngo test", Title: "a title", Remarks: []RemarkAnswer{{ID: 7, Words: "done"}}}},
		"code that is not a fence":   {"```not a fence```\nTITLE: a title\n```\nQUESTION: none\n```", Answer{Text: "```not a fence```\n```\nQUESTION: none\n```", Title: "a title"}},
		"inside a line":              {"The TITLE: x is not one.\n  TITLE: nor this", Answer{Text: "The TITLE: x is not one.\n  TITLE: nor this"}},
		"without a text":             {"TITLE:\nQUESTION: ", Answer{Text: "TITLE:\nQUESTION:"}},
		"an invalid number":          {"REMARK 99999999999999999999: x\nREMARK a: y", Answer{Text: "REMARK 99999999999999999999: x\nREMARK a: y"}},
		"the last of several":        {"TITLE: one\nTITLE: two", Answer{Title: "two"}},
	} {
		if diff := cmp.Diff(tc.want, ReadAnswer(tc.message)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOtherLinesStayInTheText(t *testing.T) {
	var lines []string
	for i := range maxAnswers + 10 {
		lines = append(lines, fmt.Sprintf("LEFT OUT: part %d", i), fmt.Sprintf("REMARK %d: done", i))
	}
	a := ReadAnswer(strings.Join(lines, "\n"))
	if want := strings.Join(lines[2*maxAnswers:], "\n"); a.Text != want || len(a.LeftOut) != maxAnswers || len(a.Remarks) != maxAnswers {
		t.Errorf("%d left out, %d remarks, and %q, want %q", len(a.LeftOut), len(a.Remarks), a.Text, want)
	}
	many := strings.Repeat("```a\nTITLE: x\n", 50_000) // no block is closed
	if a := ReadAnswer(many); a.Title != "x" || strings.Contains(a.Text, "TITLE") {
		t.Errorf("title %q of a long message", a.Title)
	}
}

func TestOnlyTheFirstLineDeclines(t *testing.T) {
	r := Receipt{Declined: "no", Outcome: Declined, Final: "DECLINED: no\n\nBoth cannot be."}
	if got := r.LastMessage(); got != "Both cannot be." {
		t.Errorf("says %q", got)
	}
	if r.Outcome = WorkUnverified; r.LastMessage() != r.Final {
		t.Errorf("a message without a decline gives %q", r.LastMessage())
	}
}

func TestMessageParsingIsLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"TITLE: a", "QUESTION: b", "LEFT OUT: c", "REMARK 1: d", "REMARK 2 DECLINED: e", "```", "~~~", "~~~~", "```go", "x", "DECLINED: f", ""}), 0, 200).Draw(t, "lines")
		message := strings.Join(lines, "\n")
		a := ReadAnswer(message)
		if len(a.LeftOut) > maxAnswers || len(a.Remarks) > maxAnswers || len(a.Text) > len(message) || a.Declined != Declining(strings.TrimSpace(message)) {
			t.Fatalf("%+v", a)
		}
	})
}

func TestMostSubjectsDecideTheConvention(t *testing.T) {
	for _, c := range []struct {
		subjects string
		want     bool
	}{
		{"", false},
		{"fix: a|feat(x): b|Update c", true},
		{"fix: a|Update c", false},
		{"net/http: keep the port|cmd/go: b", false},
		{"[core] a|b", false},
	} {
		if got := AreConventional(strings.FieldsFunc(c.subjects, func(r rune) bool { return r == '|' })); got != c.want {
			t.Errorf("%q: %t", c.subjects, got)
		}
	}
}

func TestTitleGetsAConventionalType(t *testing.T) {
	for _, c := range []struct {
		title string
		of    Category
		want  string
	}{
		{"fix: keep the port", Docs, "fix: keep the port"},
		{"feat(api)!: drop v1", Other, "feat(api)!: drop v1"},
		{"Keep the port", Bug, "fix: Keep the port"},
		{"Two lines", Feature, "feat: Two lines"},
		{"The port", Docs, "docs: The port"},
		{"A second line", Other, "chore: A second line"},
		{"", Dependency, "chore: "},
		{"unknown: what is this", "", "chore: unknown: what is this"},
	} {
		if got := Conventional(c.title, c.of); got != c.want {
			t.Errorf("%q of %s became %q, want %q", c.title, c.of, got, c.want)
		}
	}
}
