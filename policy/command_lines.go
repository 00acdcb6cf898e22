package policy

import (
	"regexp"
	"slices"
	"strings"
)

// lineKind says what a line of Markdown is to somebody who looks for commands.
type lineKind byte

const (
	plainLine  lineKind = iota // the writer's own words
	quotedLine                 // a block quote, or what may belong to one
	codeLine                   // code, or indented as much as code
	hiddenLine                 // in an HTML comment, or behind its end
	mailLine                   // the quoted part of an e-mail
)

// line is one line of a text, without its line feed.
type line struct {
	text string
	kind lineKind
}

var (
	// quote matches the start of a block quote, also within lists.
	quote = regexp.MustCompile(`^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*>`)

	// fenceStart matches what may stand before the mark of a fenced code block:
	// up to three spaces, or the markers of lists.
	fenceStart = regexp.MustCompile("^(?: {0,3}|[ \t]*(?:(?:[-*+]|\\d{1,9}[.)])[ \t]+)+)(?:`{3}|~{3})")

	// element matches an HTML tag.
	element = regexp.MustCompile(`^<(/?)([A-Za-z]+)\b`)
)

// quoting are the HTML elements whose content is a quotation, code or nothing
// that a reader sees.
var quoting = []string{"blockquote", "pre", "code", "samp", "tt", "xmp", "script", "style", "textarea", "template"}

// readLines tells for each line of a text what it is. It follows Markdown as
// GitHub shows it where that is plain, and takes a line for something that holds
// no command where it is not.
func readLines(body string) []line {
	var r lineReader
	for text := range strings.SplitSeq(body, "\n") {
		r.lines = append(r.lines, line{text: text})
	}
	for i := range r.lines {
		r.lines[i].kind = r.read(i)
	}
	markMail(r.lines)
	return r.lines
}

// lineReader is the state between two lines.
type lineReader struct {
	lines   []line
	comment bool   // an HTML comment is open
	fence   string // the mark of the open code block, empty for none
	indent  int    // how far the end of that block may be indented
	quote   bool   // a quote may go on without its sign until a blank line
	code    bool   // the line before was blank or indented code
	span    int    // backticks of the open code span, 0 for none
	depth   int    // open elements of quoting
}

func (r *lineReader) read(i int) lineKind {
	text := r.lines[i].text
	if r.comment {
		end := strings.Index(text, "-->")
		if end < 0 {
			return hiddenLine
		}
		r.comment = false
		r.inline(i, end+len("-->"))
		return hiddenLine
	}
	if r.fence != "" {
		if closesFence(text, r.fence, r.indent) {
			r.fence = ""
		}
		return codeLine
	}
	return r.readBlock(i, text)
}

// readBlock reads a line outside comments and fences.
func (r *lineReader) readBlock(i int, text string) lineKind {
	wasCode := r.code || i == 0
	r.code = false
	switch {
	case strings.Trim(text, " \t") == "":
		r.quote, r.span, r.code = false, 0, true
		if r.depth > 0 {
			return quotedLine
		}
		return plainLine
	case quote.MatchString(text):
		r.quote, r.span = true, 0
		return quotedLine
	case r.opensFence(text):
		return codeLine
	case columns(text) >= 4:
		if r.code = wasCode; !wasCode {
			r.inline(i, 0)
		}
		return codeLine
	}
	kind := plainLine
	switch {
	case r.quote || r.depth > 0:
		kind = quotedLine
	case r.span > 0:
		kind = codeLine
	}
	r.inline(i, 0)
	return kind
}

// opensFence reports whether text opens a fenced code block, and opens it.
func (r *lineReader) opensFence(text string) bool {
	at := fenceStart.FindStringIndex(text)
	if at == nil {
		return false
	}
	before := at[1] - 3
	mark, ok := fenceMark(text[before:])
	if !ok {
		return false
	}
	r.fence, r.indent, r.quote, r.span = mark, before+3, false, 0
	return true
}

// inline looks through line i from an index on for what reaches beyond it:
// comments, code spans and elements.
func (r *lineReader) inline(i, from int) {
	text := r.lines[i].text
	if r.span > 0 && strings.HasPrefix(strings.TrimLeft(text[from:], " \t"), "<!--") {
		r.span = 0 // a comment at the start of a line ends the paragraph
	}
	for from < len(text) {
		rest := text[from:]
		switch {
		case rest[0] == '`':
			n := ticks(rest)
			if r.span == 0 && r.spanCloses(i, from+n, n) {
				r.span = n
			} else if r.span == n {
				r.span = 0
			}
			from += n
		case r.span == 0 && rest[0] == '\\' && len(rest) > 1 && rest[1] == '`':
			from += 2
		case r.span == 0 && strings.HasPrefix(rest, "<!--"):
			if !strings.Contains(rest[2:], "-->") {
				r.comment = true
				return
			}
			from += commentAt(rest)
		default:
			if r.span == 0 {
				r.nest(rest)
			}
			from++
		}
	}
}

// spanCloses reports whether n backticks close a code span that was opened on
// line i before an index: on that line or further down in the paragraph.
func (r *lineReader) spanCloses(i, from, n int) bool {
	if closingTicks(r.lines[i].text[from:], n) >= 0 {
		return true
	}
	for _, l := range r.lines[i+1:] {
		if strings.Trim(l.text, " \t") == "" {
			return false
		}
		if closingTicks(l.text, n) >= 0 {
			return true
		}
	}
	return false
}

// nest counts the elements of quoting that are open behind the tag with which
// text starts, if it is one.
func (r *lineReader) nest(text string) {
	if text[0] != '<' {
		return
	}
	tag := element.FindStringSubmatch(text)
	if tag == nil || !slices.Contains(quoting, strings.ToLower(tag[2])) {
		return
	}
	if tag[1] == "" {
		r.depth++
	} else if r.depth > 0 {
		r.depth--
	}
}

// columns is the indentation of a line, with tab stops every four columns.
func columns(text string) int {
	n := 0
	for _, c := range text {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}
