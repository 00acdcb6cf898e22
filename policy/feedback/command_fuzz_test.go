package feedback

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyMarkdown draws lines of commands, quotes, code and comments in any order.
func anyMarkdown() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"/pawl solve it", "/pawl stop", "/pawl", "@pawl x", "```", "````", "~~~", "`", "``", "<!--", "-->", "<pre>", "</pre>",
		"<blockquote>", "</blockquote>", "> ", "- ", "1. ", "    ", "\t", " ", "\r", "x", "|", "\\", "On Tue, he said and wrote:",
		"-----Original Message-----", "From: x", "To: x", "\u200b", "\xff", "[//]: # (x)", "](", "$",
	})
	line := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces"), "")
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), "\n")
	})
}

// hidings are ways to quote or hide a text, so that none of its lines counts as the writer's own.
var hidings = map[string]func(string) string{
	"quote": func(s string) string { return "> " + strings.ReplaceAll(unixLines(s), "\n", "\n> ") },
	"comment": func(s string) string {
		return "<!--\n" + strings.ReplaceAll(unixLines(s), ">", "") + "\n-->"
	},
	"code block": func(s string) string {
		return strings.Repeat("`", len(s)+3) + "\n" + unixLines(s) + "\n" + strings.Repeat("`", len(s)+3)
	},
	"indented code":     func(s string) string { return "    " + strings.ReplaceAll(unixLines(s), "\n", "\n    ") },
	"original message":  func(s string) string { return "-----Original Message-----\n" + s },
	"open comment":      func(s string) string { return "x <!--\n" + strings.ReplaceAll(s, ">", "") },
	"unfinished fence":  func(s string) string { return strings.Repeat("~", len(s)+3) + "\n" + s },
	"quotation in HTML": func(s string) string { return "<blockquote>\n" + strings.ReplaceAll(unixLines(s), "</", "") },
}

func TestHiddenCommandIsIgnored(t *testing.T) {
	for name, hide := range hidings {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				body := hide(anyMarkdown().Draw(t, "text"))
				if c, ok := ParseCommand(body, "pawl"); ok {
					t.Fatalf("found %+v in %q", c, body)
				}
			})
		})
	}
}

func TestCommandBelowQuotesIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := hidings["quote"](anyMarkdown().Draw(t, "text")) + "\n\n/pawl retry"
		if c, ok := ParseCommand(body, "pawl"); !ok || c.Name != "retry" {
			t.Fatalf("found %+v, %v in %q", c, ok, body)
		}
	})
}

func FuzzParseCommandNeverPanics(f *testing.F) {
	f.Add("/pawl solve it\n> x\n```\n<!-- `\n", "pawl")
	f.Add("@p\u00e4wl x\r\n-----Original Message-----", "p\u00e4wl")
	f.Fuzz(func(t *testing.T, body, slug string) {
		c, ok := ParseCommand(body, slug)
		if ok != (c.Name != "") {
			t.Fatalf("ParseCommand(%q) = %+v, %v", body, c, ok)
		}
		if c, ok := ParseCommand(hidings["quote"](body), slug); ok {
			t.Fatalf("found %+v in a quote of %q", c, body)
		}
	})
}
