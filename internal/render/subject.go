package render

import (
	"regexp"
	"strings"
)

// Parts of a plain line that GitHub or a CI system acts on: addresses, mentions, references to issues and commits, and
// markers in brackets such as [skip ci].
var (
	webAddress = regexp.MustCompile(`(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.)\S+`)
	ghNumber   = regexp.MustCompile(`(?i)\bgh-(\d)`)
	skipOption = regexp.MustCompile(`(?i)-+(skip-ci)\b`) // Codeship's
	commitish  = regexp.MustCompile(`\b[0-9a-fA-F]{7,64}\b`)
	brackets   = strings.NewReplacer("[", "(", "]", ")", "***", "")
	signs      = strings.NewReplacer("://", " ", "@", " ", "#", " ", "`", "", "<", "", ">", "")
)

// Title is the first line of a commit or the title of a pull request. Only Subject makes one, so every title is harmless.
// The zero value is empty.
type Title struct{ line string }

func (t Title) String() string { return t.line }

// Subject turns any text into a title of at most max bytes: one line that mentions nobody, refers to nothing, closes
// nothing and skips no check.
func Subject(s string, max int) Title {
	s = Line(s, 4*max)
	for before := ""; s != before; { // a removal may create a match for another rule
		before, s = s, disarm(s)
	}
	if len(s) > max {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:max-len("…")], "")) + "…"
	}
	return Title{s}
}

// disarm applies each rule once. No rule makes the text longer.
func disarm(s string) string {
	s = webAddress.ReplaceAllString(s, "")
	s = signs.Replace(brackets.Replace(s))
	s = skipOption.ReplaceAllString(ghNumber.ReplaceAllString(s, "GH $1"), "$1")
	s = commitish.ReplaceAllStringFunc(s, func(hex string) string {
		mixed := strings.ContainsAny(hex, "0123456789") && strings.ContainsAny(hex, "abcdefABCDEF")
		if mixed || len(hex) >= 40 {
			return ""
		}
		return hex
	})
	return strings.Join(strings.Fields(s), " ")
}

// inert lists what GitHub and CI systems act on in a commit message, each with a replacement that is not longer.
var inert = []struct {
	acts *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\[([^\[\]\n]*(?i:skip|\bci\b)[^\[\]\n]*)\]`), "($1)"},
	{regexp.MustCompile(`(?i)\*\*\*(no_ci)\*\*\*`), "$1"},
	{skipOption, "$1"},
	{regexp.MustCompile(`(?im)^(\W*skip-checks):`), "$1"},
	{regexp.MustCompile(`#(\d)`), " $1"},
	{regexp.MustCompile(`(?i)\b(gh)-(\d)`), "$1 $2"},
	{regexp.MustCompile(`(?i)(://[^\s/]+/[^\s/]+/[^\s/]+/(?:issues|pulls?|discussions))/(\d)`), "$1 $2"},
	{regexp.MustCompile(`(?m)(^|[^\w/])@(\w)`), "$1 $2"},
	{regexp.MustCompile(`@([0-9a-f]{7})`), " $1"},
}

// Inert makes a text harmless as a commit message, even inside code: it mentions nobody, closes and refers to nothing,
// and skips no check. A squash merge turns a pull request's description into a commit message.
func Inert(s string) string {
	for _, i := range inert {
		s = i.acts.ReplaceAllString(s, i.with)
	}
	return s
}
