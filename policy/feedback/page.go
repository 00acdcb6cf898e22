package feedback

import "strings"

// Page is a text from GitHub, parsed once. A Page is for one goroutine; copies share the results.
type Page struct {
	text string
	body string // with \n line ends
	read *reading
}

type reading struct {
	tree    *page
	lines   []line
	visible *string
	own     *string
}

// NewPage wraps a text and parses it on first use.
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

// Visible returns the visible text; see the function Visible.
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

// Own returns the writer's own words: the visible text without quotations.
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

// shown returns the page of the visible text.
func (p Page) shown() Page {
	visible := p.Visible()
	if visible == p.body {
		return p
	}
	return NewPage(visible)
}

// Unquoted returns the text without quotations and quoted e-mail.
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

// quotations returns the lines that Unquoted removes.
func (p Page) quotations() string {
	var quoted []string
	for _, l := range p.lines() {
		if l.quoted() {
			quoted = append(quoted, l.text)
		}
	}
	return strings.Join(quoted, "\n")
}

// mayQuote reports whether a text may have quotations: each has one of these characters. GitHub's alerts only look
// like quotations.
func mayQuote(body string) bool {
	return strings.ContainsAny(body, "<>:-") && !alert.MatchString(body)
}

// quoted reports whether another writer may have written the line.
func (l line) quoted() bool {
	switch l.kind {
	case quotedLine, mailLine:
		return true
	case otherLine, plainLine:
	}
	return strings.HasPrefix(strings.TrimSpace(l.text), ">")
}

func (p Page) hasCode() bool { return len(p.tree().code) > 0 }
