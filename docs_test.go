package pawl_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// document is a Markdown file: its links, its pictures, and GitHub's anchors for its headings.
type document struct {
	links, pictures []string
	anchors         map[string]bool
}

// notInAnchors matches the characters that GitHub omits from a heading's anchor.
var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_\- ]`)

func readDocument(t *testing.T, name string) document {
	t.Helper()
	source := read(t, name)
	d := document{anchors: map[string]bool{}}
	words := func(n ast.Node) (s string) {
		_ = ast.Walk(n, func(n ast.Node, in bool) (ast.WalkStatus, error) {
			if in && n.Kind() == ast.KindText {
				s += string(n.(*ast.Text).Segment.Value(source))
			} else if in && n.Kind() == ast.KindString {
				s += string(n.(*ast.String).Value)
			}
			return ast.WalkContinue, nil
		})
		return s
	}
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err := ast.Walk(tree, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if in {
				d.links = append(d.links, string(n.Destination))
			}
		case *ast.Image:
			if in {
				d.pictures = append(d.pictures, string(n.Destination))
				if strings.TrimSpace(words(n)) == "" {
					t.Errorf("%s: %s has no alternative text", name, n.Destination)
				}
			}
		case *ast.Heading:
			if in {
				anchor := strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(words(n)), ""), " ", "-")
				d.anchors[anchor] = true
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// documents lists all of our Markdown files.
func documents(t *testing.T) map[string]document {
	t.Helper()
	all := map[string]document{}
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", "testdata", "node_modules"}, e.Name()):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			all[filepath.ToSlash(name)] = readDocument(t, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLinksInDocumentsHaveTargets(t *testing.T) {
	all := documents(t)
	checked := 0
	for name, d := range all {
		for _, link := range d.links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(link, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, link)
			} else if anchor != "" && !all[to].anchors[anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, link)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}

func TestPagesAreIndexedAndPicturesAreUsed(t *testing.T) {
	all, shown := documents(t), map[string]bool{}
	for name, d := range all {
		for _, picture := range d.pictures {
			if shown[path.Join(path.Dir(name), picture)] = true; !strings.Contains(picture, "://") {
				if _, err := os.Stat(path.Join(path.Dir(name), picture)); err != nil {
					t.Errorf("%s shows %s, which does not exist", name, picture)
				}
			}
		}
		if page, in := strings.CutPrefix(name, "docs/"); in && page != "README.md" && !slices.ContainsFunc(all["docs/README.md"].links, func(l string) bool { return l == page }) {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
	pictures, err := os.ReadDir("docs/pictures")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, p := range pictures {
		info, err := p.Info()
		if err != nil {
			t.Fatal(err)
		}
		if size += info.Size(); !shown["docs/pictures/"+p.Name()] {
			t.Errorf("no page shows docs/pictures/%s", p.Name())
		}
	}
	if size > 1<<20 {
		t.Errorf("the pictures have %d bytes", size)
	}
}

// counted lists numeric log fields that are counts, ids or codes, and so have no unit.
var counted = strings.Fields("answered attempt calls check_run commands deliveries epoch exit failed failing found gone known listed processes run seeds seq status taken threads transcripts tries try")

func TestNumbersInTheLogNameTheirUnits(t *testing.T) {
	field := regexp.MustCompile(`\.(Dur|TimeDiff|Int|Int64|Uint64|Float64)\("([^"]+)"`)
	found := 0
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata") || strings.Contains(name, "node_modules") {
			return err
		}
		for _, m := range field.FindAllStringSubmatch(string(read(t, name)), -1) {
			found++
			kind, field := m[1], m[2]
			// Durations are written in milliseconds, zerolog's default.
			timed := kind == "Dur" || kind == "TimeDiff"
			unit := field[strings.LastIndex(field, "_")+1:]
			if timed && unit != "ms" || !timed && !slices.Contains(counted, field) && !slices.Contains([]string{"ms", "bytes", "tokens", "usd"}, unit) {
				t.Errorf("%s: the field %q has no unit at its end", name, field)
			}
		}
		return nil
	})
	if err != nil || found < 30 {
		t.Errorf("%d fields, %v", found, err)
	}
}
