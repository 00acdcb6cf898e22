package feedback

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	nethtml "golang.org/x/net/html"

	"github.com/pawlbot/pawl/policy"
)

// Visible returns the visible part of a Markdown text from GitHub. It removes comments, attributes, titles and
// alternative texts, link definitions, unused footnotes, cells beyond a table's width, words after a fence, and
// invisible characters. Text in <details> is visible. Line ends become line feeds; invalid UTF-8 becomes U+FFFD.
//
// Link targets, unknown elements, formulas that could hide text, and diagrams follow at the end as quotations.
//
// Prompts use it: instructions that a maintainer cannot see must not reach an agent as the task.
func Visible(text string) string { return NewPage(text).Visible() }

func (p Page) see() string {
	text, unseen := p.seen()
	if len(unseen) == 0 {
		return text
	}
	if strings.TrimSpace(text) == "" && !slices.Contains(unseen, allOfIt) {
		return text
	}
	if len(unseen) > maxUnseen {
		unseen = append(unseen[:maxUnseen], fmt.Sprintf("and %d more", len(unseen)-maxUnseen))
	}
	var b strings.Builder
	b.WriteString(strings.TrimRight(text, "\n") + "\n")
	for _, u := range unseen {
		b.WriteString("\n> Not visible on the page, and no part of the task: " + u)
	}
	return b.String()
}

// Title returns the visible text of a title, which is not Markdown.
func Title(text string) string { return strings.Map(shown, strings.ToValidUTF8(text, "\uFFFD")) }

const (
	allOfIt = "all of it, which is nested deeper than people write"

	maxUnseen  = 20  // quotations of hidden text
	maxQuoted  = 300 // bytes of each
	maxPasses  = 6   // a hostile text can hide text again and again
	hiddenSize = 3   // depth of sub- and superscripts that is too small to read: 0.75³ of the size
)

// seen returns the visible text and the hidden pieces to quote.
func (p Page) seen() (shownText string, unseen []string) {
	text := strings.ToValidUTF8(p.body, "\uFFFD")
	for range maxPasses {
		if !strings.ContainsAny(text, "<[$`~&|") { // hidden text needs one of these
			return strings.Map(shown, text), unseen
		}
		if endless(text) {
			return "", append(unseen, allOfIt)
		}
		tree := readPage(text) // not the shared tree: this pass marks hidden parts in it
		now := tree.visible()
		for _, u := range tree.unseen {
			if !slices.Contains(unseen, u) {
				unseen = append(unseen, u)
			}
		}
		if now == text {
			return now, unseen
		}
		text = now
	}
	return strings.NewReplacer("<", "", "[", "", "$", "").Replace(text), unseen
}

// shownElements lists elements that GitHub keeps, without scripts and the like:
// https://github.com/gjtorikian/html-pipeline, SanitizationFilter.
var shownElements = strings.Fields("h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p picture ol ul table thead tbody tfoot " +
	"blockquote dl dt dd kbd q samp var hr ruby rt li tr td th s strike summary details caption figure figcaption abbr bdo cite dfn mark small source span time wbr")

// emptyElements are removed; their addresses are quoted.
var emptyElements = []string{"a", "img", "source", "picture"}

// swallowing elements hide everything after them if not closed.
var swallowing = strings.Fields("script style template textarea title xmp iframe noembed noframes noscript plaintext svg math select object video audio canvas rp head")

// drawn lists languages of blocks that GitHub draws.
var drawn = []string{"mermaid", "geojson", "topojson", "stl"}

func (p *page) fenced(n *ast.FencedCodeBlock, language string) {
	s, ok := extent(n.Lines())
	if ok && isDrawing(language, p.body[s.start:s.end]) {
		p.hide(s, "a drawing or formula")
	} else {
		p.literal(n.Lines())
	}
	if n.Info != nil {
		s.start, s.end = n.Info.Segment.Start, max(s.end, n.Info.Segment.Stop)
	}
	if ok || n.Info != nil {
		p.code = append(p.code, s)
	}
}

// isDrawing reports whether GitHub draws a code block instead of showing its text.
func isDrawing(language, code string) bool {
	if language == "math" {
		return !plainFormula(code)
	}
	return slices.Contains(drawn, language)
}

// hide removes and quotes a part of the text.
func (p *page) hide(s span, what string) {
	p.tell(what, p.body[s.start:s.end])
	p.set(s.start, s.end, gone)
}

// tell quotes hidden text as inline code.
func (p *page) tell(what, text string) {
	text = strings.Join(strings.Fields(strings.Map(shown, html.UnescapeString(text))), " ")
	text = strings.ReplaceAll(clipped(text, maxQuoted), "`", "'")
	if text == "" {
		return
	}
	p.unseen = append(p.unseen, what+" `"+text+"`")
}

// address quotes a link's target.
func (p *page) address(of, url string) {
	if url != "" && !strings.HasPrefix(url, "#") {
		p.tell("the address of a "+of+":", url)
	}
}

func (p *page) tag(t nethtml.Token, at []int) {
	p.tags = append(p.tags, htmlElement{t.Data, at[0], at[len(at)-1] + 1, t.Type == nethtml.EndTagToken, t.Type == nethtml.SelfClosingTagToken})
	switch {
	case slices.Contains(emptyElements, t.Data):
		for _, a := range t.Attr {
			switch a.Key {
			case "href":
				p.address("link", a.Val)
			case "src", "srcset":
				p.address("picture", a.Val)
			}
		}
	case slices.Contains(shownElements, t.Data):
		name := 1 + len(t.Data)
		if t.Type == nethtml.EndTagToken {
			name++
		}
		p.classify(at[:name], prose)
		p.classify(at[len(at)-1:], prose)
	case !slices.Contains(swallowing, t.Data):
		p.tell("an element", p.body[at[0]:at[len(at)-1]+1])
	}
}

// elements hides the content of elements that are unknown to GitHub or too small to read.
func (p *page) elements() {
	closed := map[string]bool{}
	for _, t := range p.tags {
		if t.closes {
			closed[t.name] = true
		}
	}
	depth, hidden := 0, 0 // depth of small elements; the last hidden tag
	for i, t := range p.tags {
		small := t.small()
		if small {
			depth = t.deeper(depth)
		}
		unreadable := small && depth >= hiddenSize
		if i < hidden || t.closes || t.alone {
			continue
		}
		if !unreadable && slices.Contains(shownElements, t.name) {
			continue
		}
		if closed[t.name] {
			hidden = p.closing(i)
		}
		if hidden > i {
			p.hide(span{t.start, p.tags[hidden].end}, "an element")
			continue
		}
		if small || slices.Contains(swallowing, t.name) {
			p.hide(span{t.start, len(p.body)}, "an element")
			return
		}
	}
}

func (t htmlElement) small() bool {
	switch t.name {
	case "sub", "sup", "small":
		return true
	}
	return false
}

// deeper returns the number of open elements after the tag.
func (t htmlElement) deeper(open int) int {
	if t.closes {
		return max(0, open-1)
	}
	return open + 1
}

// closing returns the index of the closing tag; 0 for none.
func (p *page) closing(i int) int {
	depth := 0
	for j := i; j < len(p.tags); j++ {
		t := p.tags[j]
		if t.name != p.tags[i].name || t.alone {
			continue
		}
		if !t.closes {
			depth++
			continue
		}
		depth--
		if depth == 0 {
			return j
		}
	}
	return 0
}

var (
	// signs matches Markdown's own marks.
	signs = regexp.MustCompile("^(?:[ \t>*_+\\-#=~|:\\\\`]|\\d{1,9}[.)]|\\[[ xX]\\])*$")
	// fence matches the start of a code block. Of its words, GitHub interprets only "suggestion".
	fence = regexp.MustCompile("^((?:[ \t>*+\\-]|\\d{1,9}[.)])*(?:```+|~~~+)[ \t]*(?:suggestion\\b)?)")
	// container matches the marks of a quotation or an item.
	container = regexp.MustCompile("^(?:[ \t>*+\\-]|\\d{1,9}[.)])*")
	entity    = regexp.MustCompile(`&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)
)

func (p *page) visible() string {
	p.elements()
	p.formulas()
	for _, c := range p.comments() { // including unclosed ones, which the parser does not see as HTML
		p.set(c.start, c.end, gone)
	}
	var b strings.Builder
	for start := 0; start < len(p.body); {
		end := start + 1
		for end < len(p.body) && p.class[end] == p.class[start] {
			end++
		}
		switch part := p.body[start:end]; p.class[start] {
		case prose:
			b.WriteString(strings.Map(shown, entity.ReplaceAllStringFunc(part, visibleEntity)))
		case literal:
			b.WriteString(strings.Map(shown, part))
		case between:
			begins := start == 0 || p.body[start-1] == '\n'
			b.WriteString(markdownSigns(part, begins))
		case gone:
		}
		start = end
	}
	return b.String()
}

// visibleEntity returns an entity, or empty if its character is invisible.
func visibleEntity(e string) string {
	of := html.UnescapeString(e)
	if of != e && strings.Map(shown, of) == "" {
		return ""
	}
	return e
}

// markdownSigns keeps meaningful marks of a part. begins means that the part starts a line.
func markdownSigns(part string, begins bool) string {
	var b strings.Builder
	for i, line := range strings.Split(part, "\n") {
		if i > 0 {
			b.WriteByte('\n')
			begins = true
		}
		switch opened := fence.FindString(line); {
		case signs.MatchString(line):
			b.WriteString(line)
		case opened == "" && begins:
			b.WriteString(container.FindString(line)) // else the text after a link would not be quoted
		default:
			b.WriteString(opened)
		}
	}
	return b.String()
}

// shown maps a character to itself, to a space, or to nothing (-1).
func shown(r rune) rune {
	switch r {
	case '\n', '\t':
		return r
	}
	if unicode.In(r, unicode.Zl, unicode.Zp) {
		return ' '
	}
	if policy.Invisible(r) {
		return -1
	}
	return r
}

var (
	formula = regexp.MustCompile(`(?s)^(\$\$.+?\$\$|\$[^\s$](?:(?:[^$\n]|\n[^\n$])*[^\s$])?\$)(?:\W|$)`)
	command = regexp.MustCompile(`\\[A-Za-z]+`)
)

// arithmetic lists formula commands that show their content in a readable size and colour.
var arithmetic = strings.Fields("frac sqrt sum prod int lim log ln exp sin cos tan min max le leq ge geq ne neq lt gt approx equiv sim times cdot div pm to in notin cup cap subset " +
	"forall exists infty partial nabla alpha beta gamma delta epsilon varepsilon theta lambda mu pi rho sigma tau phi varphi omega Gamma Delta Theta Lambda Pi Sigma Phi Omega " +
	"left right mathbb mathcal mathrm mathbf text lfloor rfloor lceil rceil langle rangle ldots cdots dots quad rightarrow leftarrow Rightarrow Leftrightarrow implies iff land lor neg " +
	"begin end matrix pmatrix bmatrix cases aligned binom bmod pmod")

// plainFormula reports whether a formula shows all its words. TeX can colour, shrink, overprint and omit.
func plainFormula(tex string) bool {
	if strings.ContainsAny(tex, "%#") {
		return false
	}
	unknown := func(c string) bool { return !slices.Contains(arithmetic, c[1:]) }
	return !slices.ContainsFunc(command.FindAllString(tex, -1), unknown)
}

// formulas hides formulas that could hide words. In doubt, a $ begins a formula.
func (p *page) formulas() {
	code := []byte(p.body)
	for i, c := range p.class {
		if c == literal && code[i] == '$' {
			code[i] = ' '
		}
	}
	for _, text := range []string{p.body, string(code)} {
		for start := range len(text) {
			if text[start] != '$' {
				continue
			}
			if m := formula.FindStringSubmatch(text[start:]); m != nil {
				p.hideFormula(span{start, start + len(m[1])})
			}
		}
	}
}

func (p *page) hideFormula(s span) {
	inCode := !slices.ContainsFunc(p.class[s.start:s.end], func(c class) bool { return c != literal })
	if inCode || plainFormula(p.body[s.start:s.end]) {
		return
	}
	p.hide(s, "a formula")
}
