package feedback

import "strings"

// Page is a text from GitHub, parsed once: its visible text, its writer's own words and its command. The zero value
// is an empty text. A Page is for one goroutine; copies share the results.
type Page struct {
	text string
	body string // with line feeds
	read *reading
}

// reading caches results.
type reading struct {
	tree    *page
	lines   []line
	visible *string
	own     *string
}

// NewPage wraps a text. It is parsed on first use.
func NewPage(text string) Page {
	return Page{text: text, body: unixLines(text), read: &reading{}}
}

func (p Page) tree() *page {
	if p.read == nil {
		return readPage("")
	}
	if p.read.tree == nil {
		p.read.tree = readPage(p.body)
	}
	return p.read.tree
}

func (p Page) lines() []line {
	if p.read == nil {
		return nil
	}
	if p.read.lines == nil {
		p.read.lines = p.tree().readLines()
	}
	return p.read.lines
}

// Visible is the visible part of the text; see the function Visible.
func (p Page) Visible() string {
	if p.read == nil {
		return ""
	}
	if p.read.visible == nil {
		shown := p.see()
		p.read.visible = &shown
	}
	return *p.read.visible
}

// Own is the writer's own words: the visible text without quotations.
func (p Page) Own() string {
	if p.read == nil {
		return ""
	}
	if p.read.own == nil {
		own := p.shown().Unquoted()
		p.read.own = &own
	}
	return *p.read.own
}

// shown is the page of the visible text: the same page if nothing is hidden.
func (p Page) shown() Page {
	visible := p.Visible()
	if visible == p.body {
		return p
	}
	return NewPage(visible)
}

// Unquoted is the text without quotations and quoted mail.
func (p Page) Unquoted() string {
	if !mayQuote(p.body) {
		return strings.TrimSpace(p.body)
	}
	var own []string
	for _, l := range p.lines() {
		if !l.quoted() {
			own = append(own, l.text)
		}
	}
	return strings.TrimSpace(strings.Join(own, "\n"))
}

// quotations are the lines that Unquoted leaves out.
func (p Page) quotations() string {
	var quoted []string
	for _, l := range p.lines() {
		if l.quoted() {
			quoted = append(quoted, l.text)
		}
	}
	return strings.Join(quoted, "\n")
}

// mayQuote reports whether a text may have quotations: each has one of these signs. GitHub's alerts only look like
// quotations.
func mayQuote(body string) bool {
	return strings.ContainsAny(body, "<>:-") && !alert.MatchString(body)
}

// quoted reports whether another writer may have written the line, also in a quoted code block.
func (l line) quoted() bool {
	switch l.kind {
	case quotedLine, mailLine:
		return true
	case otherLine, plainLine:
	}
	return strings.HasPrefix(strings.TrimSpace(l.text), ">")
}

func (p Page) hasCode() bool { return len(p.tree().code) > 0 }
