package feedback

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// text joins lines; it keeps the tables below readable.
func text(lines ...string) string { return strings.Join(lines, "\n") }

func TestCommandsAreUnderstood(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       Command
	}{
		{"a bare command", "/pawl solve", Command{Name: "solve", Text: ""}},
		{"a command with text", "/pawl solve only the parser", Command{Name: "solve", Text: "only the parser"}},
		{"any case", "/Pawl SOLVE Only The Parser", Command{Name: "solve", Text: "Only The Parser"}},
		{"punctuation behind the word", "/pawl solve: the parser", Command{Name: "solve", Text: "the parser"}},
		{"an exclamation", "/pawl stop!", Command{Name: "stop", Text: ""}},
		{"a question", "/pawl why?", Command{Name: "why", Text: ""}},
		{"retry", "/pawl retry", Command{Name: "retry", Text: ""}},
		{"resume", "/pawl resume", Command{Name: "resume", Text: ""}},
		{"escalate with a reason", "/pawl escalate it goes round in circles", Command{Name: "escalate", Text: "it goes round in circles"}},
		{"status", "/pawl status", Command{Name: "status", Text: ""}},
		{"use takes one word", "/pawl use codex please", Command{Name: "use", Text: "codex"}},
		{"use takes a backend written as code", "/pawl use `codex`", Command{Name: "use", Text: "codex"}},
		{"use without a backend", "/pawl use", Command{Name: "use", Text: ""}},
		{"an unknown word is answered with help", "/pawl sovle it", Command{Name: "unknown", Text: "sovle"}},
		{"no word is answered with help", "/pawl", Command{Name: "unknown", Text: ""}},
		{"help is answered with help", "/pawl help", Command{Name: "unknown", Text: "help"}},
		{"spaces before it", "   /pawl retry", Command{Name: "retry", Text: ""}},
		{"spaces and tabs between the words", "/pawl \t retry  ", Command{Name: "retry", Text: ""}},
		{"a no-break space between the words", "/pawl\u00a0retry", Command{Name: "retry", Text: ""}},
		{"a no-break space before it", "\u00a0/pawl retry", Command{Name: "retry", Text: ""}},
		{"a zero-width space before and within it", "\u200b/pa\u200bwl\u200b retry", Command{Name: "retry", Text: ""}},
		{"a byte order mark before it", "\ufeff/pawl retry", Command{Name: "retry", Text: ""}},
		{"a list item", "- /pawl solve the parser", Command{Name: "solve", Text: "the parser"}},
		{"a numbered item in bold", "1. **/pawl solve** the parser", Command{Name: "solve", Text: "the parser"}},
		{"a heading", "## /pawl retry", Command{Name: "retry", Text: ""}},
		{"bold around it", "**/pawl solve the parser**", Command{Name: "solve", Text: "the parser"}},
		{"emphasis in emphasis", "**_/pawl retry_**", Command{Name: "retry", Text: ""}},
		{"bold around the name only", "/pawl **retry**", Command{Name: "retry", Text: ""}},
		{"an escaped slash", "\\/pawl retry", Command{Name: "retry", Text: ""}},
		{"a colon behind /pawl", "/pawl: solve it", Command{Name: "solve", Text: "it"}},
		{"wide characters", "／ｐａｗｌ　ｓｏｌｖｅ 修复，请", Command{Name: "solve", Text: "修复，请"}},
		{"a mention in a list", "* @pawl please", Command{Name: "solve", Text: "please", Mention: true}},
		{"a mention in bold", "**@pawl**, please", Command{Name: "solve", Text: "please", Mention: true}},
		{"a mention behind a zero-width space", "\u200b@pawl please", Command{Name: "solve", Text: "please", Mention: true}},
		{"a mention with a wide comma", "@pawl，修复", Command{Name: "solve", Text: "修复", Mention: true}},
		{"Windows line ends", "Hello\r\n\r\n/pawl retry\r\n", Command{Name: "retry", Text: ""}},
		{"text above", text("That is wrong.", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"a mention means solve", "@pawl please look at this", Command{Name: "solve", Text: "please look at this", Mention: true}},
		{"a mention in any case", "@PAWL please", Command{Name: "solve", Text: "please", Mention: true}},
		{"a mention of the bot user", "@pawl[bot] please", Command{Name: "solve", Text: "please", Mention: true}},
		{"a mention with a comma", "@pawl, please", Command{Name: "solve", Text: "please", Mention: true}},
		{"a bare mention", "@pawl", Command{Name: "solve", Text: "", Mention: true}},
		{"a mention that only says stop", "@pawl stop!", Command{Name: "stop", Text: "", Mention: true}},
		{"a mention that says more than stop", "@pawl stop using globals", Command{Name: "solve", Text: "stop using globals", Mention: true}},
		{"the first of several commands", text("/pawl retry", "/pawl status"), Command{Name: "retry", Text: ""}},
		{"stop wins at any position", text("/pawl solve it", "more", "", "/pawl stop"), Command{Name: "stop", Text: ""}},
		{"stop in a quote does not win", text("/pawl retry", "", "> /pawl stop"), Command{Name: "retry", Text: ""}},
		{"text over many lines", text("/pawl solve the parser", "and the printer", "", "- both"), Command{Name: "solve", Text: text("the parser", "and the printer", "", "- both")}},
		{"steer takes all lines up to the next command", text("/pawl Steer: not the parser,", "", "the printer <!-- evil -->", "/pawl status"), Command{Name: "steer", Text: text("not the parser,", "", "the printer")}},
		{"steer without a text", "/pawl steer", Command{Name: "steer", Text: ""}},
		{"text that begins on the next line", text("/pawl solve", "", "the parser"), Command{Name: "solve", Text: "the parser"}},
		{"text up to the next command", text("/pawl solve a", "b", "/pawl status", "c"), Command{Name: "solve", Text: text("a", "b")}},
		{"code and quotes belong to the text", text("@pawl this:", "```", "/pawl stop", "```", "> and this"), Command{Name: "solve", Text: text("this:", "```", "/pawl stop", "```", "> and this"), Mention: true}},
		{"comments do not belong to the text", text("/pawl solve a <!-- evil", "worse --> b", "c"), Command{Name: "solve", Text: text("a  b", "c")}},
		{"invisible characters do not belong to the text", "/pawl solve a\u200b\U000e0041b", Command{Name: "solve", Text: "ab"}},
		{"only solve takes further lines", text("/pawl retry now", "please"), Command{Name: "retry", Text: "now"}},
		{"mail quoted below is not text", text("/pawl solve a", "", "On Tue, 4 Nov 2025, A B wrote:", "> x", "> y"), Command{Name: "solve", Text: "a"}},
		{"words below quoted mail are text", text("/pawl solve a", "", "On Tue, 4 Nov 2025, A B wrote:", "> x", "", "b"), Command{Name: "solve", Text: text("a", "", "b")}},
		{"behind a closed code block", text("```", "x", "```", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind a code block with a longer end", text("~~~ text", "x", "~~~~~", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind three backticks used inline", text("```x``` is it", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind a comment", text("<!-- x", "y -->", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind a comment that is code", text("`<!--` is not handled", "", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind an open comment in a code block", text("```html", "<!--", "```", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind a quote and a blank line", text("> why?", "", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind one backtick", text("a ` b", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind a tag in code", text("the `<pre>` tag", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"behind quoted HTML", text("<blockquote>x</blockquote>", "", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"folded text is visible", text("<details>", "", "/pawl retry", "</details>"), Command{Name: "retry", Text: ""}},
		{"a sentence about mail", text("From: the docs I take that it should work.", "/pawl retry"), Command{Name: "retry", Text: ""}},
		{"words below quoted mail", text("On Tue, 4 Nov 2025, A B wrote:", "> x", "", "/pawl retry"), Command{Name: "retry", Text: ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := ParseCommand(tc.body, "pawl")
			if diff := cmp.Diff(tc.want, got); diff != "" || !ok {
				t.Errorf("ParseCommand(%q) ok = %v (-want +got):\n%s", tc.body, ok, diff)
			}
		})
	}
}

func TestNonCommandsAreIgnored(t *testing.T) {
	for _, tc := range []struct{ name, body string }{
		{"nothing", ""},
		{"words in a line", "please /pawl solve"},
		{"another word", "/pawlish solve"},
		{"a path", "/pawl/solve"},
		{"a path behind a list item's sign", "- /pawl/solve"},
		{"a struck-out command", "~~/pawl solve~~"},
		{"a task in a list", "- [ ] /pawl solve"},
		{"inline code", "`/pawl solve`"},
		{"inline code over two lines", text("see `this", "/pawl solve", "thing`")},
		{"a code block", text("```", "/pawl solve", "```")},
		{"a code block with a language", text("```sh", "/pawl solve", "```")},
		{"a code block with tildes", text("~~~", "/pawl solve", "~~~")},
		{"a code block that shorter marks do not end", text("````", "```", "/pawl solve", "````")},
		{"a code block that other marks do not end", text("```", "~~~", "/pawl solve", "```")},
		{"a code block whose end has text after it", text("```", "``` x", "/pawl solve", "```")},
		{"a code block that never ends", text("```", "x", "", "/pawl solve")},
		{"an indented code block", text("   ```", "/pawl solve", "   ```")},
		{"a code block in a list", text("- ```", "  /pawl solve", "  ```")},
		{"a code block in a numbered list", text("1. x", "", "   ```", "   /pawl solve", "   ```")},
		{"indented code", text("x", "", "    /pawl solve")},
		{"code indented by a tab", text("x", "", "\t/pawl solve")},
		{"code indented by spaces and a tab", text("  \t/pawl solve")},
		{"a quote", "> /pawl solve"},
		{"a quote without a space", ">/pawl solve"},
		{"an indented quote", "   > /pawl solve"},
		{"a quote in a quote", "> > /pawl solve"},
		{"a quote in a list", "- > /pawl solve"},
		{"a quote with a lazy continuation line", text("> he said", "/pawl solve")},
		{"a quote in a list with a lazy continuation line", text("- > he said", "/pawl solve")},
		{"a code block below a quote", text("> he said", "```", "", "/pawl solve", "```")},
		{"a quote in HTML", text("<blockquote>", "", "/pawl solve", "", "</blockquote>")},
		{"a quote in a quote in HTML", text("<BLOCKQUOTE><blockquote>", "</blockquote>", "/pawl solve", "</BLOCKQUOTE>")},
		{"code in HTML", text("<pre>", "/pawl solve", "</pre>")},
		{"a comment", "<!-- /pawl solve -->"},
		{"a comment over many lines", text("<!--", "/pawl solve", "", "/pawl solve", "-->")},
		{"a comment that never ends", text("x <!-- y", "", "/pawl solve")},
		{"a comment that begins in a line", text("see <!-- this", "/pawl solve", "-->")},
		{"the line on which a comment ends", text("<!--", "--> /pawl solve")},
		{"a code block mark in a comment", text("<!--", "```", "/pawl solve", "-->", "x")},
		{"a comment behind a comment", text("<!-- a --> <!-- b", "/pawl solve -->")},
		{"a comment at the start of a line in open code", text("a `b", "<!--", "` /pawl", "/pawl solve", "-->")},
		{"a quoted mail", text("On Tue, 4 Nov 2025, A B <a@example.com> wrote:", "> /pawl solve")},
		{"a quoted mail without signs", text("Thanks.", "", "On Tue, 4 Nov 2025, A B wrote:", "", "/pawl solve")},
		{"an attribution over two lines", text("On Tue, 4 Nov 2025 at 10:00, A B", "<a@example.com> wrote:", "", "/pawl solve")},
		{"an attribution in German", text("Am 4.11.2025 um 10:00 schrieb A B:", "/pawl solve")},
		{"the original message of a reply", text("No.", "-----Original Message-----", "/pawl solve")},
		{"a forwarded message", text("---------- Forwarded message ----------", "/pawl solve")},
		{"the head of a message", text("From: A B <a@example.com>", "Sent: Tuesday", "To: me", "", "/pawl solve")},
		{"the head of a message in bold", text("**From:** A B", "**Date:** Tuesday", "", "/pawl solve")},
		{"deeply nested text", text(strings.Repeat("> - ", 60), "", "/pawl solve")},
		{"a text of links without an end", text(strings.Repeat("[a](", 200), "", "/pawl solve")},
		{"a mention in a line", "thanks @pawl"},
		{"a mention of another user", "@pawl-other please"},
		{"a mention of a longer name", "@pawlbot please"},
		{"a mention of a team", "@pawl/team please"},
		{"an address", "x@pawl please"},
		{"an address with a domain", "@pawl.example please"},
		{"a possessive", "@pawl's last commit is wrong"},
		{"a mention in a quote", "> @pawl please"},
		{"a mention in code", "`@pawl please`"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, ok := ParseCommand(tc.body, "pawl"); ok {
				t.Errorf("ParseCommand(%q) = %+v, want none", tc.body, got)
			}
		})
	}
	if got, ok := ParseCommand("@ please", ""); ok {
		t.Errorf("without a slug a mention is %+v, want none", got)
	}
}

func TestNearCommandsAreNoticed(t *testing.T) {
	for body, want := range map[string]string{
		"please /pawl solve":                   "solve",
		"thanks (/pawl stop)":                  "stop",
		"/pawl-solve it":                       "solve",
		"/pawlstop":                            "stop",
		"/pawl/retry":                          "retry",
		"pawl solve":                           "solve",
		"!pawl: retry":                         "retry",
		"/ pawl stop":                          "stop",
		"~~/pawl solve~~":                      "solve",
		"- [ ] /pawl solve":                    "solve",
		"请 ／pawl solve":                        "solve",
		"`/pawl solve`":                        "solve",
		"```sh\n/pawl solve\n```":              "solve",
		"\t/pawl solve":                        "solve",
		"<b>/pawl solve</b>":                   "solve",
		"```\n@pawl please\n```":               "solve",
		"":                                     "",
		"> /pawl solve":                        "",
		"<!-- /pawl solve -->":                 "",
		"It prints `/pawl solve` twice.":       "",
		"See https://example.com/pawl/solve.":  "",
		"/pawlish solve":                       "",
		"Pawl stopped, and /pawl/x.go is red.": "",
	} {
		if got := NewPage(body).Near("pawl").Name; got != want {
			t.Errorf("Near(%q) = %q, want %q", body, got, want)
		}
	}
}

// A near command is whole if only tags, polite words and punctuation follow it.
func TestNearCommandMayHaveTagsAroundIt(t *testing.T) {
	for body, want := range map[string]bool{
		"<b>/pawl solve</b>":                        true,
		"<kbd>/pawl</kbd> <kbd>solve</kbd>, please": true,
		"<b>/pawl solve</b> is what I wrote":        false,
		"please /pawl solve a < b":                  false,
	} {
		if got := NewPage(body).Near("pawl").Whole; got != want {
			t.Errorf("Near(%q) is whole: %t, want %t", body, got, want)
		}
	}
}

func TestMentionsWithinALine(t *testing.T) {
	for body, want := range map[string]bool{
		"thanks @pawl": true, "(@pawl)": true, "Hey **@pawl**, go": true, "请@pawl修复": true, "so,@pawl: go": true,
		"x@pawl please": false, "see @pawl-other": false, "see @pawl/team": false, "see @pawl.example": false, "see `@pawl`": false, "> ask @pawl": false,
	} {
		if got := NewPage(body).Mentions("pawl"); got != want {
			t.Errorf("Mentions(%q) = %t, want %t", body, got, want)
		}
	}
}
