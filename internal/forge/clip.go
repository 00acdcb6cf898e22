package forge

import (
	"fmt"
	"strings"

	"github.com/pawlbot/pawl/internal/text"
)

// MaxText is the length in bytes at which every body, summary and text is cut
// before it is sent. GitHub refuses bodies over 65,536 characters and
// summaries over 65,535 bytes, and cuts a check run's text silently; the rest
// is room for what is added after the cut.
const MaxText = 60_000

// noticeRoom is what the cut's notice, a closing fence and a closing comment
// may need.
const noticeRoom = 128

// Clip cuts a Markdown text to at most limit bytes. It cuts at the end of a
// line, or between two runes where the line is very long, closes a code fence
// or HTML comment that the cut left open, and says how much is missing. A text
// that fits is returned as it is, except that bytes which are not UTF-8 become
// U+FFFD and NUL goes, as GitHub takes neither.
func Clip(body string, limit int) string {
	body = strings.ToValidUTF8(strings.ReplaceAll(body, "\x00", ""), "\uFFFD")
	if len(body) <= limit {
		return body
	}
	if limit <= 2*noticeRoom {
		return text.Head(body, max(0, limit))
	}
	head := cutLines(body, limit-noticeRoom)
	notice := fmt.Sprintf("\n\n*… %d more bytes were cut here*", len(body)-len(head))
	closing := closeOpen(head)
	if len(closing)+len(notice) > noticeRoom {
		// A fence of a hundred backticks is nobody's honest text.
		return text.Head(head, limit)
	}
	return head + closing + notice
}

// cutLines cuts at the last line end in the second half of what fits, without
// that line end, and else between two runes.
func cutLines(body string, limit int) string {
	head := text.Head(body, limit)
	if body[len(head)] == '\n' {
		return head
	}
	if end := strings.LastIndexByte(head, '\n'); end >= limit/2 {
		return head[:end]
	}
	return head
}

// closeOpen returns what closes the code fence or the HTML comment that is
// open at the end of a text.
func closeOpen(head string) string {
	fence := ""
	comment := false
	for line := range strings.Lines(head) {
		switch mark, rest := fenceMark(line); {
		case comment:
			comment = !strings.Contains(line, "-->")
		case fence == "" && mark != "":
			fence = mark
		case fence != "" && mark != "" && mark[0] == fence[0] && len(mark) >= len(fence) && rest == "":
			fence = ""
		case fence == "":
			at := strings.LastIndex(line, "<!--")
			comment = at >= 0 && !strings.Contains(line[at:], "-->")
		}
	}
	switch {
	case fence != "":
		return "\n" + fence
	case comment:
		return "\n-->"
	default:
		return ""
	}
}

// fenceMark returns the run of three or more backticks or tildes that makes a
// line a code fence, and what follows it (CommonMark 0.31, section 4.5).
func fenceMark(line string) (mark, rest string) {
	body := strings.TrimLeft(line, " ")
	if len(line)-len(body) > 3 || body == "" || (body[0] != '`' && body[0] != '~') {
		return "", ""
	}
	n := len(body) - len(strings.TrimLeft(body, body[:1]))
	rest = strings.TrimSpace(body[n:])
	if n < 3 || body[0] == '`' && strings.Contains(rest, "`") {
		return "", ""
	}
	return body[:n], rest
}

// clipLine makes one line of at most limit runes, for titles and labels.
func clipLine(s string, limit int) string {
	line := []rune(strings.Join(strings.Fields(Clip(s, MaxText)), " "))
	if len(line) <= limit {
		return string(line)
	}
	return string(line[:limit-1]) + "…"
}

// withMarker clips a body so that the marker by which it is found again stays
// in it.
func withMarker(body, marker string) string {
	clipped := Clip(body, MaxText)
	if strings.Contains(clipped, marker) {
		return clipped
	}
	return Clip(body, MaxText-len(marker)-2) + "\n\n" + marker
}
