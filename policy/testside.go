package policy

import (
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// testNames are common runners' test files. runnerFiles are shared test code and configuration.
var (
	testNames = strings.Fields(`
	*_test.go
	test_*.py *_test.py test.py tests.py
	*.test.[jt]s *.test.[jt]sx *.test.[cm][jt]s *.spec.[jt]s *.spec.[jt]sx *.spec.[cm][jt]s *[\-_]test.[jt]s *[\-_]test.[cm]js
	*[\-.]spec.[jt]s *.cy.[jt]s test.[jt]s test.[cm]js test-*.[jt]s test-*.[cm]js *.snap
	*_test.rb test_*.rb *_spec.rb *.feature *.t *.bats
	Test*.java *Test.java *Tests.java *TestCase.java *[a-z]IT.java *Test.kt *Tests.kt *Test.groovy *Spec.groovy *Spec.kt *Test.scala *Spec.scala
	*Test.cs *Tests.cs *Test.fs *Tests.fs *Test.vb *Tests.vb *Test.php *Test.swift *Tests.swift *Spec.hs
	*_test.rs test.rs tests.rs *_test.dart *_test.exs *_test.clj* *_spec.lua runtests.jl
	*_test.c *_test.cc *_test.cpp *_test.cxx *_tests.c *_tests.cc *_tests.cpp *_unittest.c* *_gtest.c* test_*.c test_*.cc test_*.cpp *Test.cpp *Tests.cpp
	test.sh tests.sh run-tests.sh run_tests.sh runtests.sh test[\-_]*.sh *[\-_]test.sh *[\-_]tests.sh`)
	runnerFiles = strings.Fields(`conftest.py pytest.ini .pytest.ini tox.ini noxfile.py .coveragerc spec_helper.rb .rspec test_helper.exs phpunit.xml*
	jest.config.* jest.setup.* vitest.config.* vitest.setup.* vitest.workspace.* .mocharc* karma.conf.* playwright.config.* cypress.config.*
	pytest.py unittest.py sitecustomize.py usercustomize.py *.pth
	.gitlab-ci.yml .travis.yml azure-pipelines.yml Jenkinsfile`)
)

var testFolders = strings.Fields(`test tests spec specs __tests__ __mocks__ __snapshots__ testdata e2e cypress
	*[\-_]tests *.Test *Tests androidTest integrationTest testFixtures ci .ci .circleci .buildkite`)

func named(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// TestFile reports whether a file belongs to the tests by its name or its folders.
func TestFile(file string) bool {
	dir, base := path.Split(file)
	if named(base, testNames) || named(base, runnerFiles) {
		return true
	}
	lower := strings.ToLower(base)
	if strings.HasPrefix(lower, "readme") || strings.HasPrefix(lower, "changelog") {
		return false
	}
	return slices.ContainsFunc(strings.Split(dir, "/"), func(d string) bool { return named(d, testFolders) })
}

// TestSide lists files that belong to the tests: paths, and name patterns that match in any folder.
type TestSide []string

// manifest holds scripts that verify commands run, but also settings of the code.
const manifest = "package.json"

var pythonManifests = []string{"pyproject.toml", "setup.cfg"}

// runnerSection matches a section header about running tests; anySection, any header.
var (
	runnerSection = regexp.MustCompile(`^\[+(tool[.:](pytest|tox|poe|taskipy)|tool\.(hatch\.envs|pdm\.scripts))\b`)
	anySection    = regexp.MustCompile(`^\[+[A-Za-z][^\[\],]*\]+\s*(#.*)?$`)
)

// toolFiles tell a verify command's program what to run.
var toolFiles = map[string][]string{
	"make": {"Makefile", "makefile", "GNUmakefile", "*.mk"}, "gmake": {"Makefile", "GNUmakefile", "*.mk"}, "rake": {"Rakefile", "*.rake"},
	"just": {"justfile", "Justfile", ".justfile"}, "task": {"Taskfile.yml", "Taskfile.yaml"}, "mage": {"magefile.go"}, "invoke": {"tasks.py"},
	"npm": {manifest}, "npx": {manifest}, "yarn": {manifest}, "pnpm": {manifest}, "bun": {manifest},
}

// NewTestSide parses the verify commands, and the scripts and tool files that they run. read returns a file's content
// before the change; empty for none.
func NewTestSide(commands []string, read func(file string) string) (s TestSide) {
	s.follow(strings.Join(commands, "\n"), true, read)
	return s
}

// follow adds the files that a shell text runs. If command is set, text is a verify command, whose programs in the
// repository count too.
func (s *TestSide) follow(text string, command bool, read func(file string) string) {
	for _, word := range executed(text) {
		readable := script(word) || toolFiles[word] != nil
		for _, file := range filesOf(word, command) {
			if slices.Contains(*s, file) || len(*s) == maxTestSide {
				continue
			}
			*s = append(*s, file)
			if readable {
				s.follow(scripts(file, read(file)), false, read)
			}
		}
	}
}

// filesOf returns the repository's files that a shell word runs.
func filesOf(word string, command bool) []string {
	program := command && strings.ContainsAny(word, "./")
	if program || script(word) {
		return []string{path.Clean(word)}
	}
	return toolFiles[word]
}

func script(word string) bool {
	if strings.HasSuffix(word, ".sh") {
		return true
	}
	return strings.Contains(word, "/") && path.Ext(word) == ""
}

// Reported adds the test files named in reports, except pytest's doctests.
func (s TestSide) Reported(results ...[]Verified) TestSide {
	for _, v := range slices.Concat(results...) {
		for _, name := range slices.Concat(v.Ran, Names(v.Failing), v.Known) {
			file := fileOfTest(name)
			if file == "" || TestFile(file) {
				continue
			}
			if !slices.Contains(s, file) && len(s) < 2*maxTestSide {
				s = append(s, file)
			}
		}
	}
	return s
}

// fileOfTest returns the file in a pytest or Jest test name; empty for none.
func fileOfTest(name string) string {
	file, test, _ := strings.Cut(name, "::")
	if strings.HasPrefix(strings.ToLower(test), "test") {
		return file
	}
	if file, _, ok := strings.Cut(name, " › "); ok { // Jest
		return file
	}
	return ""
}

// maxTestSide limits the listed files.
const maxTestSide = 100

var (
	commandEnd = regexp.MustCompile("[;&|()\n`]+")
	assignment = regexp.MustCompile(`^\w+=|^\d[\d.]*[smh]?$`) // or a number, as after timeout
	// starters run the next program or are shell keywords.
	starters = strings.Fields(`sh bash dash zsh ksh python python3 node deno ruby perl php pwsh env exec time timeout nice command run
		uv poetry pipenv bundle sudo ! { if then else do while until`)
)

// executed returns the words of a shell text that name programs.
func executed(text string) (all []string) {
	for _, command := range commandEnd.Split(text, -1) {
		for _, word := range strings.Fields(command) {
			word = strings.Trim(word, `"'@+`)
			if passedOver(word) {
				continue
			}
			all = append(all, strings.TrimPrefix(word, "$PWD/"))
			break
		}
	}
	return all
}

func passedOver(word string) bool {
	if strings.HasPrefix(word, "-") || assignment.MatchString(word) {
		return true
	}
	return slices.Contains(starters, path.Base(word))
}

// scripts returns the commands in a tool's file.
func scripts(file, content string) string {
	if file != manifest {
		return content
	}
	var p struct{ Scripts map[string]string }
	_ = json.Unmarshal([]byte(content), &p) // other text runs nothing
	return strings.Join(slices.Sorted(maps.Values(p.Scripts)), "\n")
}

func manifests(file string) bool {
	return path.Base(file) == manifest || slices.Contains(pythonManifests, path.Base(file))
}

// Has reports whether a whole file belongs to the tests. Manifest finds files that belong in part.
func (s TestSide) Has(file string) bool {
	if TestFile(file) {
		return true
	}
	if manifests(file) {
		return false
	}
	return slices.ContainsFunc(s, func(p string) bool {
		return strings.HasSuffix("/"+file, "/"+p) || named(path.Base(file), []string{p})
	})
}

// Manifest reports whether part of a file may belong to the tests.
func (s TestSide) Manifest(file string) bool {
	if path.Base(file) == manifest {
		return slices.Contains(s, manifest)
	}
	return manifests(file)
}

// WithScripts replaces a manifest's scripts and test settings with another manifest's; a missing one is empty. It
// returns nil if both are equal or one cannot be parsed.
func WithScripts(name string, file, other []byte) []byte {
	if path.Base(name) != manifest {
		rest, ours := sections(file)
		_, theirs := sections(other)
		if strings.TrimSpace(ours) == strings.TrimSpace(theirs) {
			return nil
		}
		return []byte(rest + "\n" + theirs)
	}
	into, from := map[string]any{}, map[string]any{}
	for to, text := range map[*map[string]any][]byte{&into: file, &from: other} {
		if len(text) > 0 && json.Unmarshal(text, to) != nil {
			return nil
		}
	}
	mixed := maps.Clone(into)
	for _, key := range []string{"scripts", "jest", "mocha", "ava", "vitest"} {
		if delete(mixed, key); from[key] != nil {
			mixed[key] = from[key]
		}
	}
	if reflect.DeepEqual(mixed, into) {
		return nil
	}
	text, _ := json.MarshalIndent(mixed, "", "  ") // always valid JSON
	return append(text, '\n')
}

// sections separates a text's sections about running tests from the others.
func sections(text []byte) (rest, runner string) {
	to := &rest
	for line := range strings.Lines(string(text)) {
		head := strings.TrimSpace(line)
		switch {
		case runnerSection.MatchString(head):
			to = &runner
		case anySection.MatchString(head):
			to = &rest
		}
		*to += line
	}
	return rest, runner
}
