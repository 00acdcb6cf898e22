package render

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pawlbot/pawl/policy"
)

// escapes matches terminal sequences (ECMA-48): CSI, the strings of OSC, DCS, SOS, PM and APC, and the short ones. It
// matches only the start of an incomplete sequence, so that the sequence cannot hide the text after it.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])?`)

// marker matches the start of a marker by which Pawl finds its own comments and blocks.
var marker = regexp.MustCompile(`(?i)<!--([\s\p{Z}]*pawl)`)

// Clean returns valid UTF-8 without terminal sequences and without invisible characters, such as control and
// bidirectional ones. It breaks forged markers. Tabs stay, and every line ends with a line feed.
func Clean(s string) string {
	s = escapes.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	s = strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t':
			return r
		case '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
			return '\n'
		}
		if policy.Invisible(r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
	return marker.ReplaceAllString(s, "<! --$1")
}

// room is the number of bytes read for each wanted character: four for the character, four for removed text. It limits
// the work on a huge text.
const room = 8

// Line returns clean text on one line with single spaces, of at most max characters.
func Line(s string, max int) string {
	start := Head(s, room*max)
	return ended(strings.Join(strings.Fields(Clean(start)), " "), max, len(start) < len(s))
}

// Block returns clean text of several lines, of at most max characters.
func Block(s string, max int) string {
	start := Head(s, room*max)
	return ended(strings.TrimSpace(Clean(start)), max, len(start) < len(s))
}

// Short cuts s to max characters and marks the cut with "…".
func Short(s string, max int) string { return ended(s, max, false) }

// ended cuts s to max characters. It marks a cut made here or by the caller with "…".
func ended(s string, max int, cut bool) string {
	if n := utf8.RuneCountInString(s); n > max || n == max && cut {
		s, cut = string([]rune(s)[:max-1]), true
	}
	if cut {
		return strings.TrimSpace(s) + "…"
	}
	return s
}

// Head returns the start of s, at most n bytes, cut between characters.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Tail returns the end of s, at most n bytes, cut between characters.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// End is a writer that keeps the last Max bytes. It is not safe for concurrent use.
type End struct {
	Max int
	buf []byte
	cut bool
}

// Write implements io.Writer. It never fails.
func (e *End) Write(p []byte) (int, error) {
	e.cut = e.cut || len(e.buf)+len(p) > e.Max
	e.buf = append(e.buf, p[max(0, len(p)-e.Max):]...)
	if len(e.buf) > 2*e.Max { // moving the bytes at every write would cost too much
		e.buf = append(e.buf[:0], e.buf[len(e.buf)-e.Max:]...)
	}
	return len(p), nil
}

func (e *End) String() string { return string(e.buf[max(0, len(e.buf)-e.Max):]) }

// Lines returns the kept text. After a cut it begins with "[cut]" and the first whole line.
func (e *End) Lines() string {
	s := strings.ToValidUTF8(e.String(), "\uFFFD")
	if _, rest, ok := strings.Cut(s, "\n"); ok && e.cut {
		s = "[cut]\n" + rest
	}
	return s
}

// Excerpt returns the clean start and end of a long text, about max bytes, cut at nearby line ends. The end gets three
// quarters, since commands report failures there.
func Excerpt(s string, max int) string {
	if len(s) > room*max {
		s = Head(s, 2*max) + "\n" + Tail(s, 6*max)
	}
	s = strings.Trim(Clean(s), "\n")
	if len(s) <= max {
		return s
	}
	first, last := Head(s, max/4), Tail(s, max*3/4)
	if i := strings.LastIndexByte(first, '\n'); i > len(first)/2 {
		first = first[:i]
	}
	if i := strings.IndexByte(last, '\n'); i >= 0 && i < len(last)/2 {
		last = last[i+1:]
	}
	return first + "\n[…]\n" + last
}
