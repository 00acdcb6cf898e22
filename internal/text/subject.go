package text

import (
	"regexp"
	"strings"
)

// What makes GitHub, or a CI system, do something with a line of plain text: addresses, mentions, references to issues
// and commits, and markers in brackets such as [skip ci].
var (
	webAddress = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+`)
	ghNumber   = regexp.MustCompile(`(?i)\bgh-(\d)`)
	commitish  = regexp.MustCompile(`\b[0-9a-fA-F]{7,64}\b`)
	brackets   = strings.NewReplacer("[", "(", "]", ")", "***", "")
	signs      = strings.NewReplacer("://", " ", "@", "", "#", "", "`", "", "<", "", ">", "")
)

// Subject is what somebody wrote as the first line of a commit or the title of a pull request, of at most max bytes: one
// line that mentions nobody, refers to nothing, closes nothing and skips no check, whatever it was.
func Subject(s string, max int) string {
	s = webAddress.ReplaceAllString(Line(s, 4*max), "")
	s = signs.Replace(brackets.Replace(s))
	s = ghNumber.ReplaceAllString(s, "GH $1")
	s = commitish.ReplaceAllStringFunc(s, func(hex string) string {
		if strings.ContainsAny(hex, "0123456789") && len(hex) >= 7 && strings.ContainsAny(hex, "abcdefABCDEF") || len(hex) >= 40 {
			return ""
		}
		return hex
	})
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > max {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:max-len("…")], "")) + "…"
	}
	return s
}
