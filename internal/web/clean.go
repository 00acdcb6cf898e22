package web

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ansi are the terminal sequences that agents and test runners print (ECMA-48).
var ansi = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -~]?`)

// text is valid UTF-8 of at most max characters without terminal sequences and
// without control, bidirectional and other invisible characters, which could
// show something else than is there. Line feeds and tabs stay.
func text(s string, max int) string {
	// What cleaning removes seldom outweighs what it keeps; the bound keeps the
	// work on a huge text small.
	s, cut := head(s, 8*max)
	s = strings.ReplaceAll(ansi.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), ""), "\r\n", "\n")
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r', r == '\v', r == '\f', r == '\u0085', r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		}
		return r
	}, s))
	if utf8.RuneCountInString(s) > max {
		s, cut = string([]rune(s)[:max-1]), true
	}
	if cut {
		return strings.TrimSpace(s) + "…"
	}
	return s
}

// line is text on one line with single spaces.
func line(s string, max int) string {
	return strings.Join(strings.Fields(text(s, max)), " ")
}

// head is the start of s, at most n bytes, cut between characters.
func head(s string, n int) (start string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], true
}

// webURL is the address if a browser may be sent there, else empty.
func webURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}
