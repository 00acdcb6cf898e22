package pawl_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	markdown "github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

const (
	maxSentence = 35 // words of a sentence in README, CONTRIBUTING and docs
	allowedFile = "testdata/language.txt"
)

var update = flag.Bool("update", false, "write "+allowedFile)

// phrase is wording that reads as translated, and its replacement.
type phrase struct {
	pattern string // in lower case; a space matches any white space
	instead string
}

// phrases returns constructions and private words that a reader of English must read twice. Each can always be replaced.
// Words that are only a matter of taste do not belong here.
func phrases() []phrase {
	return []phrase{
		{`of which`, `"whose", or a second sentence`},
		{`so many`, `"up to N", or the number's name`},
		{`but for`, `"except"`},
		{`save (for|that of|those of)`, `"except"`},
		{`in place of`, `"instead of"`},
		{`in spite of`, `"despite"`},
		{`(is|are) said to be`, `"is", or "is called"`},
		{`that is,`, `a colon, or nothing`},
		{`(that|those) of`, `the noun again: "the attempt's branch"`},
		{`(of|by|from|to|with|in|for|on|at) what (is|was|are|were|has|had)`, `the thing's name`},
		{`(for|of|by|to|from|with|at|than) who`, `"users who", "anyone who"`},
		{`whoever`, `"the user who", "anyone who"`},
		{`(where|there)(of|upon|with)|wherein|therein|wherefore`, `a second sentence`},
		{`such that`, `"so that"`},
		{`(is|are) to be`, `"must be", or the active verb`},
		{`where there (is|are)( no| none)?`, `"if there is", "without"`},
		{`shall`, `"must" or "should"`},
		{`anew`, `"again"`},
		{`persons?`, `"user", "maintainer", "operator" or "contributor"`},
		{`(somebody|someone|anybody)('s)?`, `"a user", "a maintainer", "an operator"`},
		{`(is|are|was|were|be|been) (said|told|heard)`, `"reported", "acknowledged", "gets", or the active verb`},
		{`(an|gives?|gave|given|give no|takes?|first|'s) orders?`, `"command"`},
		{`beside`, `"next to", "in addition to" or "in the background"`},
		{`worked off`, `"finished" or "handled"`},
		{`given out`, `"dispatched"`},
		{`insist(s|ed|ing)?`, `"forced by a user"`},
		{`climb(s|ed|ing)?`, `"escalate"`},
		{`hand-over`, `"handover"`},
		{`(inside|outside|behind|through) the wall`, `"the network policy"`},
		{`resting|(rests?|rested) (until|for|here|there|after)`, `"is in cooldown"`},
	}
}

// marker finds phrases in text.
type marker struct {
	all      *regexp.Regexp
	patterns []*regexp.Regexp
	phrases  []phrase
}

func newMarker() marker {
	m := marker{phrases: phrases()}
	var alternatives []string
	for _, p := range m.phrases {
		pattern := `(?:` + strings.ReplaceAll(p.pattern, " ", `\s+`) + `)`
		m.patterns = append(m.patterns, regexp.MustCompile(`^`+pattern+`$`))
		alternatives = append(alternatives, pattern)
	}
	m.all = regexp.MustCompile(`(?i)(?:^|[^\w'-])(` + strings.Join(alternatives, "|") + `)(?:$|[^\w-])`)
	return m
}

// mark is a phrase or a sentence to rewrite.
type mark struct {
	file  string
	line  int
	words string
	hint  string
}

func (m mark) String() string { return fmt.Sprintf("%s:%d: %q: %s", m.file, m.line, m.words, m.hint) }

// quoted matches quotations and code.
var quoted = regexp.MustCompile("\"[^\"\n]*\"|`[^`\n]*`|[\\w.-]*/[\\w./-]+")

// find marks the phrases of a text that begins at a line of a file.
func (m marker) find(file string, line int, words string) []mark {
	words = quoted.ReplaceAllStringFunc(words, func(q string) string { return strings.Repeat("_", len(q)) })
	var marks []mark
	for at := 0; at < len(words); {
		found := m.all.FindStringSubmatchIndex(words[at:])
		if found == nil {
			break
		}
		from, to := at+found[2], at+found[3]
		hit := strings.Join(strings.Fields(words[from:to]), " ")
		marks = append(marks, mark{file, line + strings.Count(words[:from], "\n"), hit, m.instead(hit)})
		at = to
	}
	return marks
}

func (m marker) instead(hit string) string {
	hit = strings.ToLower(hit)
	for i, p := range m.patterns {
		if p.MatchString(hit) {
			return "write " + m.phrases[i].instead
		}
	}
	return "see STYLE.md"
}

// goFile marks the comments and messages of a file. A message is a string literal with a space in it.
func (m marker) goFile(name string, source []byte) ([]mark, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var marks []mark
	for _, group := range file.Comments {
		var lines []string
		for _, c := range group.List {
			lines = append(lines, strings.TrimPrefix(c.Text, "//"))
		}
		marks = append(marks, m.find(name, files.Position(group.Pos()).Line, strings.Join(lines, "\n"))...)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			words, err := strconv.Unquote(n.Value)
			if n.Kind == token.STRING && err == nil && strings.Contains(words, " ") {
				marks = append(marks, m.find(name, files.Position(n.Pos()).Line, words)...)
			}
		}
		return true
	})
	slices.SortStableFunc(marks, func(a, b mark) int { return a.line - b.line })
	return marks, nil
}

// markdownFile marks the phrases and the long sentences of a document. Code is not text.
func (m marker) markdownFile(name string, source []byte) []mark {
	var marks []mark
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = markdown.Walk(tree, func(n markdown.Node, in bool) (markdown.WalkStatus, error) {
		if !in || n.Type() != markdown.TypeBlock || n.FirstChild() == nil || n.FirstChild().Type() != markdown.TypeInline {
			return markdown.WalkContinue, nil
		}
		words, line := prose(n, source)
		marks = append(marks, m.find(name, line, words)...)
		marks = append(marks, longSentences(name, line, words)...)
		return markdown.WalkSkipChildren, nil
	})
	return marks
}

// prose returns the text of a paragraph, heading or table cell, and its line. Each piece of code becomes one word.
func prose(block markdown.Node, source []byte) (words string, line int) {
	line = 1
	first := true
	_ = markdown.Walk(block, func(n markdown.Node, in bool) (markdown.WalkStatus, error) {
		if !in {
			return markdown.WalkContinue, nil
		}
		switch n := n.(type) {
		case *markdown.CodeSpan:
			words += "code"
			return markdown.WalkSkipChildren, nil
		case *markdown.Text:
			if first {
				line += bytes.Count(source[:n.Segment.Start], []byte("\n"))
				first = false
			}
			words += string(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				words += "\n"
			}
		}
		return markdown.WalkContinue, nil
	})
	return words, line
}

var sentenceEnd = regexp.MustCompile(`[.!?:]["')]*(\s+|$)`)

func longSentences(name string, line int, words string) (marks []mark) {
	from := 0
	for from < len(words) {
		to := len(words)
		if end := sentenceEnd.FindStringIndex(words[from:]); end != nil {
			to = from + end[1]
		}
		if n := len(strings.Fields(words[from:to])); n > maxSentence {
			start := strings.Join(strings.Fields(words[from:to])[:6], " ") + " …"
			marks = append(marks, mark{name, line + strings.Count(words[:from], "\n"), start, fmt.Sprintf("%d words; split the sentence, above %d", n, maxSentence)})
		}
		from = to
	}
	return marks
}

// language marks the shipped files: Go files, README, CONTRIBUTING and docs.
func language(t *testing.T, tree fs.FS) map[string][]mark {
	t.Helper()
	m, marks := newMarker(), map[string][]mark{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped(name, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		var found []mark
		switch {
		case strings.HasSuffix(name, "_test.go"):
		case strings.HasSuffix(name, ".go"):
			found, err = m.goFile(name, source)
		case name == "README.md", name == "CONTRIBUTING.md", path.Dir(name) == "docs" && path.Ext(name) == ".md":
			found = m.markdownFile(name, source)
		}
		if len(found) > 0 {
			marks[name] = found
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return marks
}

// allowed reads the number of marks that each file may have. The numbers may only fall.
func allowed(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(read(t, allowedFile)))
	for lines.Scan() {
		name, count, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			t.Fatalf("%s: %q is not a file with a count", allowedFile, lines.Text())
		}
		counts[name] = n
	}
	return counts
}

// TestPlainEnglish fails on phrases and long sentences that are new, and lists all with -v. -update lowers the counts.
func TestPlainEnglish(t *testing.T) {
	marks, counts := language(t, os.DirFS(".")), allowed(t)
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		report := t.Error
		if len(marks[name]) <= counts[name] {
			report = t.Log
		}
		if len(marks[name]) <= counts[name] && !testing.Verbose() {
			continue
		}
		report(fmt.Sprintf("%s has %d marks, and %s allows %d:", name, len(marks[name]), allowedFile, counts[name]))
		for _, m := range marks[name] {
			report(m)
		}
	}
	var left strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		n := min(counts[name], len(marks[name]))
		if n < counts[name] {
			t.Logf("%s: %s may allow %d instead of %d (go test . -run TestPlainEnglish -update)", name, allowedFile, n, counts[name])
		}
		if n > 0 {
			fmt.Fprintf(&left, "%s %d\n", name, n)
		}
	}
	if *update {
		if err := os.WriteFile(allowedFile, []byte(left.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPhrasesAreMarked(t *testing.T) {
	m := newMarker()
	for _, tt := range []struct{ text, want string }{
		{"a command of which nothing comes", "of which"},
		{"claims threads, at most so many", "so many"},
		{"a wait ends early, but for the daily one", "but for"},
		{"the fallback in place\nof the model", "in place of"},
		{"in spite of its switches", "in spite of"},
		{"a repository is said to be paused", "is said to be"},
		{"an arm, that is, a backend at an effort", "that is,"},
		{"its branch and that of the attempt", "that of"},
		{"the list of what is owed", "of what is"},
		{"security for who decides", "for who"},
		{"Whoever answers first", "Whoever"},
		{"the key whereof it is made", "whereof"},
		{"sorted such that the oldest is first", "such that"},
		{"the branch is to be deleted", "is to be"},
		{"a retry, where there is none", "where there is none"},
		{"the run shall end", "shall"},
		{"the layer is made anew", "anew"},
		{"a person comments", "person"},
		{"Somebody's comment", "Somebody's"},
		{"the user is told why", "is told"},
		{"users who may give no orders", "give no orders"},
		{"a check run beside it", "beside"},
		{"deliveries that are worked off", "worked off"},
		{"a backend rests until Monday", "rests until"},
		{"a user insists on it; it is made anew", "insists, anew"},
	} {
		var got []string
		for _, mark := range m.find("x.go", 1, tt.text) {
			got = append(got, mark.words)
			if mark.hint == "see STYLE.md" {
				t.Errorf("%q has no replacement", mark.words)
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%q: marked %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestPlainTextIsNotMarked(t *testing.T) {
	m := newMarker()
	for _, text := range []string{
		"Claim leases up to limit due threads, oldest first.",
		"The attempt's branch, the one that offers most",
		"in the order of their age; the list is in order",
		"It rests on three measurements; the rest is kept.",
		"a comment that quotes \"so many\" or `a person` says why",
		"personal access tokens, impersonate, thereby",
		"the value is set aside; besides, it is old",
		"The user decides who answers. What is owed comes first.",
		"the file solver/person/anew.go",
		"that is why the run ended, and which of them won",
		"It is therefore closed to anyone who asks.",
	} {
		if marks := m.find("x.go", 1, text); len(marks) > 0 {
			t.Errorf("%q: %v", text, marks)
		}
	}
}

func TestLanguageMarksHaveFileAndLine(t *testing.T) {
	long := strings.Repeat("word ", maxSentence) + "word."
	short := strings.Repeat("word ", maxSentence-1) + "word: "
	tree := fstest.MapFS{
		"solver/s.go": {Data: []byte("// Package solver works,\n// but for\n// nights.\npackage solver\n\nimport _ \"so many\"\n\n" +
			"// f is made anew.\nfunc f() { g(\"shall\", \"it shall end\", `a\nperson's turn`) } // in place of g\n")},
		"solver/s_test.go":        {Data: []byte("// anew\npackage solver\n")},
		"internal/crash/c.go":     {Data: []byte("// anew\npackage crash\n")},
		"docs/verdicts.md":        {Data: []byte("# A person\n\nIt is so\nmany. " + short + long + "\n\n- an item made `anew` anew\n\n```\nso many\n```\n\n| a | b |\n|---|---|\n| but for | " + long + " |\n")},
		"docs/pictures/README.md": {Data: []byte("anew\n")},
		"CHANGELOG.md":            {Data: []byte("anew\n")},
	}
	var got []string
	marks := language(t, tree)
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		for _, m := range marks[name] {
			got = append(got, fmt.Sprintf("%s:%d %s", m.file, m.line, m.words))
		}
	}
	want := []string{
		"docs/verdicts.md:1 person",
		"docs/verdicts.md:3 so many",
		"docs/verdicts.md:4 word word word word word word …",
		"docs/verdicts.md:6 anew",
		"docs/verdicts.md:14 but for",
		"docs/verdicts.md:14 word word word word word word …",
		"solver/s.go:2 but for",
		"solver/s.go:8 anew",
		"solver/s.go:9 shall",
		"solver/s.go:10 in place of",
		"solver/s.go:10 person",
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
