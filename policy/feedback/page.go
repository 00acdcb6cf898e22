package feedback

import "strings"

// Page is a text from GitHub, parsed once. What a reader sees of it, what its writer says and what it commands are asked of
// the Page, which keeps what it found out. The zero value is an empty text. A Page is for one goroutine; copies share what
// is known.
type Page struct {
	text string
	body string // the text with line feeds at the ends of lines
	read *reading
}

// reading is what was found out about a text.
type reading struct {
	tree    *page
	lines   []line
	visible *string
	own     *string
}

// NewPage is the page of a text. Nothing is parsed before it is asked for.
func NewPage(text string) Page {
	return Page{text: text, body: unixLines(text), read: &reading{}}
}

// tree is what Markdown makes of the text.
func (p Page) tree() *page {
	if p.read == nil {
		return readPage("")
	}
	if p.read.tree == nil {
		p.read.tree = readPage(p.body)
	}
	return p.read.tree
}

// lines tells for each line what it is.
func (p Page) lines() []line {
	if p.read == nil {
		return nil
	}
	if p.read.lines == nil {
		p.read.lines = p.tree().readLines()
	}
	return p.read.lines
}

// Visible is the part of the text that a reader of the page sees, as the function of that name says.
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

// Own is what the writer of the text says: what a reader sees of it, without quotations.
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

// shown is the page of what a reader sees: the same one where nothing is hidden.
func (p Page) shown() Page {
	visible := p.Visible()
	if visible == p.body {
		return p
	}
	return NewPage(visible)
}

// Unquoted is the text without quotations, and without the quoted part of a mail.
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

// mayQuote reports whether a text may hold quotations: every quotation has one of these signs, and GitHub's coloured boxes
// only look like quotations.
func mayQuote(body string) bool {
	return strings.ContainsAny(body, "<>:-") && !alert.MatchString(body)
}

// quoted reports whether somebody else may have written the line, also one of a quoted block of code.
func (l line) quoted() bool {
	switch l.kind {
	case quotedLine, mailLine:
		return true
	case otherLine, plainLine:
	}
	return strings.HasPrefix(strings.TrimSpace(l.text), ">")
}

// hasCode reports whether the text holds code.
func (p Page) hasCode() bool { return len(p.tree().code) > 0 }
