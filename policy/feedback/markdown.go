package feedback

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gmtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	nethtml "golang.org/x/net/html"
)

// markdown parses GitHub Flavored Markdown.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser()

type span struct{ start, end int }

// covers reports whether an offset is inside one of the sorted spans, after its start.
func covers(spans []span, offset int) bool {
	i, _ := slices.BinarySearchFunc(spans, offset, func(s span, at int) int { return s.end - at - 1 })
	return i < len(spans) && spans[i].start < offset
}

type page struct {
	body   string
	class  []class          // of each byte
	code   []span           // fenced blocks and code spans, in order
	lines  map[int]lineKind // by start: quotations, else paragraphs and headings
	quotes []htmlElement    // tags of quoting elements outside quotations, in order
	tags   []htmlElement    // all tags
	unseen []string

	formula bool // the current paragraph may have formulas
}

type class byte

const (
	between class = iota // Markdown's marks and hidden text
	prose
	literal // code, without marks
	gone
)

type htmlElement struct {
	name          string
	start, end    int
	closes, alone bool
}

// quoting lists HTML elements for quotations, code or invisible content.
var quoting = []string{"blockquote", "pre", "code", "samp", "tt", "xmp", "script", "style", "textarea", "template"}

var element = regexp.MustCompile(`<(/?)([A-Za-z]+)\b`)

// Parsing takes quadratic time for deep nesting, many unclosed links or many emphasis marks: 60,000 bytes took 12 s.
// These limits exceed what people write.
var nested = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){50}`)

const unclosed, emphases = 100, 8000

func endless(body string) bool {
	switch {
	case strings.Count(body, "](")-strings.Count(body, ")") > unclosed:
		return true
	case strings.Count(body, "*")+strings.Count(body, "_") > emphases:
		return true
	}
	return nested.MatchString(body)
}

// readPage parses a text with line feeds. A text above the limits has no plain line and no code.
func readPage(body string) *page {
	p := &page{body: body, class: make([]class, len(body)), lines: map[int]lineKind{}}
	if endless(body) {
		return p
	}
	source := []byte(body)
	// The walk returns only its function's error: nil.
	_ = ast.Walk(markdown.Parse(gmtext.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			p.node(n, source)
		}
		return ast.WalkContinue, nil
	})
	// Footnotes are last in the tree, wherever they are in the text.
	for _, tags := range [][]htmlElement{p.quotes, p.tags} {
		slices.SortFunc(tags, func(a, b htmlElement) int { return a.start - b.start })
	}
	slices.SortFunc(p.code, func(a, b span) int { return a.start - b.start })
	return p
}

func (p *page) node(n ast.Node, source []byte) {
	quoted := within(n, ast.KindBlockquote)
	if quoted && n.Type() == ast.TypeBlock {
		p.mark(n.Lines(), quotedLine)
	}
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock, *ast.Heading:
		if !quoted {
			p.mark(n.Lines(), plainLine)
		}
		// GitHub's formulas have other rules for code.
		s, _ := extent(n.Lines())
		p.formula = strings.Contains(p.body[s.start:s.end], "$")
	case *ast.CodeSpan:
		p.codeSpan(n)
	case *ast.CodeBlock:
		p.literal(n.Lines())
	case *ast.FencedCodeBlock:
		p.fenced(n, strings.ToLower(string(n.Language(source))))
	case *ast.HTMLBlock:
		p.htmlBlock(n, quoted)
	default:
		if !within(n, ast.KindImage) { // else alternative text
			p.inline(n, source, quoted)
		}
	}
}

func (p *page) codeSpan(n *ast.CodeSpan) {
	first, begins := n.FirstChild().(*ast.Text)
	last, ends := n.LastChild().(*ast.Text)
	if p.formula || !begins || !ends {
		return
	}
	p.code = append(p.code, span{first.Segment.Start, last.Segment.Stop})
}

func (p *page) htmlBlock(n *ast.HTMLBlock, quoted bool) {
	all := gmtext.NewSegments()
	all.AppendAll(n.Lines().Sliced(0, n.Lines().Len())) // a copy
	if n.HasClosure() {
		all.Append(n.ClosureLine)
	}
	if quoted {
		p.mark(all, quotedLine)
	}
	p.html(all, quoted)
}

func within(n ast.Node, kind ast.NodeKind) bool {
	for n = n.Parent(); n != nil && n.Kind() != kind; n = n.Parent() {
	}
	return n != nil
}

// inline parses a part of a paragraph.
func (p *page) inline(n ast.Node, source []byte, quoted bool) {
	switch n := n.(type) {
	case *ast.Text:
		c := prose
		if n.Parent().Kind() == ast.KindCodeSpan {
			c = literal
		}
		p.set(n.Segment.Start, n.Segment.Stop, c)
	case *ast.AutoLink:
		if label := n.Label(source); len(label) > 0 {
			start := cap(source) - cap(label) // it shares the source's memory
			end := start + len(label)
			p.set(start, end, prose)
			bracketed := start > 0 && source[start-1] == '<'
			if bracketed && end < len(source) {
				p.class[start-1], p.class[end] = gone, gone
			}
		}
	case *ast.Link:
		p.address("link", string(n.Destination))
	case *ast.Image:
		p.address("picture", string(n.Destination))
	case *ast.RawHTML:
		p.html(n.Segments, quoted)
	}
}

// extent spans all segments; ok is false for none.
func extent(s *gmtext.Segments) (all span, ok bool) {
	if s.Len() == 0 {
		return span{}, false
	}
	return span{s.At(0).Start, s.At(s.Len() - 1).Stop}, true
}

func lineStart(body string, offset int) int {
	return strings.LastIndexByte(body[:offset], '\n') + 1
}

func (p *page) mark(s *gmtext.Segments, kind lineKind) {
	for i := range s.Len() {
		p.lines[lineStart(p.body, s.At(i).Start)] = kind
	}
}

func (p *page) set(start, end int, c class) {
	for i := start; i < end; i++ {
		p.class[i] = c
	}
}

func (p *page) literal(s *gmtext.Segments) {
	for i := range s.Len() {
		p.set(s.At(i).Start, s.At(i).Stop, literal)
	}
}

// html marks the visible text of HTML and collects the known tags. Open elements end with their quotation.
func (p *page) html(s *gmtext.Segments, quoted bool) {
	var raw []byte
	var at []int // offsets of the bytes
	for i := range s.Len() {
		for o := s.At(i).Start; o < s.At(i).Stop; o++ {
			raw, at = append(raw, p.body[o]), append(at, o)
		}
	}
	for _, m := range element.FindAllSubmatchIndex(raw, -1) {
		if name := string(raw[m[4]:m[5]]); !quoted && slices.Contains(quoting, strings.ToLower(name)) {
			p.quotes = append(p.quotes, htmlElement{start: at[m[0]], closes: m[2] != m[3]})
		}
	}
	p.classify(at, gone)
	z, from := nethtml.NewTokenizer(bytes.NewReader(raw)), 0
	for z.Next() != nethtml.ErrorToken {
		own := at[from : from+len(z.Raw())]
		from += len(own)
		switch t := z.Token(); t.Type {
		case nethtml.TextToken:
			p.classify(own, prose)
		case nethtml.StartTagToken, nethtml.EndTagToken, nethtml.SelfClosingTagToken:
			p.tag(t, own)
		case nethtml.CommentToken, nethtml.DoctypeToken, nethtml.ErrorToken:
		}
	}
}

func (p *page) classify(at []int, c class) {
	for _, o := range at {
		p.class[o] = c
	}
}

// comments finds HTML comments in order. An unclosed comment extends to the end of the text. Comments in code do not
// count. Indented code and code inside a comment do not count as code: GitHub may see a comment there.
func (p *page) comments() []span {
	var found []span
	body, code := p.body, p.code
	for i := 0; ; {
		next := strings.Index(body[i:], "<!--")
		if next < 0 {
			return found
		}
		i += next
		code = drop(code, func(s span) bool { return s.end <= i })
		if len(code) > 0 && code[0].start <= i {
			i = code[0].end
			continue
		}
		end := len(body)
		if length := strings.Index(body[i+2:], "-->"); length >= 0 { // <!--> and <!---> are whole comments
			end = i + 2 + length + len("-->")
		}
		found = append(found, span{i, end})
		i = end
		code = drop(code, func(s span) bool { return s.start < end })
	}
}

// drop removes the leading spans that passed accepts.
func drop(spans []span, passed func(span) bool) []span {
	for len(spans) > 0 && passed(spans[0]) {
		spans = spans[1:]
	}
	return spans
}

type lineKind byte

const (
	otherLine  lineKind = iota // code, HTML, table, comment
	plainLine                  // the writer's own words, or blank
	quotedLine                 // a quotation
	mailLine                   // the quoted part of an e-mail
)

type line struct {
	text string
	kind lineKind
}

// readLines classifies a text's lines. A plain line belongs to a paragraph or heading outside quotations, code and
// comments. An open comment hides everything after it, except if it began in a quotation.
func (p *page) readLines() []line {
	body := p.body
	depth, tags := 0, p.quotes
	comments := slices.DeleteFunc(p.comments(), func(c span) bool { return p.lines[lineStart(body, c.start)] == quotedLine })
	var lines []line
	start := 0
	for text := range strings.SplitSeq(body, "\n") {
		for len(tags) > 0 && tags[0].start < start {
			depth++
			if tags[0].closes {
				depth = max(0, depth-2)
			}
			tags = tags[1:]
		}
		l := line{text: text}
		hidden := covers(comments, start) || covers(p.code, start)
		quoted := p.lines[start] == quotedLine || depth > 0
		switch {
		case hidden:
		case quoted:
			l.kind = quotedLine
		case strings.Trim(text, " \t") == "":
			l.kind = plainLine
		case p.lines[start] == plainLine && indentation(text) < 4:
			l.kind = plainLine
		}
		lines = append(lines, l)
		start += len(text) + 1
	}
	markMail(lines)
	return lines
}

// indentation returns a line's indentation in columns, with tab stops every four.
func indentation(text string) int {
	columns, _ := util.IndentWidth([]byte(text), 0)
	return columns
}

var (
	// attribution matches the lines before quoted e-mail. It is built on first use: sandboxes start Pawl without
	// needing it.
	attribution = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)^\s*(?:on|am|le|el|il|em|op)\b.{4,400}\b(?:wrote|schrieb.{0,200}|a écrit|escribió|ha scritto|escreveu|schreef.{0,200})\s*:\s*$`)
	})

	// divider matches the line before a full copy of the original e-mail.
	divider = regexp.MustCompile(`(?i)^\s*(?:-{2,}\s*(?:original|forwarded|ursprüngliche)\s.{0,40}-{2,}|begin forwarded message:)\s*$`)

	// mailFrom and mailHead match the copy's header.
	mailFrom = regexp.MustCompile(`(?i)^\s*[*]{0,2}(?:from|von|de)\s?:[*]{0,2}\s+\S`)
	mailHead = regexp.MustCompile(`(?i)^\s*[*]{0,2}(?:sent|date|to|cc|subject|gesendet|datum|an|betreff|envoyé|à|objet)\s?:[*]{0,2}(?:\s|$)`)
)

// markMail marks quoted e-mail. After a divider, or an attribution without quote marks, everything counts as quoted.
func markMail(lines []line) {
	for i := 0; i < len(lines); i++ {
		if lines[i].kind != plainLine {
			continue
		}
		if divider.MatchString(lines[i].text) || headed(lines[i:]) {
			asMail(lines[i:])
			return
		}
		n := attributed(lines[i:])
		if n == 0 {
			continue
		}
		end := i + n + quotation(lines[i+n:])
		asMail(lines[i:end])
		i = end - 1
	}
}

// quotation counts the quoted lines after an attribution: lines with quote marks and blank ones, or all if no line
// has a mark.
func quotation(lines []line) int {
	quoted := false
	for i, l := range lines {
		switch {
		case l.kind == quotedLine:
			quoted = true
		case strings.TrimSpace(l.text) == "":
		case quoted:
			return i
		default:
			return len(lines)
		}
	}
	return len(lines)
}

func attributed(lines []line) int {
	var text string
	for n, l := range lines[:min(3, len(lines))] {
		if l.kind != plainLine || strings.TrimSpace(l.text) == "" {
			return 0
		}
		text += l.text + "\n"
		if attribution().MatchString(text) {
			return n + 1
		}
	}
	return 0
}

func headed(lines []line) bool {
	if !mailFrom.MatchString(lines[0].text) {
		return false
	}
	head := func(l line) bool { return mailHead.MatchString(l.text) }
	return slices.ContainsFunc(lines[1:min(4, len(lines))], head)
}

func asMail(lines []line) {
	for i := range lines {
		lines[i].kind = mailLine
	}
}
