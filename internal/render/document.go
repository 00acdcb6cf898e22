package render

import (
	"regexp"
	"strings"
)

// Document is hostile Markdown of about max bytes as Markdown that wraps and does nothing: paragraphs, headings, lists,
// emphasis and code stay, and any other word that could be more is set as inline code, as Prose does. Tables become code
// blocks.
func Document(s string, max int) string {
	d := document{lines: strings.Split(strings.ReplaceAll(Excerpt(s, max), "\t", "    "), "\n")}
	for len(d.lines) > 0 {
		d.next()
	}
	return strings.Trim(strings.Join(d.out, "\n"), "\n")
}

// Quote is a Document as a quotation, which readers do not mistake for Pawl's words.
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

// document is what is left of a text, and the lines that were made of what came before.
type document struct {
	lines, out []string
	listed     bool // an item of a list stands above
}

// The kinds of lines. A mark is what a line of a list or a heading begins with.
var (
	fenceLine = regexp.MustCompile("^ *(`{3,}|~{3,})[^`]*$")
	tableLine = regexp.MustCompile(`^ *\|`)
	mark      = regexp.MustCompile(`^(?:#{1,6}|[-*+]|[0-9]{1,4}[.)]) +`)
)

// heading begins each heading, below the page's own.
const heading = "#### "

// maxIndent bounds the indent of a line, which nested lists need.
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

// fence takes a code block with its fences. A block without an end lasts to the end of the text.
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

// table takes the rows of a table as a code block, in which its columns stay readable.
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

// words takes a line outside of blocks. Only below an item of a list is it indented, so that no indent makes it code.
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
