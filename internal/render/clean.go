package render

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pawlbot/pawl/policy"
)

// escapes are the sequences of terminals (ECMA-48): CSI, the strings that OSC, DCS, SOS, PM and APC start, up
// to their end, the short ones. Of an incomplete one only its start goes: no sequence without an end hides what
// follows, as it would in any terminal's parser.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])?`)

// marker is the start of a marker by which Pawl finds its own comments and blocks again.
var marker = regexp.MustCompile(`(?i)<!--([\s\p{Z}]*pawl)`)

// Clean returns text with valid UTF-8 and line feeds, without sequences of terminals and characters that are
// invisible, such as control and bidirectional ones, and with forged markers broken. Line feeds and tabs stay.
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

// room is how many bytes are looked at for each character that is wanted: four, and as much for what cleaning
// removes. It keeps the work on a huge text small.
const room = 8

// Line is clean text on one line with single spaces, of at most max characters.
func Line(s string, max int) string {
	start := Head(s, room*max)
	return ended(strings.Join(strings.Fields(Clean(start)), " "), max, len(start) < len(s))
}

// Block is clean text of several lines, of at most max characters.
func Block(s string, max int) string {
	start := Head(s, room*max)
	return ended(strings.TrimSpace(Clean(start)), max, len(start) < len(s))
}

// Short cuts s to max characters and shows that it did.
func Short(s string, max int) string { return ended(s, max, false) }

// ended is s of at most max characters, with a sign of more where some were cut here or before.
func ended(s string, max int, cut bool) string {
	if n := utf8.RuneCountInString(s); n > max || n == max && cut {
		s, cut = string([]rune(s)[:max-1]), true
	}
	if cut {
		return strings.TrimSpace(s) + "…"
	}
	return s
}

// Head is the start of s, at most n bytes, cut between characters.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Tail is the end of s, at most n bytes, cut between characters.
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

// End keeps the end of what one writer writes: at most Max bytes.
type End struct {
	Max int
	buf []byte
	cut bool
}

// Write implements io.Writer. It never fails.
func (e *End) Write(p []byte) (int, error) {
	e.cut = e.cut || len(e.buf)+len(p) > e.Max
	e.buf = append(e.buf, p[max(0, len(p)-e.Max):]...)
	if len(e.buf) > 2*e.Max { // moving what is kept at every write would cost too much
		e.buf = append(e.buf[:0], e.buf[len(e.buf)-e.Max:]...)
	}
	return len(p), nil
}

func (e *End) String() string { return string(e.buf[max(0, len(e.buf)-e.Max):]) }

// Lines is what is kept, from a line's beginning where something was cut.
func (e *End) Lines() string {
	s := strings.ToValidUTF8(e.String(), "\uFFFD")
	if _, rest, ok := strings.Cut(s, "\n"); ok && e.cut {
		s = "[cut]\n" + rest
	}
	return s
}

// Excerpt is the clean start and end of a long text, about max bytes, cut at line ends where any are near. The
// end, where commands say how they failed, gets three quarters.
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
