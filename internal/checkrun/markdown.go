package checkrun

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// code is one line of hostile text as inline code, at most 160 runes. A pipe
// becomes a broken bar, because a table splits its cells before it reads code.
func code(s string) string {
	s = strings.ReplaceAll(line(s, 160), "|", "¦")
	if s == "" {
		return "` `"
	}
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// fence is hostile text as a fenced block, at most about max bytes. The fence is
// longer than any in the text, so nothing in it can end the block.
func fence(s string, max int) string {
	s = excerpt(s, max)
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if len(ticks) < 3 {
		ticks = "```"
	}
	return ticks + "text\n" + s + "\n" + ticks
}

// longestRun is the length of the longest run of c in s.
func longestRun(s string, c byte) int {
	longest, n := 0, 0
	for i := range len(s) {
		if s[i] != c {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}

// plain matches a word that holds only letters, digits and punctuation that
// Markdown gives no meaning inside a line; telling matches what GitHub would
// still make a link or a picture of: addresses, references like GH-12, commit
// hashes and emoji names; opening matches what starts a list at the start of a
// line.
var (
	plain   = regexp.MustCompile(`^[\p{L}\p{M}\p{N}×–—…%'"’“”.,;:!?()+-]+$`)
	telling = regexp.MustCompile(`(?i)www\.|[a-z]-\d|[0-9a-f]{7}|:[a-z0-9+-]+:|mailto:|xmpp:`)
	opening = regexp.MustCompile(`^(?:[+-]|[0-9]+[.)])`)
)

// commandWords are what may follow /pawl.
var commandWords = []string{"solve", "retry", "stop", "resume", "escalate", "use", "status", "why"}

// prose is one sentence that mixes Pawl's words with those of others, at most
// 400 runes: words that could be more than words are set as inline code, and
// RFC 3339 times are written as people read them.
func prose(s string, now time.Time) string {
	var out, risky []string
	flush := func(after string) {
		if len(risky) > 0 {
			out = append(out, code(strings.Join(risky, " "))+after)
			risky = nil
		}
	}
	for i, word := range strings.Fields(line(s, 400)) {
		core := strings.TrimRight(word, ".,;:!?)")
		after := word[len(core):]
		at, err := time.Parse(time.RFC3339, core)
		switch {
		case err == nil:
			flush("")
			out = append(out, Instant(now, at)+after)
			continue
		case len(risky) > 0 && risky[len(risky)-1] == "/pawl" && slices.Contains(commandWords, core):
			risky = append(risky, core)
		case harmless(word, i == 0):
			flush("")
			out = append(out, word)
			continue
		case core == "":
			risky = append(risky, word)
			continue
		default:
			risky = append(risky, core)
		}
		if after != "" {
			flush(after)
		}
	}
	flush("")
	return strings.Join(out, " ")
}

// harmless reports whether a word stays a word wherever it stands in a line, or
// at its start.
func harmless(word string, first bool) bool {
	if !plain.MatchString(word) || telling.MatchString(word) || first && opening.MatchString(word) {
		return false
	}
	return strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r > 127 })
}

// label is a short name for places that are not Markdown, such as titles: a
// character that a name of ours does not need becomes a low line.
func label(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" ._-", r) {
			return r
		}
		return '_'
	}, line(s, 40))
}

// bare matches names that need no code around them.
var bare = regexp.MustCompile(`^[a-z][a-z0-9./-]*$`)

// name is a backend's or repository's name inside a sentence.
func name(s string) string {
	if s = line(s, 100); bare.MatchString(s) && !telling.MatchString(s) && !strings.Contains(s, "//") {
		return s
	}
	return code(s)
}

// words writes one of our own terms for people: usage_limit as usage limit.
func words(term string, now time.Time) string {
	return prose(strings.ReplaceAll(line(term, 40), "_", " "), now)
}

// safeURL matches the web addresses that Pawl links to; everything else is left
// out.
var safeURL = regexp.MustCompile(`^https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~%/#?=&+-]*)?$`)

// link is a Markdown link with a text of ours; empty for an address that is
// none.
func link(text, url string) string {
	if len(url) > 300 || !safeURL.MatchString(url) {
		return ""
	}
	return "[" + text + "](" + url + ")"
}

// safeThread matches owner/repo#n.
var safeThread = regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+#[0-9]+$`)

// threadName is the thread as it stands in markers and identifiers; anything but
// owner/repo#n becomes unknown.
func threadName(thread string) string {
	if len(thread) > 200 || !safeThread.MatchString(thread) {
		return "unknown"
	}
	return thread
}

// repoName is the repository of a thread.
func repoName(thread string) string {
	repo, _, _ := strings.Cut(threadName(thread), "#")
	return repo
}
