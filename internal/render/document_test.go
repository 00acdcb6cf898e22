package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"
)

func TestDocumentKeepsItsStructure(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"paragraphs":            {"One line.\nAnother.\n\nA second paragraph.", "One line.\nAnother.\n\nA second paragraph."},
		"headings are small":    {"# Plan\n## Step one", "#### Plan\n#### Step one"},
		"lists":                 {"- one\n  - two\n1. three\n2) four", "- one\n  - two\n1. three\n2) four"},
		"tabs":                  {"-\tone\n\t- two", "-    one\n    - two"},
		"emphasis":              {"**Note:** this is *new*.", "**Note:** this is *new*."},
		"inline code":           {"Run `go test ./...`, (`make`) and ``a `b` c``.", "Run `go test ./...`, (`make`) and ``` ``a `b` c`` ```."},
		"paths":                 {"I changed internal/a.go and b_test.go.", "I changed `internal/a.go` and `b_test.go`."},
		"a long address":        {"https://example.com/" + strings.Repeat("a", 300), "`https://example.com/" + strings.Repeat("a", 300) + "`"},
		"users and numbers":     {"Ask @olga about #12.", "Ask `@olga` about `#12`."},
		"links and pictures":    {"See [here](http://x.y) ![](http://x.y/p.png)", "See `[here](http://x.y`) `![](http://x.y/p.png`)"},
		"markup":                {"<details><summary>x</summary>", "`<details><summary>x</summary>`"},
		"a quote":               {"> as he said", "`>` as he said"},
		"rules":                 {"a\n---\n===", "a\n`---`\n`===`"},
		"a code block":          {"Do:\n```go\nx := 1 // @a\n```\nThen.", "Do:\n```text\nx := 1 // @a\n```\nThen."},
		"an unterminated block": {"~~~\n<b>\n```", "````text\n<b>\n```\n````"},
		"an empty block":        {"```\n```", "```text\n\n```"},
		"a table":               {"| a | b |\n|---|---|\n| 1 | @c |\nend", "```text\n| a | b |\n|---|---|\n| 1 | @c |\n```\nend"},
		"a command":             {"Comment /pawl retry now", "Comment `/pawl retry` now"},
		"globs":                 {"*.go and *.md, 2*3*4", "`*.go` and `*.md`, `2*3*4`"},
		"an empty item":         {"words\n- ", "words\n`-`"},
		"a task":                {"- [x] done", "- `[x]` done"},
		"deep":                  {"- a\n" + strings.Repeat(" ", 40) + "x\nb\n    c", "- a\n" + strings.Repeat(" ", maxIndent) + "x\nb\nc"},
		"nothing":               {" \n\n ", ""},
		"a dash at the start":   {"-x", "`-x`"},
		"a number at the end":   {"version\n1.", "version\n`1`."},
		"an unmatched backtick": {"a ` b", "a `` ` `` b"},
		"hidden addresses":      {"www.evil.example and a:b@c.d", "`www.evil.example` and `a:b@c.d`"},
		"definitions of links":  {"[a]: http://x", "`[a]`: `http://x`"},
	} {
		if diff := cmp.Diff(c.want, Document(c.in, 4000)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestQuoteMarksEachLine(t *testing.T) {
	want := "> One.\n>\n> ```text\n> a\n>\n> b\n> ```"
	if diff := cmp.Diff(want, Quote("One.\n\n```\na\n\nb\n```", 4000)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// To GitHub's Markdown a document contains only words, lists, headings, emphasis and code.
func TestDocumentHasOnlyHarmlessMarkdown(t *testing.T) {
	github := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	piece := rapid.SampledFrom(append(strings.Split("\n|\n\n|    |- |1. |# |**|*|_|`|``|```\n|~~~|> |<b>|<!-- |-->|[a](http://x)|![a](b)|[a]: b\n|www.a.b|http://a.b|a@b.c|@olga|#1|| a ", "|"), "|", "|---|", "word", "é", "\u202e", "\\", "&lt;", "/pawl stop"))
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
		page := []byte(Document(in, 2000))
		err := ast.Walk(github.Parse(text.NewReader(page)), func(n ast.Node, in bool) (ast.WalkStatus, error) {
			switch n := n.(type) {
			case *ast.Link, *ast.Image, *ast.AutoLink, *ast.RawHTML, *ast.HTMLBlock, *ast.Blockquote, *ast.ThematicBreak:
				t.Fatalf("%s in %q", n.Kind(), page)
			case *ast.Heading:
				if n.Level < 4 {
					t.Fatalf("a heading of level %d in %q", n.Level, page)
				}
			case *ast.Text:
				if words := string(n.Segment.Value(page)); in && n.Parent().Kind() != ast.KindCodeSpan && strings.ContainsAny(words, "@#<>[]\\&~_|") {
					t.Fatalf("%q outside of code in %q", words, page)
				}
			}
			return ast.WalkContinue, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
