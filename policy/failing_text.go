package policy

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// escapes are the terminal's: colours and cursor (ECMA-48 CSI), titles and
	// links (OSC), and the short ones.
	escapes = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")
	// duration is what runners put behind a name: "(5 ms)", " 12ms", "(1.2s)",
	// "# time=3.1ms".
	duration = regexp.MustCompile(`(?: # time=[0-9.]+m?s| \((?:[0-9.]+ ?(?:ms|s|m))(?: [0-9.]+ ?(?:ms|s))?\)| [0-9.]+ms)(?: \{)?$`)
	// temporary is a folder or file that is called something else in the next run.
	temporary = regexp.MustCompile(`(?:/private)?/(?:tmp|var/tmp|var/folders)/[^\s:'"\])]+`)
	// address is where an object lay in memory.
	address = regexp.MustCompile(`0x[0-9a-fA-F]{6,16}`)
)

// plainText is output without colours, carriage returns, control characters and
// bytes that are no UTF-8. Of a line that was drawn over with a bare carriage
// return the pieces stand on lines of their own.
func plainText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.ContainsRune(s, '\x1b') {
		s = escapes.ReplaceAllString(s, "")
	}
	if strings.ContainsRune(s, '\r') {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// stableName is a name as the next run would print it.
func stableName(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = strings.TrimSpace(s[:i])
	}
	s = duration.ReplaceAllString(s, "")
	s = temporary.ReplaceAllString(s, "/tmp/…")
	s = address.ReplaceAllString(s, "0x…")
	return strings.TrimSpace(clip(s, maxFailureName))
}

// clip cuts text to at most n bytes, at a rune.
func clip(s string, n int) string {
	s = strings.Trim(s, "\n")
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// block gathers the lines of one failure. It holds little more than is kept.
type block struct {
	b     strings.Builder
	lines int
}

// maxBlockLines is where a block is over at the latest: a runner that was killed in
// the middle of one must not hide what another prints after it.
const maxBlockLines = 400

// add takes a line and reports whether the block still takes more.
func (b *block) add(line string) bool {
	if b.b.Len() < maxFailureText {
		b.b.WriteString(clip(line, maxFailureText))
		b.b.WriteByte('\n')
	}
	b.lines++
	return b.lines < maxBlockLines
}

func (b *block) text() string { return dedent(b.b.String()) }

// dedent takes the indentation away that all lines share, and blank lines from the
// ends.
func dedent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	common := -1
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if n := indent(l); common < 0 || n < common {
			common = n
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l[min(max(common, 0), indent(l)):], " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// indent is the number of spaces and tabs that a line begins with.
func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// numberBefore finds "3 failed" in a summary: the number in front of a word. ok is
// false when the word is not there.
func numberBefore(s, word string) (n int, ok bool) {
	fields := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == '|' || r == '=' || r == ':' })
	for i := 1; i < len(fields); i++ {
		if fields[i] == word {
			if n, ok := number(fields[i-1]); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// number reads a count. A hostile output may print any; more than a billion tests
// are none.
func number(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n <= 1_000_000_000
}
