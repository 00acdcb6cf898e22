package feedback

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	gmtext "github.com/yuin/goldmark/text"
	nethtml "golang.org/x/net/html"

	"github.com/pawlbot/pawl/policy"
)

// Visible returns the part of a text from GitHub that a reader of the page sees, still as Markdown. It keeps what the
// tree of the text says is shown: words, code, and the signs around them that say nothing themselves. All else is left
// out, whatever it is: comments, attributes, titles and alternative texts, definitions of links, footnotes nobody refers to,
// cells beyond a table's width, words behind a fence, characters without a shape, entities of such. What <details> folds
// away counts as seen. Line ends become line feeds, bytes that are not UTF-8 become U+FFFD.
//
// Of what is not seen, addresses, elements that GitHub does not know with what stands in them, formulas that could hide
// text and diagrams follow at the end, each as a quotation that says so; Own leaves them out as it does all quotations.
//
// Prompts are built from it: instructions that a maintainer cannot see must not reach an agent as the task.
func Visible(text string) string {
	text, unseen := seen(text)
	if len(unseen) == 0 || strings.TrimSpace(text) == "" && !slices.Contains(unseen, allOfIt) {
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

// Title is what a reader sees of a title, which GitHub shows as it is.
func Title(text string) string { return strings.Map(shown, strings.ToValidUTF8(text, "\uFFFD")) }

const (
	allOfIt = "all of it, which is nested deeper than people write"

	maxUnseen  = 20  // so many things that are not seen are told
	maxQuoted  = 300 // bytes of each
	maxPasses  = 6   // what is left may be another page; a hostile text can go on with that
	hiddenSize = 3   // sub- and superscripts in so many others are too small to read: 0.75³ of the size
)

// seen is the text that is seen, and what else there is that is told.
func seen(text string) (shownText string, unseen []string) {
	text = strings.ToValidUTF8(unixLines(text), "\uFFFD")
	for range maxPasses {
		if !strings.ContainsAny(text, "<[$`~&|") { // everything that is not shown has one of these
			return strings.Map(shown, text), unseen
		}
		if endless(text) {
			return "", append(unseen, allOfIt)
		}
		v := view{body: text, source: []byte(text), class: make([]class, len(text)), unseen: unseen}
		now := v.read()
		if unseen = v.unseen; now == text {
			return now, unseen
		}
		text = now
	}
	return strings.NewReplacer("<", "", "[", "", "$", "").Replace(text), unseen
}

type class byte

const (
	between class = iota // Markdown's own signs, and what it does not show
	prose
	literal // code, where signs mean nothing
	gone
)

// view is a text on the way to what is seen of it.
type view struct {
	body   string
	source []byte
	class  []class // of each byte
	tags   []htmlElement
	unseen []string
}

// htmlElement is a tag of HTML.
type htmlElement struct {
	name          string
	start, end    int
	closes, alone bool
}

// shownElements are those that GitHub lets through, without scripts and their like:
// https://github.com/gjtorikian/html-pipeline, SanitizationFilter.
var shownElements = strings.Fields("h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p picture ol ul table thead tbody tfoot " +
	"blockquote dl dt dd kbd q samp var hr ruby rt li tr td th s strike summary details caption figure figcaption abbr bdo cite dfn mark small source span time wbr")

// Of these nothing remains of the tag; their address is told.
var emptyElements = []string{"a", "img", "source", "picture"}

// swallowing are elements that hide all that follows where they are not closed.
var swallowing = strings.Fields("script style template textarea title xmp iframe noembed noframes noscript plaintext svg math select object video audio canvas rp head")

func (v *view) read() string {
	// The error of a walk is that of its function, which has none.
	_ = ast.Walk(markdown.Parse(gmtext.NewReader(v.source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			v.set(n.Segment.Start, n.Segment.Stop, prose)
		case *ast.CodeSpan:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					v.set(t.Segment.Start, t.Segment.Stop, literal)
				}
			}
			return ast.WalkSkipChildren, nil
		case *ast.CodeBlock:
			v.lines(n.Lines())
		case *ast.FencedCodeBlock:
			v.fenced(n)
		case *ast.AutoLink:
			if label := n.Label(v.source); len(label) > 0 {
				start := cap(v.source) - cap(label) // it is a part of the source
				end := start + len(label)
				v.set(start, end, prose)
				if start > 0 && v.source[start-1] == '<' && end < len(v.source) {
					v.class[start-1], v.class[end] = gone, gone
				}
			}
		case *ast.Link:
			v.address("link", string(n.Destination))
		case *ast.Image:
			v.address("picture", string(n.Destination))
			return ast.WalkSkipChildren, nil // its alternative text
		case *ast.RawHTML:
			v.html(n.Segments)
		case *ast.HTMLBlock:
			all := gmtext.NewSegments()
			all.AppendAll(n.Lines().Sliced(0, n.Lines().Len())) // a copy
			if n.HasClosure() {
				all.Append(n.ClosureLine)
			}
			v.html(all)
		}
		return ast.WalkContinue, nil
	})
	v.elements()
	v.formulas()
	p := readPage(v.body)
	for _, c := range p.comments(v.body) { // one without an end, which is no HTML
		v.set(c.start, c.end, gone)
	}
	return v.write()
}

func (v *view) set(start, end int, c class) {
	for i := start; i < end; i++ {
		v.class[i] = c
	}
}

func (v *view) lines(s *gmtext.Segments) {
	for i := range s.Len() {
		v.set(s.At(i).Start, s.At(i).Stop, literal)
	}
}

// drawn are the languages of blocks that GitHub shows as a drawing.
var drawn = []string{"mermaid", "geojson", "topojson", "stl"}

func (v *view) fenced(n *ast.FencedCodeBlock) {
	language := strings.ToLower(string(n.Language(v.source)))
	s, ok := extent(n.Lines())
	switch {
	case ok && (slices.Contains(drawn, language) || language == "math" && !plainFormula(v.body[s.start:s.end])):
		v.hide(s, "a drawing or formula")
	default:
		v.lines(n.Lines())
	}
}

// hide takes out a part of the text, and tells it.
func (v *view) hide(s span, what string) {
	v.tell(what, v.body[s.start:s.end])
	v.set(s.start, s.end, gone)
}

// tell keeps what is not seen, as inline code.
func (v *view) tell(what, text string) {
	text = strings.Join(strings.Fields(strings.Map(shown, html.UnescapeString(text))), " ")
	if text = strings.ReplaceAll(clipped(text, maxQuoted), "`", "'"); text == "" {
		return
	}
	if u := what + " `" + text + "`"; !slices.Contains(v.unseen, u) {
		v.unseen = append(v.unseen, u)
	}
}

// address tells where a link leads, unless what is shown says so.
func (v *view) address(of, url string) {
	if url != "" && !strings.HasPrefix(url, "#") {
		v.tell("the address of a "+of+":", url)
	}
}

// html reads a part of the text that is HTML: its text is seen, of tags only the names that GitHub knows.
func (v *view) html(s *gmtext.Segments) {
	var raw []byte
	var at []int // where each byte stands
	for i := range s.Len() {
		for o := s.At(i).Start; o < s.At(i).Stop; o++ {
			raw, at = append(raw, v.source[o]), append(at, o)
		}
	}
	v.mark(at, gone)
	z, from := nethtml.NewTokenizer(bytes.NewReader(raw)), 0
	for z.Next() != nethtml.ErrorToken {
		own := at[from : from+len(z.Raw())]
		from += len(own)
		switch t := z.Token(); t.Type {
		case nethtml.TextToken:
			v.mark(own, prose)
		case nethtml.StartTagToken, nethtml.EndTagToken, nethtml.SelfClosingTagToken:
			v.tag(t, own)
		case nethtml.CommentToken, nethtml.DoctypeToken, nethtml.ErrorToken:
		}
	}
}

func (v *view) mark(at []int, c class) {
	for _, o := range at {
		v.class[o] = c
	}
}

func (v *view) tag(t nethtml.Token, at []int) {
	v.tags = append(v.tags, htmlElement{t.Data, at[0], at[len(at)-1] + 1, t.Type == nethtml.EndTagToken, t.Type == nethtml.SelfClosingTagToken})
	switch {
	case slices.Contains(emptyElements, t.Data):
		for _, a := range t.Attr {
			if a.Key == "href" || a.Key == "src" || a.Key == "srcset" {
				v.address(map[bool]string{true: "link", false: "picture"}[a.Key == "href"], a.Val)
			}
		}
	case slices.Contains(shownElements, t.Data):
		name := 1 + len(t.Data)
		if t.Type == nethtml.EndTagToken {
			name++
		}
		v.mark(at[:name], prose)
		v.mark(at[len(at)-1:], prose)
	case !slices.Contains(swallowing, t.Data):
		v.tell("an element", v.body[at[0]:at[len(at)-1]+1])
	}
}

// elements hides what stands in elements that GitHub does not know, and in those that are too small to read.
func (v *view) elements() {
	open, closed := 0, map[string]bool{}
	for _, t := range v.tags {
		closed[t.name] = closed[t.name] || t.closes
	}
	for i, hidden := 0, 0; i < len(v.tags); i++ {
		t := v.tags[i]
		small := t.name == "sub" || t.name == "sup" || t.name == "small"
		switch {
		case small && t.closes:
			open = max(0, open-1)
		case small:
			open++
		}
		if i < hidden || t.closes || t.alone || slices.Contains(shownElements, t.name) && !(small && open >= hiddenSize) {
			continue
		}
		if closed[t.name] {
			hidden = v.closing(i)
		}
		switch {
		case hidden > i:
			v.hide(span{t.start, v.tags[hidden].end}, "an element")
		case small || slices.Contains(swallowing, t.name):
			v.hide(span{t.start, len(v.body)}, "an element")
			return
		}
	}
}

// closing is the tag that closes another; 0 where there is none.
func (v *view) closing(i int) int {
	depth := 0
	for j := i; j < len(v.tags); j++ {
		switch t := v.tags[j]; {
		case t.name != v.tags[i].name || t.alone:
		case !t.closes:
			depth++
		default:
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return 0
}

var (
	// signs are what Markdown's own marks consist of.
	signs = regexp.MustCompile("^(?:[ \t>*_+\\-#=~|:\\\\`]|\\d{1,9}[.)]|\\[[ xX]\\])*$")
	// fence is the line that opens a block of code, of which only one word means something to a reader: GitHub shows a
	// suggestion as a change.
	fence = regexp.MustCompile("^((?:[ \t>*+\\-]|\\d{1,9}[.)])*(?:```+|~~~+)[ \t]*(?:suggestion\\b)?)")
	// container is what makes the rest of a line a quotation or an item.
	container = regexp.MustCompile("^(?:[ \t>*+\\-]|\\d{1,9}[.)])*")
	// entity matches a character by its name or number.
	entity = regexp.MustCompile(`&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)
)

// write puts together what is seen.
func (v *view) write() string {
	var b strings.Builder
	for start := 0; start < len(v.body); {
		end := start + 1
		for end < len(v.body) && v.class[end] == v.class[start] {
			end++
		}
		switch part := v.body[start:end]; v.class[start] {
		case prose:
			b.WriteString(strings.Map(shown, entity.ReplaceAllStringFunc(part, func(e string) string {
				if of := html.UnescapeString(e); of != e && strings.Map(shown, of) == "" {
					return ""
				}
				return e
			})))
		case literal:
			b.WriteString(strings.Map(shown, part))
		case between:
			for i, line := range strings.Split(part, "\n") {
				if i > 0 {
					b.WriteByte('\n')
				}
				begins := i > 0 || start == 0 || v.body[start-1] == '\n'
				switch opened := fence.FindString(line); {
				case signs.MatchString(line):
					b.WriteString(line)
				case opened == "" && begins:
					b.WriteString(container.FindString(line)) // else what stands behind a link would be no quotation
				default:
					b.WriteString(opened)
				}
			}
		case gone:
		}
		start = end
	}
	return b.String()
}

// shown maps a character to itself, to a space, or to nothing (-1).
func shown(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
		return ' '
	case policy.Invisible(r):
		return -1
	}
	return r
}
