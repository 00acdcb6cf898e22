package policy

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTestFilesAreRecognisedByNameAndFolder(t *testing.T) {
	for _, p := range slices.Concat(testNames, runnerFiles, testFolders) {
		if _, err := path.Match(p, "x"); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, c := range []struct {
		runner, tests, others string
	}{
		{"go test", "sum_test.go a/b/x_test.go a/testdata/in.txt", "test_sum.go testing.go cmd/test.go.tmpl latest.go a/tester/x.go"},
		{"pytest, unittest, Django", "test_sum.py pkg/sum_test.py conftest.py a/conftest.py app/tests.py tests/helpers.py pytest.ini tox.ini noxfile.py", "contest.py attest.py src/testing.py latest_news.py pyproject.toml setup.cfg"},
		{"Jest, Vitest, Mocha, node, Playwright, Cypress, Karma", "src/sum.test.js a.test.tsx a.spec.ts b.test.mjs c.spec.cts test.js test-sum.js sum-test.js x_test.ts app.e2e-spec.ts login.cy.ts a/__tests__/x.js __snapshots__/x.snap __mocks__/fs.js jest.config.ts vitest.config.mts .mocharc.json",
			"src/latest.js src/contest.ts specification.ts openapi.spec.yaml abtest.js package.json vite.config.ts"},
		{"RSpec, Minitest, Cucumber", "sum_spec.rb test_sum.rb sum_test.rb spec/spec_helper.rb features/x.feature .rspec", "spectrum.rb attestation.rb Gemfile"},
		{"JUnit, Kotest, Spock, ScalaTest", "src/test/java/com/x/Helper.java SumTest.java TestSum.java SumTests.java SumIT.java SumTestCase.java SumSpec.groovy SumTest.kt app/src/androidTest/A.kt", "Contest.java Testament.kt2 Attestation.java src/main/java/Unit.java AUDIT.java pom.xml"},
		{"dotnet, PHPUnit, XCTest", "Sum.Tests/Program.cs Acme.UnitTests/A.fs SumTests.cs SumTest.php phpunit.xml.dist SumUITests/A.swift SumTests.swift", "Latest.cs Contest.php Sum.csproj"},
		{"cargo, ctest, gtest", "tests/it.rs src/tests.rs sum_test.rs sum_test.cc sum_unittest.cpp test_sum.c SumTest.cpp", "src/lib.rs Cargo.toml attest.c CMakeLists.txt latest.cpp"},
		{"prove, bats, shell, others", "t/sum.t sum.bats test.sh run-tests.sh tests/run.sh test_helper.exs sum_test.exs sum_test.dart runtests.jl", "install.sh latest.sh contest.exs"},
		{"CI", ".gitlab-ci.yml .travis.yml Jenkinsfile ci/build.sh .circleci/config.yml", "cicd.go circus/x.go .github/dependabot.yml"},
		{"documents", "tests/golden/out.md", "README.md tests/README.md tests/CHANGELOG docs/testing.md TESTING.md"},
	} {
		for _, file := range strings.Fields(c.tests) {
			if !TestFile(file) {
				t.Errorf("%s: %s is not a test file", c.runner, file)
			}
		}
		for _, file := range strings.Fields(c.others) {
			if TestFile(file) {
				t.Errorf("%s: %s is a test file", c.runner, file)
			}
		}
	}
}

func TestVerifyCommandsFilesBelongToTheTests(t *testing.T) {
	repository := map[string]string{
		"Makefile":     "GO = go\ncheck: lint\n\t@./scripts/check\n\tsh hack/all.sh\n\tpython server.py\n",
		"hack/all.sh":  "#!/bin/sh\nset -e\ncd sub && bash ./deep.sh\n",
		"deep.sh":      "exec make -f other.mk\n",
		"package.json": `{"scripts": {"test": "CI=1 bash scripts/ui.sh", "start": "node server.js"}}`,
		"loop.sh":      "sh loop.sh",
	}
	for command, want := range map[string]string{
		"go test ./...":                         "",
		"grep -q two a.txt && test -s b.txt":    "",
		"make check":                            "Makefile sub/Makefile GNUmakefile build/x.mk scripts/check hack/all.sh sub/deep.sh",
		"gmake":                                 "Makefile sub/Makefile GNUmakefile build/x.mk scripts/check hack/all.sh sub/deep.sh",
		"cd web && npm test":                    "scripts/ui.sh",
		"FOO=1 timeout 60 ./gradlew check":      "gradlew",
		"python3 -B tools/verify.py --all":      "tools/verify.py",
		`bash -c "sh 'x.sh'; ./y.sh"`:           "x.sh y.sh",
		"uv run python check.py | tee a.log":    "check.py",
		"if true; then { ! ruby ci.rb; }; fi":   "ci.rb",
		"sh loop.sh":                            "loop.sh",
		"just verify || task verify":            "justfile Taskfile.yml",
		"cat src/main.go; . ./lib.sh; echo a.b": "",
	} {
		side := NewTestSide([]string{command}, func(file string) string { return repository[file] })
		var got []string
		for _, file := range strings.Fields("a.txt b.txt src/main.go a.b a.log lib.sh server.py server.js Makefile sub/Makefile GNUmakefile build/x.mk scripts/check hack/all.sh " +
			"sub/deep.sh scripts/ui.sh package.json gradlew tools/verify.py x.sh y.sh check.py ci.rb loop.sh justfile Taskfile.yml go npm") {
			if side.Has(file) {
				got = append(got, file)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", command, diff)
		}
		if want := strings.Contains(command, "npm"); side.Manifest("web/package.json") != want {
			t.Errorf("%s: runs scripts of package.json %v, want %v", command, !want, want)
		}
	}
}

func TestReportsNameTestFiles(t *testing.T) {
	side := TestSide(nil).Reported([]Verified{{
		Ran: []string{"checks/check_sum.py::TestSum::test_adds", "sum.py::sum.add", "pkg TestSum"}, Failing: []Failing{{Name: "src/sum.check.js › sum › adds"}}, Known: []string{"lib/sum.js > adds"},
	}})
	if diff := cmp.Diff(TestSide{"checks/check_sum.py", "src/sum.check.js"}, side); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyPackageJSONScriptsAreReplaced(t *testing.T) {
	const base = `{"name":"a","scripts":{"test":"jest"},"dependencies":{"x":"1"}}`
	for change, want := range map[string]string{
		`{"name":"a","scripts":{"test":"true"},"dependencies":{"x":"2"}}`:       "{\n  \"dependencies\": {\n    \"x\": \"2\"\n  },\n  \"name\": \"a\",\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n",
		`{"jest":{"bail":1},"scripts":{"test": "jest"}}`:                        "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n",
		`{"name":"b", "scripts": {"test": "jest"}, "dependencies": {"y": "1"}}`: "",
		`not JSON`: "",
		`[]`:       "",
	} {
		if diff := cmp.Diff(want, string(WithScripts("web/package.json", []byte(change), []byte(base)))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", change, diff)
		}
	}
}

func TestOnlyPythonTestSettingsAreReplaced(t *testing.T) {
	const base = "[project]\nname = \"a\"\n\n[tool.pytest.ini_options]\naddopts = [\n  \"-q\",\n]\n\n[tool.black]\nline-length = 99\n"
	const change = "[project]\nname = \"a\"\ndependencies = [\n  \"b\",\n]\n\n[tool.pytest.ini_options]\naddopts = \"-p cheat\"\n"
	want := "[project]\nname = \"a\"\ndependencies = [\n  \"b\",\n]\n\n\n[tool.pytest.ini_options]\naddopts = [\n  \"-q\",\n]\n\n"
	if diff := cmp.Diff(want, string(WithScripts("pyproject.toml", []byte(change), []byte(base)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := WithScripts("setup.cfg", []byte("[metadata]\nname = b\n[tool:pytest]\naddopts = -q\n"), []byte("[tool:pytest]\naddopts = -q\n\n[metadata]\nname = a\n")); got != nil {
		t.Errorf("%s, want nothing, as both have the same test settings", got)
	}
	e := NewTestEvidence(nil, TestChange{Edited: []string{"a.py", "pyproject.toml"}, Manifests: []string{"pyproject.toml"}}, nil, nil)
	if got := strings.Join(e.Edits, "; "); got != "edits the settings of tests in pyproject.toml" {
		t.Error(got)
	}
}

// Work counts as less verified if fewer tests run, even if no test file changed. The same holds if the change cuts the
// base's tests short.
func TestFewerTestsVerifyLess(t *testing.T) {
	counted := func(n, skipped int) []Verified {
		v := Verified{Command: "make", Passed: true, PassedTests: n, SkippedTests: skipped}
		if n > 0 {
			v.Runner = "pytest"
		}
		return []Verified{v}
	}
	for name, c := range map[string]struct {
		change    TestChange
		now, were []Verified
		want      string
	}{
		"as many tests":               {TestChange{Edited: []string{"a.py"}}, counted(8, 0), nil, "verified"},
		"more":                        {TestChange{Edited: []string{"a.py"}}, counted(9, 0), nil, "verified"},
		"fewer":                       {TestChange{Edited: []string{"a.py"}}, counted(6, 0), nil, "2 fewer tests ran than before"},
		"skipped":                     {TestChange{Edited: []string{"a.py"}}, counted(7, 1), nil, "1 fewer test ran than before"},
		"no runner left":              {TestChange{Edited: []string{"a.py"}}, counted(0, 0), nil, "8 fewer tests ran than before"},
		"tests deleted with code":     {TestChange{Edited: []string{"a.py"}, Deleted: []string{"b_test.py"}}, counted(6, 0), counted(8, 0), "verified"},
		"tests that end their runner": {TestChange{Edited: []string{"a.py", "b_test.py"}}, counted(8, 0), counted(3, 0), "5 fewer tests ran than before"},
	} {
		e := NewTestEvidence(nil, c.change, counted(8, 0), c.now)
		if c.were != nil {
			e.AsTheyWere = c.were
			e.Count(counted(8, 0), c.were)
		}
		r := Receipt{Verify: c.now, TestEvidence: e}
		if got := r.VerifiedWords(""); got != c.want || r.Verification().Verifies() != (c.want == "verified") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestEvidenceIsDescribed(t *testing.T) {
	passed := []Verified{{Passed: true, PassedTests: 14, Command: "go test", Runner: "go"}}
	failed := []Verified{{Exit: 1, PassedTests: 13, FailedTests: 1, Failing: []Failing{{Name: "pkg TestX"}}}}
	green := []Verified{{Passed: true, Command: "make"}}
	slow := []Verified{{Passed: true, MS: 400_000}, {Passed: true, MS: 400_000}}
	counted := func(n int) []Verified { return []Verified{{Passed: true, PassedTests: n}} }
	of := func(c TestChange, base, now []Verified, more ...[]Verified) *TestEvidence {
		e := NewTestEvidence(TestSide{"Makefile"}, c, base, now)
		if len(more) > 0 {
			e.AsTheyWere = more[0]
		}
		if len(more) > 1 {
			e.Without = more[1]
		}
		return e
	}
	without := func(now Verified, all ...Verified) *TestEvidence {
		e := of(TestChange{Edited: []string{"a.go", "a_test.go"}}, passed, []Verified{now}, passed)
		e.WithoutChange(all, []Verified{now})
		return e
	}
	asBefore := Verified{Exit: 1, Passed: true, PassedTests: 13, Known: []string{"TestX"}}
	for name, c := range map[string]struct {
		e    *TestEvidence
		want []string
		only bool
	}{
		"none":                           {nil, nil, false},
		"only code":                      {of(TestChange{Edited: []string{"a.go"}}, passed, passed), nil, false},
		"a good test":                    {of(TestChange{Edited: []string{"a.go"}, Added: []string{"a_test.go"}}, passed, passed, passed, failed), []string{"it adds a_test.go", "with the tests as they were: 14 pass", "its new tests without the change: 13 pass, pkg TestX fails"}, false},
		"an idle test":                   {of(TestChange{Edited: []string{"a.go"}, Added: []string{"a_test.go"}}, passed, passed, green, green), []string{"it adds a_test.go", "with the tests as they were: make passed", "its new tests pass without the change, so they show nothing of it"}, false},
		"a weakened test":                {of(TestChange{Edited: []string{"a.go", "a_test.go", "Makefile"}}, passed, passed, failed), []string{"it edits a_test.go; edits Makefile, which verification runs", "with the tests as they were: 13 pass, pkg TestX fails"}, true},
		"no named test":                  {of(TestChange{Edited: []string{"a_test.go"}}, passed, passed, []Verified{{Command: "make", Exit: 2}}), []string{"it edits a_test.go", "with the tests as they were: make failed with exit code 2"}, true},
		"fails as on the base":           {of(TestChange{Edited: []string{"a_test.go"}}, passed, passed, []Verified{{Exit: 1, Passed: true, Known: []string{"TestX"}}}), []string{"it edits a_test.go", "with the tests as they were: TestX fails"}, true},
		"could not run on the base":      {of(TestChange{Added: []string{"a_test.go"}}, nil, passed, []Verified{{Command: "pytest", Exit: 5, Broken: "no test runs"}}), []string{"it adds a_test.go", "with the tests as they were: pytest cannot work here: no test runs"}, false},
		"fewer":                          {of(TestChange{Edited: []string{"a_test.go"}}, counted(8), counted(5)), []string{"it runs 3 tests fewer than before; edits a_test.go"}, false},
		"more":                           {of(TestChange{Edited: []string{"a_test.go"}}, counted(5), counted(8)), []string{"it edits a_test.go"}, false},
		"too long":                       {of(TestChange{Edited: []string{"a_test.go"}}, slow, slow), []string{"it edits a_test.go", "the tests were not also run without those edits, since verification takes longer than 10 minutes"}, false},
		"too long, without test changes": {of(TestChange{Edited: []string{"a.go"}}, slow, slow), nil, false},
		"a fix of a failing test":        {without(passed[0], asBefore), []string{"it edits a_test.go", "with the tests as they were: 14 pass", "its new tests without the change: 13 pass, TestX fails"}, false},
		"a failing test still fails":     {without(asBefore, asBefore), []string{"it edits a_test.go", "with the tests as they were: 14 pass", "its new tests pass without the change, so they show nothing of it"}, false},
		"many files":                     {of(TestChange{Deleted: strings.Fields("a_test.go b_test.go c_test.go d_test.go e_test.go f_test.go g_test.go")}, passed, passed), []string{"it deletes a_test.go, b_test.go, c_test.go, d_test.go, e_test.go and 2 more"}, false},
	} {
		if diff := cmp.Diff(c.want, c.e.Sentences()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		doubt := (Receipt{TestEvidence: c.e, Verify: passed}).doubt()
		if only := doubt == "passes only with changed tests"; only != c.only {
			t.Errorf("%s: %q; verified only with its tests: want %v", name, doubt, c.only)
		}
	}
}

func TestMissingTestsAreNamed(t *testing.T) {
	base := []Verified{{Ran: []string{"a", "b", "c"}, Failing: []Failing{{Name: "red"}}, PassedTests: 3, FailedTests: 1}}
	for name, c := range map[string]struct {
		now           []Verified
		removed, edit string
	}{
		"all run":        {[]Verified{{Ran: []string{"c", "b", "a", "red", "new"}}}, "", ""},
		"some fail":      {[]Verified{{Ran: []string{"a"}, Known: []string{"red"}, Flaky: []string{"b"}, Failing: []Failing{{Name: "c"}}}}, "", ""},
		"some are gone":  {[]Verified{{Ran: []string{"b"}}}, "a c red", "removes 3 tests (a, c, red)"},
		"one is skipped": {[]Verified{{Ran: []string{"b", "c", "red"}, SkippedTests: 1}}, "a", "removes or skips 1 test (a)"},
		"none are named": {[]Verified{{PassedTests: 1}}, "", "runs 3 tests fewer than before"},
	} {
		e := NewTestEvidence(nil, TestChange{}, base, c.now)
		if got := strings.Join(e.Removed, " ") + ": " + strings.Join(e.Edits, " "); got != c.removed+": "+c.edit {
			t.Errorf("%s: %q, want %q", name, got, c.removed+": "+c.edit)
		}
	}
}

func TestReportedFailureOverridesExitCodeZero(t *testing.T) {
	v := Verified{Command: "make", FailedTests: 1, PassedTests: 2, Failing: []Failing{{Name: "TestX"}}}.Compare(&Verified{Command: "make", Passed: true, PassedTests: 3}, nil)
	r := Receipt{Verify: []Verified{v}}
	if what := r.VerifiedWords(""); r.Verification() != Failed || what != "1 test fails" {
		t.Errorf("%q, verification %s", what, r.Verification())
	}
	if got := v.Result(); got != "exit code 0, and yet 1 failure reported: TestX" {
		t.Errorf("%q", got)
	}
}

// Pawl reports fewer tests only for runners that count passed tests. go test without -v counts only failures.
func TestFewerTestsAreReportedOnlyIfCounted(t *testing.T) {
	ran := func(v Verified) []Verified { v.Command = "go test ./..."; return []Verified{v} }
	failed := Verified{Runner: "go", Exit: 1, FailedTests: 3}
	for name, c := range map[string]struct {
		base Verified
		now  []Verified
		want int
	}{
		"nothing fails now":              {failed, ran(Verified{Runner: "go", Passed: true}), 0},
		"fewer tests fail":               {failed, ran(Verified{Runner: "go", Passed: true, FailedTests: 1}), 0},
		"a broken build is fixed":        {Verified{Runner: "go", Exit: 1, FailedTests: 1, NoTests: true}, ran(Verified{Runner: "go", Passed: true}), 0},
		"the runner prints nothing":      {failed, ran(Verified{Passed: true}), 3},
		"no test is left":                {failed, ran(Verified{Runner: "go", Passed: true, NoTests: true}), 3},
		"the runner counts passed tests": {Verified{Runner: "go", Exit: 1, PassedTests: 1, FailedTests: 1}, ran(Verified{Runner: "go", Passed: true}), 2},
		"a command before failed":        {Verified{Runner: "go", Passed: true, PassedTests: 9}, []Verified{{Command: "go vet ./...", Exit: 1}}, 0},
	} {
		e := NewTestEvidence(nil, TestChange{Edited: []string{"a.go"}}, ran(c.base), c.now)
		want := ""
		if c.want > 0 {
			want = "it runs " + Plural(c.want, "test") + " fewer than before"
		}
		if got := strings.Join(e.Sentences(), "; "); e.Fewer != c.want || got != want {
			t.Errorf("%s: %d fewer and %q, want %d", name, e.Fewer, got, c.want)
		}
	}
}
