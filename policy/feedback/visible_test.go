package feedback

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestVisibleTextIsWhatReadersSee(t *testing.T) {
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
		{"a comment in a code block", "```html\n<!-- x -->\n```\n", "```\n<!-- x -->\n```\n"},
		{"a comment behind a code block", "```\nx\n```\n<!-- evil -->a", "```\nx\n```\na"},
		{"a link definition that leads nowhere", "a\n\n[//]: # (evil)\nb", "a\n\n\nb"},
		{"a link definition that leads nowhere, in brackets", "[comment]: <> \"evil\"", ""},
		{"a link definition", "[docs]: https://example.com", ""},
		{"a heading, a list, a table", "# A `b`\n\n1. *c*\n   - [x] ~~d~~\n\n| e | f |\n|---|:-:|\n| g | h |\n", "# A `b`\n\n1. *c*\n   - [x] ~~d~~\n\n| e | f |\n|---|:-:|\n| g | h |\n"},
		{"a quotation and a box", "> a\n\n> [!NOTE]\n> b", "> a\n\n> [!NOTE]\n> b"},
		{"a suggestion", "```suggestion\nx\n```", "```suggestion\nx\n```"},
		{"visible addresses", "<https://example.org/a_b> www.example.org me@example.org", "https://example.org/a_b www.example.org me@example.org"},
		{"elements that GitHub shows", "<details open><summary title=x>a</summary>\n\nb <kbd>c</kbd><br/>\n\n</details>", "<details><summary>a</summary>\n\nb <kbd>c</kbd><br>\n\n</details>"},
		{"a footnote", "a[^1]\n\n[^1]: b", "a\n\nb"},
		{"a footnote that closes a later element", "[^1]: a </x-y>\n\nb[^1] <x-y>c",
			"a \n\nb c\n\n> Not visible on the page, and no part of the task: an element `<x-y>`\n> Not visible on the page, and no part of the task: an element `</x-y>`"},
		{"formulas and prices", "It costs $5 and $10, $x^2 \\le 4$ holds, `$HOME` and `100% of $A`.", "It costs $5 and $10, $x^2 \\le 4$ holds, `$HOME` and `100% of $A`."},
		{"escapes and entities", "\\*a\\* &lt;b&gt; &amp; &#x200b;c", "\\*a\\* &lt;b&gt; &amp; c"},
		{"less and greater", "a < b and c > d, x<5", "a < b and c > d, x<5"},
		{"bidirectional controls", "a\u202eb\u2066c\u2069", "abc"},
		{"tags", "a\U000e0001\U000e0069\U000e0067", "a"},
		{"variation selectors", "a\ufe0f\U000e0100\U000e01ef", "a"},
		{"fillers and joiners", "a\u115f\u3164\u034f\u2060\u00ad\u180e", "a"},
		{"control characters", "a\x00\x1b[31m\u0085b\x7f", "a[31mb"},
		{"line and paragraph separators", "a\u2028b\u2029c", "a b c"},
		{"line ends", "a\r\nb\rc", "a\nb\nc"},
		{"bytes that are not text", "a\xffb", "a\ufffdb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Visible(tc.text); got != tc.want {
				t.Errorf("Visible(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

// unseenTexts are ways to hide a text from readers of the page.
var unseenTexts = map[string]string{
	"an attribute":                          `<b title="EVIL">a</b>`,
	"an attribute of a block":               "<div data-x='EVIL'>\na\n</div>",
	"an attribute over lines in a quote":    "> <div\n> title=\"EVIL\">\n> a\n",
	"an open tag":                           "<div title=\"EVIL",
	"the title of a link":                   `[a](https://example.org "EVIL")`,
	"the title of a picture":                `![](https://example.org/a.png "EVIL")`,
	"an alternative text":                   "![EVIL](https://example.org/a.png)",
	"an alternative text with marks":        "![a **EVIL** `EVIL`](x)",
	"an alternative text by reference":      "![EVIL][1]\n\n[1]: https://example.org",
	"an alternative text of an element":     `<img alt="EVIL" src="https://example.org/a.png">`,
	"a definition":                          "[EVIL]: https://example.org",
	"the title of a definition":             "[a]\n\n[a]: https://example.org 'EVIL'",
	"a definition that leads nowhere":       "[//]: # (EVIL)",
	"a definition over lines":               "[x]:\n  <>\n  (EVIL)",
	"a definition in a quotation":           "> [x]: # (EVIL)",
	"an unreferenced footnote":              "a\n\n[^1]: EVIL",
	"words behind a fence":                  "```go EVIL\nx\n```",
	"the language of a fence":               "~~~EVIL\nx\n~~~",
	"an extra cell":                         "| a |\n|---|\n| b | EVIL |",
	"a processing instruction":              "<?php EVIL ?>",
	"a processing instruction in a line":    "a <?php EVIL ?> b",
	"a declaration":                         "<!DOCTYPE EVIL>",
	"character data":                        "a <![CDATA[EVIL]]> b",
	"a comment in a line":                   "a <!-- EVIL --> b",
	"a comment over lines":                  "<!--\n\nEVIL\n\n-->",
	"a comment with another end":            "<!-- a --!> <!-- EVIL -->",
	"a script":                              "<script>EVIL</script>",
	"a style":                               "<style>\nEVIL\n\nEVIL</style>",
	"a template that is not closed":         "a <template>\n\nEVIL",
	"text for old browsers":                 "<ruby>a<rp>EVIL</rp></ruby>",
	"a picture's drawing":                   `<svg><text>EVIL</text></svg>`,
	"a formula's comment":                   "$a %EVIL$",
	"white words after a price":             "It costs $10 and $\\color{white}{EVIL}$",
	"white words":                           `$\color{white}{EVIL}$`,
	"tiny words":                            `$$\tiny\text{EVIL}$$`,
	"a phantom":                             `$a\phantom{EVIL}$`,
	"a phantom in GitHub's other form":      "$`a\\phantom{EVIL}`$",
	"a phantom after a dollar sign in code": "`$` and $a\\phantom{EVIL}$",
	"a block of formulas":                   "```math\n\\textcolor{white}{EVIL}\n```",
	"a remark in a diagram":                 "```mermaid\ngraph TD\n%% EVIL\nA-->B\n```",
	"sizes":                                 "<sub><sub><sub>EVIL</sub></sub></sub>",
	"sizes of several kinds":                "<sup><sub>a<small>EVIL</small></sub></sup>",
	"an unknown element":                    "<x-y>EVIL</x-y>",
	"a parameter":                           "a <EVIL b>",
	"an address":                            "[a](https://example.org/EVIL)",
	"an address of an element":              "<a href='https://example.org/EVIL'>a</a>",
	"tags made by removal":                  "<\u200b!-- EVIL -->",
	"deep nesting":                          strings.Repeat("> ", 60) + "<b title=EVIL>",
}

// TestHiddenTextIsNotInTheTask puts each hidden text into many kinds of places. The visible text around it must remain.
func TestHiddenTextIsNotInTheTask(t *testing.T) {
	places := map[string]string{
		"alone": "%s", "between": "GOOD\n\n%s\n\nGOOD", "in a list": "- GOOD\n\n  %s\n- GOOD", "in a quotation": "> GOOD\n>\n> %s\n\nGOOD",
		"below a heading": "# GOOD\n%s\n\nGOOD", "behind code": "`GOOD`\n\n```\nGOOD\n```\n\n%s\n\nGOOD", "in details": "<details><summary>GOOD</summary>\n\n%s\n\n</details>\n\nGOOD",
	}
	for name, text := range unseenTexts {
		for where, place := range places {
			lines := "\n"
			if where == "in a list" {
				lines = "\n  "
			} else if where == "in a quotation" {
				lines = "\n> "
			}
			page := strings.ReplaceAll(place, "%s", strings.ReplaceAll(text, "\n", lines))
			got, _ := NewPage(page).seen()
			swallows := strings.Contains(name, "not closed") || strings.Contains(name, "open") || strings.Contains(name, "deep")
			if strings.Contains(got, "EVIL") || !swallows && strings.Count(got, "GOOD") != strings.Count(page, "GOOD") {
				t.Errorf("%s, %s: %q is shown as %q", name, where, page, got)
			}
			if own := NewPage(page).Own(); strings.Contains(own, "EVIL") {
				t.Errorf("%s, %s: the content of %q is %q", name, where, page, own)
			}
			whole := Visible(page)
			for line := range strings.Lines(whole) {
				if strings.Contains(line, "EVIL") && !strings.HasPrefix(line, "> Not visible on the page, and no part of the task: ") {
					t.Errorf("%s, %s: %q is in the task", name, where, line)
				}
			}
			if again, _ := NewPage(whole).seen(); again != whole && !swallows {
				t.Errorf("%s, %s: %q is read again as %q", name, where, whole, again)
			}
		}
	}
}

func TestHiddenTextIsQuoted(t *testing.T) {
	got := Visible("See [the RFC](https://example.org/rfc) for List<String>.\n")
	want := "See the RFC for List.\n\n> Not visible on the page, and no part of the task: the address of a link: `https://example.org/rfc`" +
		"\n> Not visible on the page, and no part of the task: an element `<String>`"
	if got != want {
		t.Errorf("got %q", got)
	}
	if got := Title("Parse List<String>\u200b `<!-- x -->`"); got != "Parse List<String> `<!-- x -->`" {
		t.Errorf("title %q", got)
	}
}

// TestVisibleWordsAreKept draws pages that contain only visible text.
func TestVisibleWordsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shapes := []string{"# w\n\n", "w\n", "- w\n", "1. w\n", "> w\n\n", "`w`\n", "```\nw\n```\n\n", "**w** and *w*\n", "| w | w |\n|---|---|\n| w | w |\n\n", "[w](https://example.org)\n",
			"<details><summary>w</summary>\n\nw\n\n</details>\n\n", "<kbd>w</kbd>\n", "- [ ] w\n", "~~w~~\n", "w<br>w\n", "$w$\n", "<div align=center>\nw\n</div>\n\n"}
		page := strings.Join(rapid.SliceOfN(rapid.SampledFrom(shapes), 1, 6).Draw(t, "page"), "\n")
		page = strings.ReplaceAll(page, "w", "word")
		if got, _ := NewPage(page).seen(); strings.Count(got, "word") != strings.Count(page, "word") {
			t.Fatalf("%q is shown as %q", page, got)
		}
	})
}

// GitHub finds a comment in each of these texts. If Pawl took it for code, an agent would read "evil", which is hidden from
// readers.
func TestApparentCodeHidesNoComment(t *testing.T) {
	for name, text := range map[string]string{
		"an escaped backtick":                                "\\` <!-- evil --> `",
		"a code span on the line before":                     "a `\n` <!-- evil --> `",
		"a code span after a line with invisible characters": "a `\n\u00a0\n` <!-- evil --> `",
		"backticks of another length":                        "`` <!-- evil --> `",
		"the target of a link":                               "[a](`) <!-- evil --> `",
		"the target of a link in brackets":                   "[a](<` b>) <!-- evil --> `",
		"an address":                                         "http://example.com/` <!-- evil --> `",
		"the cells of a table":                               "| a | b |\n|---|---|\n| ` | <!-- evil --> ` |",
		"a formula":                                          "$a ` b$ <!-- evil --> `",
		"an element":                                         "<div>\n` <!-- evil --> `",
		"an obsolete element":                                "<pre>\n\n\n` <!-- evil --> `",
		"a code block in a list":                             "- ```\n  a\n  ```\n<!-- evil -->",
		"a code block in a list that ends early":             "- a\n\n  ```\n  b\n```\n```\n<!-- evil -->",
		"a code block with tildes in a list":                 "- ~~~\n  a\n  ~~~\n<!-- evil -->",
		"a line that does not end a code block":              "```\n``` ```\n```\n<!-- evil -->",
		"a code block in a comment":                          "<!--\n```\n-->\n<!-- evil -->\n```",
		"a code block mark with backticks behind it":         "``` a`\n<!-- evil -->\n```",
	} {
		if got := Visible(text); strings.Contains(got, "evil") {
			t.Errorf("%s: Visible(%q) = %q", name, text, got)
		}
	}
}

func TestVisibleTextHasNoInvisibleCharacter(t *testing.T) {
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

func TestHTMLCommentIsNeverVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringOf(rapid.RuneFrom([]rune("ab<>!- \n*"))).Draw(t, "before")
		hidden := strings.ReplaceAll(anyMarkdown().Draw(t, "hidden"), "-->", "")
		// After the beginning of a tag, the comment is part of an element. A note names that element.
		got, _, _ := strings.Cut(Visible(before+"<!-- EVIL"+hidden+"-->"), "> Not visible on the page, and no part of the task: an element ")
		if strings.Contains(got, "EVIL") {
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
