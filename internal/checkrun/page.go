package checkrun

import (
	"strings"
	"time"
)

// maxBytes is the size that no text of Pawl exceeds: GitHub refuses a summary
// of more than 65,535 bytes, and so does a comment of as many characters.
const maxBytes = 60_000

// page collects the parts of a Markdown text. Every part is closed in itself, so
// a text that is too long is cut between parts and never inside a block.
type page struct {
	now   time.Time
	parts []string
}

func newPage(now time.Time) *page { return &page{now: now} }

// sentence adds a paragraph of Pawl's own words; names in it must be escaped.
func (p *page) sentence(s string) {
	if s != "" {
		p.parts = append(p.parts, s)
	}
}

// list adds a list of escaped lines, skipping empty ones.
func (p *page) list(lines ...string) {
	var kept []string
	for _, l := range lines {
		if l != "" {
			kept = append(kept, "- "+l)
		}
	}
	p.sentence(strings.Join(kept, "\n"))
}

// reasons are the first max reasons as escaped lines.
func (p *page) reasons(reasons []string, max int) []string {
	var lines []string
	for _, r := range reasons {
		if len(lines) == max {
			return append(lines, "and "+plural(len(reasons)-max, "more reason"))
		}
		if s := prose(r, p.now); s != "" {
			lines = append(lines, s)
		}
	}
	return lines
}

// fold adds a folded section. The title must be escaped and of one line, and it
// must not be Markdown, which GitHub does not read there; the body is.
func (p *page) fold(title, body string) {
	if body != "" {
		p.parts = append(p.parts, "<details><summary>"+title+"</summary>\n\n"+body+"\n\n</details>")
	}
}

// fit joins the parts, at most maxBytes.
func (p *page) fit() string { return p.fitIn(maxBytes) }

// fitIn joins the parts that come first, at most max bytes.
func (p *page) fitIn(max int) string {
	const note = "More is left out here because the text would be too long."
	var b strings.Builder
	for i, part := range p.parts {
		room := max - b.Len() - 2
		if i+1 < len(p.parts) {
			room -= len(note) + 2
		}
		if len(part) > room {
			if b.Len()+2+len(note) <= max {
				b.WriteString(note + "\n")
			}
			return b.String()
		}
		b.WriteString(part)
		if i+1 < len(p.parts) {
			b.WriteString("\n\n")
		} else {
			b.WriteString("\n")
		}
	}
	return b.String()
}
