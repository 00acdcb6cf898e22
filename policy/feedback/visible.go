package feedback

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/pawlbot/pawl/policy"
)

// nowhere matches link definitions that lead nowhere, which people use as
// comments because GitHub does not show them: [//]: # (like this).
var nowhere = regexp.MustCompile(`(?m)^ {0,3}\[[^\]\n]+\]:[ \t]*\n?[ \t]*(?:#|<>)[ \t]*\n?[ \t]*(?:\([^()]*\)|"[^"]*"|'[^']*')[ \t]*$`)

// Visible returns the part of a text from GitHub that a reader sees there. It
// removes HTML comments (an unclosed one hides the rest), link definitions that
// lead nowhere, characters without a shape (zero-width, bidirectional controls,
// tags, variation selectors, fillers) and control characters other than tab and
// line feed. Line ends become line feeds, bytes that are not UTF-8 become
// U+FFFD.
//
// Prompts are built from it: instructions that a maintainer cannot see must not
// reach an agent. It does not judge what a page merely folds away or shows on
// hovering, such as <details> or titles of links.
func Visible(text string) string {
	text = withoutComments(strings.ToValidUTF8(unixLines(text), "\uFFFD"))
	text = nowhere.ReplaceAllString(text, "")
	text = strings.Map(shown, text)
	// Taking characters out can put a comment together. It was no comment on
	// the page, but what is sent on should not look like one.
	return withoutComments(text)
}

// shown maps a character to itself, to a space, or to nothing (-1).
func shown(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
		return ' '
	case policy.Invisible(r):
		return -1
	}
	return r
}

// maxPasses bounds how often comments are looked for: what is left when some were
// taken out can be another comment, and a hostile text can go on with that.
const maxPasses = 8

func withoutComments(text string) string {
	for range maxPasses {
		if !strings.Contains(text, "<!--") {
			return text
		}
		p := readPage(text)
		comments := p.comments(text)
		if len(comments) == 0 {
			return text
		}
		text = without(text, comments)
	}
	none := page{} // no code counts any more
	return without(text, none.comments(text))
}

func without(text string, spans []span) string {
	var kept strings.Builder
	from := 0
	for _, s := range spans {
		kept.WriteString(text[from:s.start])
		from = s.end
	}
	kept.WriteString(text[from:])
	return kept.String()
}
