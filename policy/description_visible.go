package policy

import (
	"regexp"
	"strings"
	"unicode"
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
	text = withoutComments(unixLines(text))
	text = nowhere.ReplaceAllString(text, "")
	text = strings.Map(shown, text)
	// Taking characters out can put a comment together. It was no comment on
	// the page, but what is sent on should not look like one.
	return withoutComments(text)
}

// shown maps a character to itself, to a space, or to nothing (-1).
func shown(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || ' ' <= r && r <= '~':
		return r
	case unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
		return ' '
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return r // the Arabic number signs and their like are format characters with a shape
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	}
	return r
}

// withoutComments removes HTML comments.
func withoutComments(text string) string {
	var kept strings.Builder
	from := 0
	for _, c := range htmlComments(text) {
		kept.WriteString(text[from:c.start])
		from = c.end
	}
	kept.WriteString(text[from:])
	return kept.String()
}
