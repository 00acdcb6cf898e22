package render

import (
	"regexp"
	"strings"
)

// Document returns about max bytes of hostile Markdown as harmless Markdown. Paragraphs, headings, lists, emphasis and
// code stay; tables become code blocks. Other words that GitHub could interpret become inline code, as in Prose.
func Document(s string, max int) string {
	d := document{lines: strings.Split(strings.ReplaceAll(Excerpt(s, max), "\t", "    "), "\n")}
	for len(d.lines) > 0 {
		d.next()
	}
	return strings.Trim(strings.Join(d.out, "\n"), "\n")
}

// Quote returns a Document as a quotation, which readers do not mistake for Pawl's words.
func Quote(s string, max int) string {
	text := Document(s, max)
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " ")
	}
	return strings.Join(lines, "\n")
}

// document holds the unread lines of a text, and the lines made so far.
type document struct {
	lines, out []string
	listed     bool // the line follows a list item
}

// Kinds of lines. A mark begins a list item or a heading.
var (
	fenceLine = regexp.MustCompile("^ *(`{3,}|~{3,})[^`]*$")
	tableLine = regexp.MustCompile(`^ *\|`)
	mark      = regexp.MustCompile(`^(?:#{1,6}|[-*+]|[0-9]{1,4}[.)]) +`)
)

// heading begins every heading; higher levels are reserved for Pawl's own headings.
const heading = "#### "

// maxIndent limits a line's indent, in spaces. Nested lists need an indent.
const maxIndent = 12

func (d *document) next() {
	line := d.lines[0]
	switch {
	case fenceLine.MatchString(line):
		d.fence()
	case tableLine.MatchString(line):
		d.table()
	default:
		d.lines = d.lines[1:]
		d.out = append(d.out, d.words(line))
	}
}

// fence reads a code block with its fences. A block without an end lasts to the end of the text.
func (d *document) fence() {
	open := fenceLine.FindStringSubmatch(d.lines[0])[1]
	n := 1
	for n < len(d.lines) && !closesFence(d.lines[n], open) {
		n++
	}
	d.block(d.lines[1:n])
	d.lines = d.lines[min(n+1, len(d.lines)):]
}

// closesFence reports whether a line closes a code block by the rule of CommonMark 0.31, section 4.5.
func closesFence(line, open string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, open) && strings.Trim(line, open[:1]) == ""
}

// table reads a table's rows as a code block, in which the columns stay readable.
func (d *document) table() {
	n := 1
	for n < len(d.lines) && tableLine.MatchString(d.lines[n]) {
		n++
	}
	d.block(d.lines[:n])
	d.lines = d.lines[n:]
}

func (d *document) block(lines []string) {
	text := strings.Join(lines, "\n")
	fence := ticks(text, 3)
	d.out = append(d.out, fence+"text", text, fence)
}

// words reads a line outside of blocks. It keeps the indent only after a list item, because elsewhere an indent could
// make the line code.
func (d *document) words(line string) string {
	text := strings.TrimLeft(line, " ")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	begin := mark.FindString(text)
	heads := strings.HasPrefix(begin, "#")
	indent := strings.Repeat(" ", min(len(line)-len(text), maxIndent))
	if begin == "" && indent == "" {
		d.listed = false
	}
	if heads || !d.listed {
		indent = ""
	}
	d.listed = d.listed || begin != "" && !heads
	w := wording{first: begin == "", emphasis: true, code: code}
	words := w.of(text[len(begin):])
	if words == "" { // "-" below a line would make it a heading
		return indent + code(strings.TrimSpace(begin))
	}
	if heads {
		begin = heading
	}
	return indent + begin + words
}
