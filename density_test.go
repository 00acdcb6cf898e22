package pawl_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// The density limits come from an outside review of 2026-11-28: readable systems have 0.13 to 0.6 conditions per function.
const (
	maxConditions        = 0.6 // && and || per function, over all packages
	maxConditionsPackage = 0.8 // in a package of at least manyFunctions
	manyFunctions        = 10
	maxComplexity        = 15 // complexity of a function: its branches and conditions, plus one
	maxTableComplexity   = 5  // complexity of a flat table, without its cases
	maxBytes             = 33 // bytes per line of code on average, with the line feed
)

// flatTable, in a doc comment, marks a function that is one switch with cases of one or two lines.
const flatTable = "Flat table"

// notShipped lists folders whose code is only for tests and the demo's fakes.
func notShipped() []string {
	return []string{
		"config/deploy/validate", "handlers/handlerstest", "internal/agent/agenttest", "internal/crash",
		"internal/fakegithub", "internal/fakeprovider", "internal/goldentest", "internal/needs", "internal/postgrestest", "policy/learning/learningtest",
	}
}

// density measures a package's code.
type density struct {
	functions, conditions, lines, bytes int
}

func (d *density) add(other density) {
	d.functions += other.functions
	d.conditions += other.conditions
	d.lines += other.lines
	d.bytes += other.bytes
}

func (d density) perFunction() float64 { return float64(d.conditions) / float64(max(1, d.functions)) }

func (d density) perLine() float64 { return float64(d.bytes) / float64(max(1, d.lines)) }

func (d density) String() string {
	return fmt.Sprintf("%5d functions %5.2f conditions each %6d lines %5.1f bytes each", d.functions, d.perFunction(), d.lines, d.perLine())
}

// TestTheCodeIsNotPacked also prints the table of packages, which CI keeps (-v).
func TestTheCodeIsNotPacked(t *testing.T) {
	packages, broken := measured(t, os.DirFS("."))
	var all density
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		t.Logf("%-28s %s", name, packages[name])
		all.add(packages[name])
	}
	t.Logf("%-28s %s", "all", all)
	for _, b := range append(broken, packed(packages)...) {
		t.Error(b)
	}
}

func TestPackedCodeIsFound(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	wide := "package wide\n" + strings.Repeat("var _ = \"a line of more than thirty-three bytes\"\n", 400)
	commas := "package commas\n" + strings.Repeat("func f(a, b bool) bool {\nswitch {\ncase a, b:\nreturn true\n}\nreturn false\n}\n", manyFunctions)
	dense := "package dense\n" + strings.Repeat("func f(a, b bool) bool {\nreturn a && b\n}\n", manyFunctions)
	cases := strings.Repeat("case 1:\nreturn 1\n", 20)
	tree := fstest.MapFS{
		"internal/wide/w.go":       file(wide),
		"internal/dense/d.go":      file(dense),
		"internal/commas/c.go":     file(commas),
		"internal/few/f.go":        file("package few\nfunc f(a, b bool) bool { return a && b }\n"),
		"internal/long/l.go":       file("package long\nfunc f(n int) int {\nswitch n {\n" + cases + "}\nreturn 0\n}\n"),
		"internal/flat/f.go":       file("package flat\n// f is a table. " + flatTable + ".\nfunc f(n int) int {\nswitch n {\n" + cases + "}\nreturn 0\n}\n"),
		"internal/crash/c.go":      file(wide),
		"internal/dense/d_test.go": file("package dense\n" + strings.Repeat("func g(a, b, c bool) bool { return a && b && c }\n", 20)),
		"lab/x/x.go":               file(wide),
	}
	packages, broken := measured(t, tree)
	got := append(broken, packed(packages)...)
	want := []string{
		"internal/long/l.go:2: f has a complexity of 21; split it by question, or make it a table, above 15",
		"internal/commas: 1.00 conditions a function; name them or return early, above 0.8",
		"internal/dense: 1.00 conditions a function; name them or return early, above 0.8",
		"all: 36.2 bytes a line of code; unfold what is packed, above 33",
		"all: 0.91 conditions a function; name them or return early, above 0.6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// packed returns the packages whose averages exceed a limit, and the whole program if its averages do.
func packed(packages map[string]density) []string {
	var broken []string
	var all density
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		d := packages[name]
		all.add(d)
		if d.functions >= manyFunctions && d.perFunction() > maxConditionsPackage {
			broken = append(broken, fmt.Sprintf("%s: %.2f conditions a function; name them or return early, above %v", name, d.perFunction(), maxConditionsPackage))
		}
	}
	if all.perLine() > maxBytes {
		broken = append(broken, fmt.Sprintf("all: %.1f bytes a line of code; unfold what is packed, above %d", all.perLine(), maxBytes))
	}
	if all.perFunction() > maxConditions {
		broken = append(broken, fmt.Sprintf("all: %.2f conditions a function; name them or return early, above %v", all.perFunction(), maxConditions))
	}
	return broken
}

// measured returns the density of each shipped package, and the functions that are too complex.
func measured(t *testing.T, tree fs.FS) (map[string]density, []string) {
	t.Helper()
	packages := map[string]density{}
	var broken []string
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
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		d, complex, err := measure(name, source)
		of := packages[path.Dir(name)]
		of.add(d)
		packages[path.Dir(name)] = of
		broken = append(broken, complex...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages, broken
}

// skipped reports whether a folder contains no shipped code.
func skipped(path, name string) bool {
	if path == "." {
		return false
	}
	if strings.HasPrefix(name, ".") || name == "testdata" {
		return true
	}
	return path == "lab" || slices.Contains(notShipped(), path)
}

func measure(name string, source []byte) (d density, broken []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return d, nil, err
	}
	for line := range bytes.Lines(source) {
		text := bytes.TrimSpace(line)
		if len(text) > 0 && !bytes.HasPrefix(text, []byte("//")) {
			d.lines++
			d.bytes += len(bytes.TrimRight(line, "\n")) + 1
		}
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		d.functions++
		branches, cases, conditions := branchesOf(f)
		d.conditions += conditions
		complexity := 1 + branches + cases + conditions
		table := strings.Contains(f.Doc.Text(), flatTable) && complexity-cases <= maxTableComplexity
		if complexity > maxComplexity && !table {
			broken = append(broken, fmt.Sprintf("%s:%d: %s has a complexity of %d; split it by question, or make it a table, above %d",
				name, files.Position(f.Pos()).Line, f.Name.Name, complexity, maxComplexity))
		}
	}
	return d, broken, nil
}

// branchesOf counts a function's branches, the cases of its switches, and its && and ||, including function literals.
func branchesOf(f *ast.FuncDecl) (branches, cases, conditions int) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			branches++
		case *ast.SwitchStmt:
			if n.Tag == nil {
				conditions += alternatives(n)
			}
		case *ast.CaseClause:
			if n.List != nil {
				cases++
			}
		case *ast.CommClause:
			if n.Comm != nil {
				cases++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				conditions++
			}
		}
		return true
	})
	return branches, cases, conditions
}

// alternatives counts the commas in the cases of a switch without a tag. Each comma means ||.
func alternatives(s *ast.SwitchStmt) (n int) {
	for _, clause := range s.Body.List {
		if c, ok := clause.(*ast.CaseClause); ok {
			n += max(0, len(c.List)-1)
		}
	}
	return n
}
