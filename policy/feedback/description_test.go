package feedback

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestEditsThatDoNotChangeTheContent(t *testing.T) {
	for _, tc := range []struct{ name, from, to string }{
		{"a re-save", "a\nb", "a\nb"},
		{"line ends", "a\n\nb\n", "a\r\n\r\nb\r\n"},
		{"old line ends", "a\nb", "a\rb"},
		{"white space at the end of lines", "a\nb", "a  \nb\t\n"},
		{"white space within lines", "| a | b |", "| a   |\tb |"},
		{"indentation", "- a\n  - b", "- a\n    - b"},
		{"a no-break space", "a b", "a\u00a0b"},
		{"blank lines", "a\n\nb", "\n\na\n\n\n\nb\n\n"},
		{"a ticked box", "- [ ] a", "- [x] a"},
		{"a ticked box in capitals", "* [X] a", "* [ ] a"},
		{"a ticked box in a numbered list", "1. [ ] a\n2) [x] b", "1. [x] a\n2) [ ] b"},
		{"a ticked box in a nested list", "+ a\n  - [x] b", "+ a\n  - [ ] b"},
		{"a ticked box in a list within the line", "- - [x] b", "- - [ ] b"},
		{"a ticked box in a quote", "> - [x] a", "> - [ ] a"},
		{"a box without a text", "- [ ]", "- [x]"},
		{"a comment", "a", "a <!-- b -->"},
		{"a comment over many lines", "a", "<!-- b\n\nc -->\na"},
		{"an open comment", "a", "a\n<!-- b"},
		{"a comment as a link definition", "a", "a\n\n[//]: # (b)"},
		{"invisible characters", "ab", "a\u200bb\ufeff"},
		{"a marker of Pawl", "a", "a\n<!-- pawl:event=7 -->"},
		{"Pawl's block appears", "a", "a\n\n<!-- pawl:begin -->\nRunning\n<!-- pawl:end -->"},
		{"Pawl's block changes", "a\n<!-- pawl:begin v=1 -->\nRunning\n<!-- pawl:end -->\nb", "a\n<!-- pawl:begin v=2 -->\nStopped\n<!-- pawl:end -->\nb"},
		{"Pawl's markers are written loosely", "a", "a\n<!--pawl:begin-->x<!--  PAWL:END\n-->"},
		{"Pawl's block is in open code", "```\na", "```\na\n<!-- pawl:begin -->\n`x` ``` <!-- pawl:end -->"},
		{"Pawl's block contains comments", "a", "a<!-- pawl:begin --><!-- x --><!-- pawl:note -->b<!-- pawl:end -->"},
	} {
		if diff, changed := DescriptionDiff(tc.from, tc.to); changed || diff != "" {
			t.Errorf("%s: changed = %v, diff:\n%s", tc.name, changed, diff)
		}
	}
}

func TestEditsThatChangeTheContent(t *testing.T) {
	for _, tc := range []struct{ name, from, to, want string }{
		{"a word", "a", "b", "-a\n+b"},
		{"the first text", "", "a", "+a"},
		{"everything removed", "a", "", "-a"},
		{"a letter's case", "- [ ] fix", "- [ ] Fix", "+- [ ] Fix"},
		{"a new task", "- [ ] a", "- [x] a\n- [ ] b", "+- [ ] b"},
		{"a box that is not a task", "arr[x]", "arr[ ]", "+arr[ ]"},
		{"text behind an unclosed block", "a", "a\n<!-- pawl:begin -->\nb", "+b"},
		{"text in a block that ends before it begins", "a", "a\n<!-- pawl:end -->\nb\n<!-- pawl:begin -->", "+b"},
		{"text between two blocks", "a", "a\n<!-- pawl:begin -->1<!-- pawl:end -->\nb\n<!-- pawl:begin -->2<!-- pawl:end -->", "+b"},
		{"text in a second block", "a", "a\n<!-- pawl:begin -->\n1\n<!-- pawl:end -->\n<!-- pawl:begin -->\n2\n<!-- pawl:end -->", "+2"},
		{"text in a nested block", "a", "a\n<!-- pawl:begin -->\n<!-- pawl:begin -->\nb\n<!-- pawl:end -->", "+b"},
		{"text in a block of another name", "a", "a\n<!-- pawl:beginning -->\nb\n<!-- pawl:end -->", "+b"},
		{"text put into a block", "a\nb", "a\n<!-- pawl:begin -->\nb\n<!-- pawl:end -->", "-b"},
		{"a comment in a code block", "```html\n<p>\n```", "```html\n<!-- x -->\n<p>\n```", "+<!-- x -->"},
	} {
		if diff, changed := DescriptionDiff(tc.from, tc.to); !changed || !strings.Contains(diff, tc.want) {
			t.Errorf("%s: changed = %v, want %q in\n%s", tc.name, changed, tc.want, diff)
		}
	}
}

func TestDiffIsUnifiedWithThreeLinesOfContext(t *testing.T) {
	got, _ := DescriptionDiff("1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\n5 changed\n6\n7\n8\n9")
	want := `--- description before
+++ description now
@@ -2,7 +2,7 @@
 2
 3
 4
-5
+5 changed
 6
 7
 8
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestContentKeepsMarkdown(t *testing.T) {
	got := Content("\r\n# Title  \r\n\r\n\r\n- [x] a\r\n    - b\r\n\r\n<!-- template -->\r\n```go\r\n\tx := 1\r\n```\r\n")
	want := "# Title\n\n- [ ] a\n    - b\n\n```\n\tx := 1\n```"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// If two users undo each other's edits, the content must be equal again.
func TestContentIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.StringOf(rapid.RuneFrom([]rune("ab \t\r\n-*>[x]1.\u00a0\u200bé"))).Draw(t, "body")
		once := Content(body)
		if diff := cmp.Diff(once, Content(once)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestChangedIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyMarkdown().Draw(t, "a"), anyMarkdown().Draw(t, "b")
		forth, changed := DescriptionDiff(a, b)
		back, changedBack := DescriptionDiff(b, a)
		if changed != changedBack || changed != (forth != "") || changed != (back != "") {
			t.Fatalf("%v %v\n%s\n%s", changed, changedBack, forth, back)
		}
		if _, changed := DescriptionDiff(a, a); changed {
			t.Fatal("a text differs from itself")
		}
	})
}
