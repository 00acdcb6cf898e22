package checkrun

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ansi are the terminal sequences that agents and test runners print: CSI, OSC
// up to its terminator, and two-byte escapes (ECMA-48).
var ansi = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -~]?`)

// marker is the start of a marker as Pawl writes it into comments.
var marker = regexp.MustCompile(`(?i)<!--(\s*pawl)`)

// blank are characters that show nothing although Unicode does not class them as
// format characters: fillers and variation selectors, which can hide text.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, {Lo: 0x115f, Hi: 0x1160, Stride: 1}, {Lo: 0x180b, Hi: 0x180f, Stride: 1},
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, {Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, {Lo: 0xffa0, Hi: 0xffa0, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}},
}

// clean returns text with valid UTF-8 and line feeds, without terminal
// sequences, control, bidirectional and invisible characters, and with forged
// markers broken.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = ansi.ReplaceAllString(s, "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r', r == '\v', r == '\f', r == '\u0085', r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.In(r, unicode.Cc, unicode.Cf, blank):
			return -1
		}
		return r
	}, s)
	return marker.ReplaceAllString(s, "<! --$1")
}

// line is clean text on one line with single spaces, of at most max runes.
func line(s string, max int) string {
	// Four bytes a rune and as much again for what cleaning removes keep the
	// work on a huge text small.
	s = strings.Join(strings.Fields(clean(head(s, 8*max))), " ")
	// Spaces that only Unicode knows are plain ones now.
	return short(marker.ReplaceAllString(s, "<! --$1"), max)
}

// short cuts s to max runes and shows that it did.
func short(s string, max int) string {
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:max-1])) + "…"
}

// head is the start of s, at most n bytes, cut between runes.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail is the end of s, at most n bytes, cut between runes.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// excerpt keeps the start and the end of a long text, at most about max bytes,
// cut at line ends where there are any near. The end gets three quarters: that
// is where commands say how they failed.
func excerpt(s string, max int) string {
	if len(s) > 8*max {
		s = head(s, 2*max) + "\n" + tail(s, 6*max)
	}
	s = strings.Trim(clean(s), "\n")
	if len(s) <= max {
		return s
	}
	first, last := head(s, max/4), tail(s, max*3/4)
	if i := strings.LastIndexByte(first, '\n'); i > len(first)/2 {
		first = first[:i]
	}
	if i := strings.IndexByte(last, '\n'); i >= 0 && i < len(last)/2 {
		last = last[i+1:]
	}
	return first + "\n[…]\n" + last
}
