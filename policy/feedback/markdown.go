package feedback

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gmtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown reads GitHub Flavored Markdown. It is never written to.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser()

// span is a part of a text, from start up to and without end.
type span struct{ start, end int }

// covers reports whether an offset lies within one of the spans, which are in order, behind its start.
func covers(spans []span, offset int) bool {
	i, _ := slices.BinarySearchFunc(spans, offset, func(s span, at int) int { return s.end - at - 1 })
	return i < len(spans) && spans[i].start < offset
}

type page struct {
	code  []span           // fenced blocks and code spans, in order
	tags  []tag            // of quoting elements, in order
	lines map[int]lineKind // by where they begin: those of quotations, else of paragraphs and headings
}

type tag struct {
	at    int
	opens bool
}

// quoting are the HTML elements whose content is a quotation, code or nothing that a reader sees.
var quoting = []string{"blockquote", "pre", "code", "samp", "tt", "xmp", "script", "style", "textarea", "template"}

var element = regexp.MustCompile(`<(/?)([A-Za-z]+)\b`)

// nested matches a line within more quotations and lists than people write, and
// unclosed is more links without an end than they do, emphases more signs of emphasis. Reading such a text
// takes time by the square of its length: 60,000 bytes took 12 s.
var nested = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){50}`)

const unclosed, emphases = 100, 8000

func endless(body string) bool {
	return nested.MatchString(body) || strings.Count(body, "](")-strings.Count(body, ")") > unclosed || strings.Count(body, "*")+strings.Count(body, "_") > emphases
}

// readPage reads a text whose lines end in line feeds. A text that would take long
// has nothing that could be relied on: no plain line and no code.
func readPage(body string) page {
	p := page{lines: map[int]lineKind{}}
	if endless(body) {
		return p
	}
	quotes, formula := 0, false
	source := []byte(body)
	// The error of a walk is that of its function, which has none.
	_ = ast.Walk(markdown.Parse(gmtext.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Kind() == ast.KindBlockquote {
			if quotes++; !entering {
				quotes -= 2
			}
		}
		if !entering {
			return ast.WalkContinue, nil
		}
		if quotes > 0 && n.Type() == ast.TypeBlock {
			p.mark(body, n.Lines(), quotedLine)
		}
		switch n := n.(type) {
		case *ast.FencedCodeBlock:
			s, ok := extent(n.Lines())
			if n.Info != nil {
				s.start, s.end = n.Info.Segment.Start, max(s.end, n.Info.Segment.Stop)
			}
			if ok || n.Info != nil {
				p.code = append(p.code, s)
			}
		case *ast.HTMLBlock:
			switch {
			case quotes == 0: // else what is open ends with the quotation
				p.html(body, n.Lines())
				if n.HasClosure() {
					p.tagsIn(body, n.ClosureLine)
				}
			case n.HasClosure():
				p.lines[lineStart(body, n.ClosureLine.Start)] = quotedLine
			}
		case *ast.Paragraph, *ast.TextBlock, *ast.Heading:
			if quotes == 0 {
				p.mark(body, n.Lines(), plainLine)
			}
			// GitHub's formulas have rules of their own for what is code.
			s, _ := extent(n.Lines())
			formula = strings.Contains(body[s.start:s.end], "$")
		case *ast.RawHTML:
			if quotes == 0 {
				p.html(body, n.Segments)
			}
		case *ast.CodeSpan:
			first, ok := n.FirstChild().(*ast.Text)
			last, also := n.LastChild().(*ast.Text)
			if ok && also && !formula {
				p.code = append(p.code, span{first.Segment.Start, last.Segment.Stop})
			}
		}
		return ast.WalkContinue, nil
	})
	return p
}

// extent is from the first to the last of some segments; ok is false for none.
func extent(s *gmtext.Segments) (all span, ok bool) {
	if s.Len() == 0 {
		return span{}, false
	}
	return span{s.At(0).Start, s.At(s.Len() - 1).Stop}, true
}

// lineStart is where the line that holds an offset begins.
func lineStart(body string, offset int) int {
	return strings.LastIndexByte(body[:offset], '\n') + 1
}

func (p *page) mark(body string, s *gmtext.Segments, kind lineKind) {
	for i := range s.Len() {
		p.lines[lineStart(body, s.At(i).Start)] = kind
	}
}

func (p *page) html(body string, s *gmtext.Segments) {
	for i := range s.Len() {
		p.tagsIn(body, s.At(i))
	}
}

func (p *page) tagsIn(body string, s gmtext.Segment) {
	for _, m := range element.FindAllStringSubmatchIndex(body[s.Start:s.Stop], -1) {
		name := body[s.Start+m[4] : s.Start+m[5]]
		if slices.Contains(quoting, strings.ToLower(name)) {
			p.tags = append(p.tags, tag{at: s.Start + m[0], opens: m[2] == m[3]})
		}
	}
}

// comments finds the HTML comments, in order. An unclosed comment reaches to the end of the text. A comment
// in code is no comment; people write about HTML. But whoever wants to hide text would gain from what is code
// here and not at GitHub, so indented code does not count, nor what a comment began before.
func (p *page) comments(body string) []span {
	var found []span
	code := p.code
	for i := 0; ; {
		next := strings.Index(body[i:], "<!--")
		if next < 0 {
			return found
		}
		i += next
		for len(code) > 0 && code[0].end <= i {
			code = code[1:]
		}
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
		for len(code) > 0 && code[0].start < end {
			code = code[1:]
		}
	}
}

// lineKind says what a line of Markdown is to somebody who looks for commands.
type lineKind byte

const (
	otherLine  lineKind = iota // code, HTML, part of a table, in a comment
	plainLine                  // the writer's own words, or blank
	quotedLine                 // a quotation
	mailLine                   // the quoted part of an e-mail
)

type line struct {
	text string
	kind lineKind
}

// readLines tells for each line of a text what it is. Only a line of a paragraph or heading is plain, and
// only where it begins outside of quotations, code and comments. An open comment hides all that follows,
// which it does at GitHub in some places only: in doubt a line is no command. In a quotation it hides
// nothing, for whoever answers to one did not write it.
func readLines(body string) []line {
	p := readPage(body)
	depth, tags := 0, p.tags
	comments := slices.DeleteFunc(p.comments(body), func(c span) bool { return p.lines[lineStart(body, c.start)] == quotedLine })
	var lines []line
	start := 0
	for text := range strings.SplitSeq(body, "\n") {
		for len(tags) > 0 && tags[0].at < start {
			if tags[0].opens {
				depth++
			} else {
				depth = max(0, depth-1)
			}
			tags = tags[1:]
		}
		l := line{text: text}
		switch {
		case covers(comments, start), covers(p.code, start):
		case p.lines[start] == quotedLine, depth > 0:
			l.kind = quotedLine
		case p.lines[start] == plainLine && indentation(text) < 4, strings.Trim(text, " \t") == "":
			l.kind = plainLine
		}
		lines = append(lines, l)
		start += len(text) + 1
	}
	markMail(lines)
	return lines
}

// indentation is that of a line in columns, with tab stops every four.
func indentation(text string) int {
	columns, _ := util.IndentWidth([]byte(text), 0)
	return columns
}

var (
	// attribution matches the line, or up to three lines, that a mail program puts before the text it quotes. It is large, and
	// made when it is first asked: Pawl also starts inside of each sandbox, where nobody asks.
	attribution = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)^\s*(?:on|am|le|el|il|em|op)\b.{4,400}\b(?:wrote|schrieb.{0,200}|a écrit|escribió|ha scritto|escreveu|schreef.{0,200})\s*:\s*$`)
	})

	// divider matches the line behind which a mail program puts the whole
	// message that is answered or passed on.
	divider = regexp.MustCompile(`(?i)^\s*(?:-{2,}\s*(?:original|forwarded|ursprüngliche)\s.{0,40}-{2,}|begin forwarded message:)\s*$`)

	// mailFrom and mailHead match the head of such a message.
	mailFrom = regexp.MustCompile(`(?i)^\s*[*]{0,2}(?:from|von|de)\s?:[*]{0,2}\s+\S`)
	mailHead = regexp.MustCompile(`(?i)^\s*[*]{0,2}(?:sent|date|to|cc|subject|gesendet|datum|an|betreff|envoyé|à|objet)\s?:[*]{0,2}(?:\s|$)`)
)

// markMail marks the quoted part of an answer that came by e-mail. What a mail program puts below its
// divider, and text below an attribution that carries no signs of quoting, goes on to the end: where the
// writer's own words would begin again, nobody can tell.
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
		end, quoted := i+n, false
		for end < len(lines) && (lines[end].kind == quotedLine || strings.TrimSpace(lines[end].text) == "") {
			quoted = quoted || lines[end].kind == quotedLine
			end++
		}
		if !quoted {
			end = len(lines)
		}
		asMail(lines[i:end])
		i = end - 1
	}
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
	head := func(l line) bool { return mailHead.MatchString(l.text) }
	return mailFrom.MatchString(lines[0].text) && slices.ContainsFunc(lines[1:min(4, len(lines))], head)
}

func asMail(lines []line) {
	for i := range lines {
		lines[i].kind = mailLine
	}
}

var (
	formula = regexp.MustCompile(`(?s)^(\$\$.+?\$\$|\$[^\s$](?:(?:[^$\n]|\n[^\n$])*[^\s$])?\$)(?:\W|$)`)
	command = regexp.MustCompile(`\\[A-Za-z]+`)
)

// arithmetic are the commands of formulas that show what stands in them, in a size and a colour that people read.
var arithmetic = strings.Fields("frac sqrt sum prod int lim log ln exp sin cos tan min max le leq ge geq ne neq lt gt approx equiv sim times cdot div pm to in notin cup cap subset " +
	"forall exists infty partial nabla alpha beta gamma delta epsilon varepsilon theta lambda mu pi rho sigma tau phi varphi omega Gamma Delta Theta Lambda Pi Sigma Phi Omega " +
	"left right mathbb mathcal mathrm mathbf text lfloor rfloor lceil rceil langle rangle ldots cdots dots quad rightarrow leftarrow Rightarrow Leftrightarrow implies iff land lor neg " +
	"begin end matrix pmatrix bmatrix cases aligned binom bmod pmod")

// plainFormula reports whether a formula shows all its words: TeX can colour, shrink, overprint and leave out.
func plainFormula(tex string) bool {
	return !strings.ContainsAny(tex, "%#") && !slices.ContainsFunc(command.FindAllString(tex, -1), func(c string) bool { return !slices.Contains(arithmetic, c[1:]) })
}

// formulas hides those that could hide words. GitHub has rules of its own for where one begins; in doubt it does.
func (v *view) formulas() {
	code := []byte(v.body)
	for i, c := range v.class {
		if c == literal && code[i] == '$' {
			code[i] = ' '
		}
	}
	for _, text := range []string{v.body, string(code)} {
		for start := range len(text) {
			if text[start] != '$' {
				continue
			}
			if m := formula.FindStringSubmatch(text[start:]); m != nil {
				s := span{start, start + len(m[1])}
				within := !slices.ContainsFunc(v.class[s.start:s.end], func(c class) bool { return c != literal })
				if !within && !plainFormula(v.body[s.start:s.end]) {
					v.hide(s, "a formula")
				}
			}
		}
	}
}
