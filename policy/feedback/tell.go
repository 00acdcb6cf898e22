package feedback

import (
	"regexp"
	"strings"
)

// What people are told of a remark that is ignored: that they may not give orders, or that it was none.
const (
	Refused = "refused"
	NoOrder = "no_order"
)

// byPerson reports whether a person said it just now, in words.
func byPerson(r Remark) bool {
	return !r.Actor.Bot() && r.App == 0 && !r.Edited && spoken(r.Source)
}

// codeSpan is code within a line.
var codeSpan = regexp.MustCompile("`+[^`]*`+")

// Mentions reports whether the writer's own words name the App, as a mention that is no order does within a line.
func Mentions(body, slug string) bool {
	for _, l := range readLines(unixLines(body)) {
		if l.kind != plainLine {
			continue
		}
		said := codeSpan.ReplaceAllString(Visible(l.text), "`")
		for i := strings.IndexByte(said, '@'); i >= 0; {
			if _, ok := afterMention(said[i:], slug); ok && (i == 0 || startsWithSpace(said[i-1:]) || said[i-1] == '(') {
				return true
			}
			next := strings.IndexByte(said[i+1:], '@')
			if next < 0 {
				break
			}
			i += 1 + next
		}
	}
	return false
}
