package pawl_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/pawlbot/pawl/"

// everything allows a folder to import every other folder.
const everything = "*"

// arrows maps each folder to the folders that it may import, including their subfolders. A rule also applies to subfolders
// without their own rule. Test files may import anything.
func arrows() map[string][]string {
	return map[string][]string{
		"cmd":               {everything},
		"handlers":          {"solver", "solver/thread", "policy", "config", "internal/checkrun", "internal/forge", "internal/commands", "internal/crash"},
		"internal/catchup":  {"handlers", "solver/thread", "policy", "internal/forge", "internal/crash", "internal/wait"},
		"solver":            {"solver/attempt", "solver/lease", "solver/thread", "policy", "config", "internal/git", "internal/forge", "internal/testreport", "internal/checkrun", "internal/render", "internal/crash", "internal/wait", "internal/secret", "internal/panics"},
		"solver/attempt":    {"solver/lease", "solver/thread", "policy", "config", "internal/agent", "internal/gateway", "internal/sandbox", "internal/egress", "internal/git", "internal/ground", "internal/forge", "internal/testreport", "internal/render", "internal/crash", "internal/wait", "internal/secret", "internal/panics"},
		"solver/lease":      {"solver/thread", "internal/crash", "internal/wait", "internal/panics"},
		"solver/thread":     {"policy", "config", "internal/panics"},
		"policy":            {"policy"},
		"config":            {"policy"},
		"internal":          {"policy", "internal/render", "internal/secret", "internal/wait"},
		"internal/agent":    {"policy", "config", "internal/render", "internal/limit", "internal/agent", "internal/panics"},
		"internal/ground":   {"policy", "internal/sandbox", "internal/wait"},
		"internal/gateway":  {"policy", "config", "internal/render", "internal/limit", "internal/secret", "internal/wait", "internal/panics"},
		"internal/cluster":  {"solver/thread", "policy", "internal/wait"},
		"internal/store":    {"internal/store/postgres", "solver/thread", "policy", "internal/crash", "internal/wait"},
		"internal/forge":    {"policy", "internal/render", "internal/crash", "internal/wait", "internal/secret"},
		"internal/checkrun": {"solver/thread", "policy", "config", "internal/forge", "internal/render"},
		"internal/queue":    {"solver/thread", "internal/wait", "internal/panics"},
		"internal/web":      {"solver", "solver/attempt", "solver/thread", "policy", "internal/checkrun", "internal/commands", "internal/store", "internal/render"},
		"internal/commands": {"internal/store", "solver/thread", "policy"},
		"internal/inspect":  {"config", "policy", "internal/agent", "internal/render", "internal/replay"},
		"internal/local":    {"solver", "solver/thread", "config", "policy", "internal/agent", "internal/checkrun", "internal/git", "internal/render", "internal/wait"},
		"internal/replay":   {"solver/thread", "config", "policy", "internal/agent", "internal/render"},
		"internal/testtool": {"policy", "config", "internal/testreport", "internal/render", "internal/sandbox"},
		"internal/doctor": {
			"solver", "solver/attempt", "solver/thread", "policy", "config",
			"internal/agent", "internal/cluster", "internal/forge", "internal/gateway", "internal/git", "internal/render", "internal/sandbox",
			"internal/server", "internal/setup", "internal/store", "internal/wait", "internal/web",
		},
		"internal/server": {
			"handlers", "solver", "solver/attempt", "solver/thread", "policy", "config",
			"internal/catchup", "internal/checkrun", "internal/cluster", "internal/crash", "internal/forge", "internal/gateway", "internal/notify",
			"internal/commands", "internal/queue", "internal/sandbox", "internal/store", "internal/wait", "internal/web", "internal/panics",
		},
		"internal/status": {
			"internal/checkrun", "internal/cluster", "internal/ground", "internal/render", "internal/server", "internal/store",
			"solver", "solver/attempt", "solver/thread", "policy", "config",
		},
		"internal/store/postgres": {"solver/thread", "policy", "internal/wait"},
		"internal/setup":          {"config", "internal/forge", "internal/render"},

		// Only tests import these.
		"handlers/handlerstest":    {everything},
		"internal/crash/crashtest": {everything},
		"internal/postgrestest":    {"internal/needs"},
		"internal/testrig":         {everything},
	}
}

// topLevel lists the root's folders. Folders that start with a dot are tools' settings. lab is a separate module. make build
// writes the program to bin; releases and the tests' pictures are in dist. git ignores both.
func topLevel() []string {
	return []string{"cmd", "handlers", "solver", "policy", "config", "testdata", "internal", "docs", "lab", "bin", "dist"}
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	for _, violation := range violations(t, os.DirFS(".")) {
		t.Error(violation)
	}
}

func TestPlantedViolationsAreFound(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tree := fstest.MapFS{
		"main.go":                   file("package pawl\n"),
		"root_test.go":              file("package pawl_test\n"),
		"util/util.go":              file("package util\n"),
		".ci/tool/main.go":          file("package main\nimport _ \"" + module + "solver\"\nfunc init() {}\n"),
		"testdata/x.go":             file("not Go"),
		"cmd/pawl/main.go":          file("package main\nimport _ \"" + module + "internal/store\"\n"),
		"config/config.go":          file("package config\nimport _ \"" + module + "solver\"\nimport _ \"" + module + "policy\"\n"),
		"config/config_test.go":     file("package config\nimport _ \"" + module + "solver\"\nfunc init() {}\n"),
		"internal/agent/a.go":       file("package agent\nimport _ \"" + module + "internal/agent/codex\"\n"),
		"internal/git/g.go":         file("package git\nimport _ \"" + module + "internal/forge\"\n"),
		"internal/store/s.go":       file("package store\nimport _ \"" + module + "solver/thread\"\nfunc init() {}\n"),
		"policy/clock.go":           file("package policy\nimport \"time\"\nvar T, D = time.Now, time.Second\nfunc f(t time.Time) { time.Sleep(1) }\n"),
		"policy/chance.go":          file("package policy\nimport chance \"math/rand/v2\"\nfunc f(r *chance.Rand) { _, _ = chance.IntN(3), chance.New(nil) }\n"),
		"policy/io.go":              file("package policy\nimport _ \"os\"\nimport _ \"net/http\"\nimport . \"strings\"\nfunc f() { go f() }\n"),
		"policy/learning/l.go":      file("package learning\nimport \"time\"\nvar T = time.Now\n"),
		"solver/thread/t.go":        file("package thread\nimport _ \"" + module + "policy/learning\"\nimport _ \"" + module + "internal/git\"\n"),
		"policy/github.go":          file("package policy\nimport _ \"github.com/google/go-github/v60/github\"\n"),
		"internal/fakegithub/gh.go": file("package fakegithub\nimport _ \"github.com/google/go-github/v60/github\"\n"),
	}
	want := []string{
		"config/config.go:2: config must not import solver",
		"internal/git/g.go:2: internal/git must not import internal/forge",
		"internal/store/s.go:3: init function; do the work where it is asked for",
		"main.go: package in the root; it holds tests only",
		"policy/chance.go:3: policy must not use math/rand/v2.IntN; chance is a parameter",
		"policy/clock.go:3: policy must not use time.Now; time is a parameter",
		"policy/clock.go:4: policy must not use time.Sleep; time is a parameter",
		"policy/github.go:2: policy must not import github.com/google/go-github/v60/github",
		"policy/io.go:2: policy must not import os",
		"policy/io.go:3: policy must not import net/http",
		"policy/io.go:4: policy must not import . strings",
		"policy/io.go:5: policy must not start goroutines",
		"policy/learning/l.go:3: policy must not use time.Now; time is a parameter",
		"solver/thread/t.go:3: solver/thread must not import internal/git",
		"util: not one of the folders of the root",
	}
	if diff := cmp.Diff(want, violations(t, tree)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// violations returns the tree's violations, sorted. It reads the files itself instead of asking go list. So go test knows
// what the result depends on, and never answers from its cache after a change.
func violations(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."), entry.IsDir() && entry.Name() == "testdata", name == "lab":
			return fs.SkipDir
		case entry.IsDir() && name != "." && path.Dir(name) == "." && !slices.Contains(topLevel(), name):
			found = append(found, name+": not one of the folders of the root")
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		more, err := inspect(name, source)
		found = append(found, more...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// inspect returns one file's violations.
func inspect(name string, source []byte) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	at := func(node ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: ", name, files.Position(node.Pos()).Line)+fmt.Sprintf(format, args...))
	}
	from := path.Dir(name)
	if from == "." {
		found = append(found, name+": package in the root; it holds tests only")
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if ours, ok := strings.CutPrefix(imported, module); ok && !mayImport(from, ours) {
			at(spec, "%s must not import %s", from, ours)
		}
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Name.Name == "init" {
			at(f, "init function; do the work where it is asked for")
		}
	}
	if within(from, "policy") {
		impure(file, at)
	}
	return found, nil
}

func mayImport(from, to string) bool {
	for room := from; room != "."; room = path.Dir(room) {
		if allowed, ok := arrows()[room]; ok {
			return slices.ContainsFunc(allowed, func(a string) bool { return a == everything || within(to, a) })
		}
	}
	return false
}

// within reports whether a folder is another folder or is below it.
func within(folder, room string) bool {
	return folder == room || strings.HasPrefix(folder, room+"/")
}

// impure reports code that could make a replay of policy differ from the run.
func impure(file *ast.File, at func(ast.Node, string, ...any)) {
	names := map[string]string{}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		local := path.Base(strings.TrimSuffix(imported, "/v2"))
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = imported
		switch first, _, _ := strings.Cut(imported, "/"); {
		case local == ".":
			at(spec, "policy must not import . %s", imported)
		case slices.Contains([]string{"os", "net", "database", "syscall", "log", "testing"}, first),
			imported == "crypto/rand", imported == "io/ioutil",
			strings.Contains(imported, "github.com/google/go-github"), strings.Contains(imported, "go-githubapp"), strings.Contains(imported, "ghinstallation"):
			at(spec, "policy must not import %s", imported)
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			at(n, "policy must not start goroutines")
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch imported, member := names[x.Name], n.Sel.Name; {
			case imported == "time" && readsClock(member):
				at(n, "policy must not use time.%s; time is a parameter", member)
			case strings.HasPrefix(imported, "math/rand") && !seeded(member):
				at(n, "policy must not use %s.%s; chance is a parameter", imported, member)
			}
		}
		return true
	})
}

func readsClock(member string) bool {
	return slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Local"}, member)
}

// seeded reports whether a member of math/rand is a type or makes a source from a seed. All others draw from the global
// source.
func seeded(member string) bool {
	return slices.Contains([]string{"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf", "New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf"}, member)
}
