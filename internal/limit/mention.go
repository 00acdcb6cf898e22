package limit

import (
	"regexp"
	"slices"
	"strings"
)

// mention matches any lower-case text about a limit. Mentions are only counted, so false matches do no harm.
var mention = regexp.MustCompile(`(?:usage|rate|session|weekly|daily|monthly|spend|spending|hour|opus|request)[ _\-‑]?limits?\b` +
	`|hit your (?:\w+ )?limit|limit[ _]?reached|quota (?:exceeded|reached|limit)|(?:current|daily|your) quota` +
	`|too many requests\b|out of (?:credits|extra usage)`)

// cues are parts of words that each mention contains. mention is tried only around them, since commands print much.
var cues = []string{"imit", "uota", "equests", "ut of "}

// around is the number of bytes checked on each side of a cue; longestWord extends them to the end of a word.
const around, longestWord = 32, 256

func Mentioned(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(cues, func(cue string) bool { return mentionedAt(text, cue) })
	})
}

func mentionedAt(text, cue string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], cue)
		if at < 0 {
			return false
		}
		at += from
		if mention.MatchString(strings.ToLower(about(text, at))) {
			return true
		}
		from = at + len(cue)
	}
}

func about(text string, at int) string {
	after := text[min(len(text), at+around):min(len(text), at+longestWord)]
	next := strings.TrimLeft(after, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	end := min(len(text), at+longestWord) - len(next)
	return text[max(0, at-around):end]
}
