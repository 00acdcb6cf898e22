package feedback

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestOnlyWhatAReaderSeesIsVisible(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"plain text", "Fix the parser.\n\n\t- now", "Fix the parser.\n\n\t- now"},
		{"other scripts", "日本語 العربية हिन्दी \u0600١ 👩", "日本語 العربية हिन्दी \u0600١ 👩"},
		{"a comment", "a<!-- evil -->b", "ab"},
		{"a comment over blank lines", "a\n<!--\n\nevil\n\n-->\nb", "a\n\nb"},
		{"an empty comment", "a<!-->b<!--->c<!---->d", "abcd"},
		{"a comment whose end is broken by an invisible character", "a<!-- x --\u200b> evil --> b", "a b"},
		{"a comment put together by an invisible character", "a<\u200b!-- x -->b", "ab"},
		{"an open comment", "a\n<!-- evil\n\nevil", "a\n"},
		{"an open comment in a line", "a <!-- evil", "a "},
		{"comments do not nest", "<!-- a <!-- b --> c -->", " c -->"},
		{"a comment in a code span", "write `<!-- x -->` here", "write `<!-- x -->` here"},
		{"an open comment in a code span", "`<!--` is not closed", "`<!--` is not closed"},
		{"a comment in a code span behind an element", "<div>\n\n`<!--` is not closed", "<div>\n\n`<!--` is not closed"},
		{"a comment in a code block", "```html\n<!-- x -->\n```\n", "```html\n<!-- x -->\n```\n"},
		{"a comment behind a code block", "```\nx\n```\n<!-- evil -->a", "```\nx\n```\na"},
		{"a link definition that leads nowhere", "a\n\n[//]: # (evil)\nb", "a\n\n\nb"},
		{"a link definition that leads nowhere, in brackets", "[comment]: <> \"evil\"", ""},
		{"a link definition", "[docs]: https://example.com", "[docs]: https://example.com"},
		{"bidirectional controls", "a\u202eb\u2066c\u2069", "abc"},
		{"tags", "a\U000e0001\U000e0069\U000e0067", "a"},
		{"variation selectors", "a\ufe0f\U000e0100\U000e01ef", "a"},
		{"fillers and joiners", "a\u115f\u3164\u034f\u2060\u00ad\u180e", "a"},
		{"control characters", "a\x00\x1b[31m\u0085b\x7f", "a[31mb"},
		{"line and paragraph separators", "a\u2028b\u2029c", "a b c"},
		{"line ends", "a\r\nb\rc", "a\nb\nc"},
		{"bytes that are no text", "a\xffb", "a\ufffdb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Visible(tc.text); got != tc.want {
				t.Errorf("Visible(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

// Each of these shows "evil" to an agent and not to a reader, if the text is
// taken for code where GitHub finds a comment.
func TestCommentsCannotHideBehindWhatOnlyLooksLikeCode(t *testing.T) {
	for _, tc := range []struct{ name, text string }{
		{"an escaped backtick", "\\` <!-- evil --> `"},
		{"a code span of the line before", "a `\n` <!-- evil --> `"},
		{"a code span behind a line that is not quite blank", "a `\n\u00a0\n` <!-- evil --> `"},
		{"backticks of another length", "`` <!-- evil --> `"},
		{"the target of a link", "[a](`) <!-- evil --> `"},
		{"the target of a link in brackets", "[a](<` b>) <!-- evil --> `"},
		{"an address", "http://example.com/` <!-- evil --> `"},
		{"the cells of a table", "| a | b |\n|---|---|\n| ` | <!-- evil --> ` |"},
		{"a formula", "$a ` b$ <!-- evil --> `"},
		{"an element", "<div>\n` <!-- evil --> `"},
		{"an element of long ago", "<pre>\n\n\n` <!-- evil --> `"},
		{"a code block in a list", "- ```\n  a\n  ```\n<!-- evil -->"},
		{"a code block in a list that ends early", "- a\n\n  ```\n  b\n```\n```\n<!-- evil -->"},
		{"a code block with tildes in a list", "- ~~~\n  a\n  ~~~\n<!-- evil -->"},
		{"a line that does not end a code block", "```\n``` ```\n```\n<!-- evil -->"},
		{"a code block in a comment", "<!--\n```\n-->\n<!-- evil -->\n```"},
		{"a code block mark with backticks behind it", "``` a`\n<!-- evil -->\n```"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Visible(tc.text); strings.Contains(got, "evil") {
				t.Errorf("Visible(%q) = %q", tc.text, got)
			}
		})
	}
}

func TestVisibleTextHoldsNoInvisibleCharacter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for _, r := range Visible(text) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' ||
				unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Bidi_Control) {
				t.Fatalf("%U is left of %q", r, text)
			}
		}
	})
}

func TestACommentIsNeverVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringOf(rapid.RuneFrom([]rune("ab<>!- \n*"))).Draw(t, "before")
		hidden := strings.ReplaceAll(anyMarkdown().Draw(t, "hidden"), "-->", "")
		if got := Visible(before + "<!-- EVIL" + hidden + "-->"); strings.Contains(got, "EVIL") {
			t.Fatalf("got %q", got)
		}
	})
}

func FuzzVisibleNeverPanics(f *testing.F) {
	f.Add("a `<!--` b\n```\n<!-- x -->\n~~~\n[//]: # (x)", "b")
	f.Fuzz(func(t *testing.T, a, b string) {
		Content(Visible(a))
		_, changed := DescriptionDiff(a, b)
		if changed == (strings.Join(strings.Fields(Content(a)), " ") == strings.Join(strings.Fields(Content(b)), " ")) {
			t.Fatalf("changed = %v for %q and %q", changed, a, b)
		}
	})
}
