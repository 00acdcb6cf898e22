package crash_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/crash"
)

func TestEveryPointIsPassedSomewhereAndEveryPlaceIsListed(t *testing.T) {
	passed := map[string]bool{}
	tree := os.DirFS("../..")
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		for _, point := range points(t, name, source) {
			passed[point] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for name := range passed {
		found = append(found, name)
	}
	slices.Sort(found)
	want := crash.Names()
	slices.Sort(want)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("the list of points and the code differ (-listed +passed):\n%s", diff)
	}
	if len(slices.Compact(want)) != len(crash.Names()) {
		t.Error("a point is listed twice")
	}
}

// points are the names in one file's calls of Point.
func points(t *testing.T, name string, source []byte) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || f.Sel.Name != "Point" {
			return true
		}
		if x, ok := f.X.(*ast.Ident); !ok || x.Name != "crash" {
			return true
		}
		literal, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			t.Errorf("%s: a crash point without a literal name", name)
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, text)
		return true
	})
	return found
}
