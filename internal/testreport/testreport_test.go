package testreport

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/internal/goldentest"
	"github.com/pawlbot/pawl/policy"
)

// recordings returns outputs of real test runners. If a runner could not run here, the output follows its
// documentation; see testdata/README.md.
func recordings(t testing.TB) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range paths {
		if ext := filepath.Ext(p); ext != ".txt" && ext != ".xml" {
			continue
		}
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[p] = string(b)
	}
	if len(all) < 30 {
		t.Fatalf("only %d recordings", len(all))
	}
	return all
}

func golden(r Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "runner: %s\npassed %d, failed %d, skipped %d\n", r.Runner, r.Passed, r.Failed, r.Skipped)
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\n* %s\n", f.Name)
		if f.Text != "" {
			b.WriteString("    | " + strings.ReplaceAll(f.Text, "\n", "\n    | ") + "\n")
		}
	}
	return b.String()
}

func TestRecordedRunsMatchTheirGoldens(t *testing.T) {
	for path, output := range recordings(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			goldentest.Compare(t, path+".golden", golden(Read(output)))
		})
	}
}

func TestFailingTestsAreRead(t *testing.T) {
	for _, tc := range []struct {
		name, output string
		want         []string
	}{
		{"go test", "=== RUN   TestSum\n    sum_test.go:9: got 3\n--- FAIL: TestSum (0.00s)\n    --- FAIL: TestSum/zero (0.00s)\nFAIL\nFAIL\texample.com/sum\t0.002s\n", []string{"example.com/sum TestSum", "example.com/sum TestSum/zero"}},
		{"go test, cut off", "--- FAIL: TestSum (0.00s)\n    --- FAIL: TestSum/zero (0.00s)\n", []string{"TestSum", "TestSum/zero"}},
		{"go test -json", `{"Action":"run","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0.1}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n", []string{"p TestA"}},
		{"pytest", "E   assert 3 == 4\nFAILED tests/test_sum.py::test_add - assert 3 == 4\nERROR tests/test_io.py::test_read - OSError\n", []string{"tests/test_io.py::test_read", "tests/test_sum.py::test_add"}},
		{"Jest", "  ✕ adds (5 ms)\n  ✓ subtracts\n  ● sum › adds\n", []string{"sum › adds"}},
		{"Jest, cut off", "  ✕ adds (5 ms)\n  ✓ subtracts\n", []string{"adds"}},
		{"Vitest", " × src/sum.test.ts > adds 12ms\n", []string{"src/sum.test.ts > adds"}},
		{"cargo test", "test sum::adds ... FAILED\ntest sum::subtracts ... ok\n", []string{"sum::adds"}},
		{"TAP", "ok 1 - subtracts\nnot ok 2 - adds\nnot ok 3 - later # TODO\n", []string{"adds"}},
		{"each once, in order", "--- FAIL: TestB (0s)\n--- FAIL: TestA (0s)\n--- FAIL: TestB (0s)\n", []string{"TestA", "TestB"}},
		{"another program", "make: *** [test] Error 1\nERROR in the build\n", nil},
		{"prose", "ok 1 thing to do\nFAILED to find a name\n# heading\ntest it ... now\n", nil},
	} {
		var got []string
		for _, f := range Read(tc.output).Failures {
			got = append(got, f.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestLookalikesAreNotFailures(t *testing.T) {
	for _, tc := range []struct {
		name, output string
		want         []string
	}{
		{"a numbered line in a message of Mocha", "  1 passing (3ms)\n  1 failing\n\n  1) sum\n       fails:\n     Error: see\n  2) other\n       test:\n     x\n", []string{"sum › fails"}},
		{"a numbered list in prose", "To do:\n  1) write it\n  2) test it\nFailures:\n1) none\n", nil},
		{"control characters in a name", "  ● A › b\x1b[31m\x07\u202ec\u0000\n\n    see\n\nTests:       1 failed, 1 total\n", []string{"A › bc"}},
		{"an unknown runner", "Executed 3 tests, with 1 failure (0 unexpected) in 0.1 (0.1) seconds\n3 examples, 1 failure\nTests run: 3, Failures: 1\n", nil},
		{"unittest's words without its separator", "FAIL: test_a (tests.T.test_a)\n----\nOK\nRan 3 tests in a row\n", nil},
	} {
		var got []string
		for _, f := range Read(tc.output).Failures {
			got = append(got, f.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestOnlyOneReaderTakesEachRecording(t *testing.T) {
	also := map[string]string{"django.txt": "unittest"}
	for path, output := range recordings(t) {
		name := strings.TrimPrefix(filepath.Base(path), "written-")
		want, _, _ := strings.Cut(strings.TrimSuffix(name, filepath.Ext(name)), "-")
		if also[name] != "" {
			want = also[name]
		}
		if got := Read(output).Runner; got != want {
			t.Errorf("%s is read as %q, want %q", name, got, want)
		}
	}
}

func TestSeveralRunnersAddUp(t *testing.T) {
	all := recordings(t)
	r := Read("make: go test\n" + all["testdata/go-test-v.txt"] + "\nnpm test\n" + all["testdata/jest.txt"] +
		all["testdata/pytest.txt"] + "make: *** [test] Error 1\n")
	g, j, p := Read(all["testdata/go-test-v.txt"]), Read(all["testdata/jest.txt"]), Read(all["testdata/pytest.txt"])
	if r.Runner != "go, jest, pytest" || r.Failed != g.Failed+j.Failed+p.Failed || r.Passed != g.Passed+j.Passed+p.Passed {
		t.Errorf("%s: %d failed, %d passed", r.Runner, r.Failed, r.Passed)
	}
	if diff := cmp.Diff(append(append(append([]policy.Failing(nil), g.Failures...), p.Failures...), j.Failures...), r.Failures); diff != "" {
		t.Error(diff)
	}
}

func TestXMLReportIsNotCountedTwice(t *testing.T) {
	all := recordings(t)
	own := Read(all["testdata/pytest.txt"])
	both := Read(all["testdata/pytest.txt"] + all["testdata/junit-pytest.xml"])
	if diff := cmp.Diff(own, both); diff != "" {
		t.Error(diff)
	}
}

func TestColoursAndLineEndsAreIgnored(t *testing.T) {
	for path, output := range recordings(t) {
		if strings.Contains(output, "\r") || filepath.Ext(path) == ".xml" {
			continue
		}
		coloured := "\x1b[1m" + strings.ReplaceAll(output, "\n", "\x1b[0m\r\n\x1b[31m")
		if diff := cmp.Diff(golden(Read(output)), golden(Read(coloured))); diff != "" {
			t.Errorf("%s (-plain +coloured)\n%s", path, diff)
		}
	}
}

func TestTailOfOutputInventsNoFailure(t *testing.T) {
	for path, output := range recordings(t) {
		if filepath.Ext(path) == ".xml" {
			continue // XML needs its first line
		}
		known := map[string]bool{}
		for _, f := range Read(output).Failures {
			known[f.Name] = true
		}
		for cut := 0; cut < len(output); cut += 97 {
			for _, f := range Read(output[cut:]).Failures {
				if !known[f.Name] && !related(f.Name, known) {
					t.Errorf("%s from byte %d: %q", path, cut, f.Name)
				}
			}
		}
	}
}

// related reports whether a name is a known name without its parents or file, or names a whole package, file or suite.
func related(name string, known map[string]bool) bool {
	last := name[strings.LastIndex(name, " > ")+1:]
	for k := range known {
		if strings.Contains(k, name) || strings.HasSuffix(k, last) || strings.HasPrefix(k, strings.TrimSuffix(name, "[failed]")) {
			return true
		}
	}
	return strings.HasSuffix(name, " failed to run]") || strings.HasSuffix(name, "build failed]") || strings.HasSuffix(name, ".t")
}

func TestChunkSizeDoesNotMatter(t *testing.T) {
	for path, output := range recordings(t) {
		r := NewReader()
		for piece := range slices.Chunk([]byte(output), 7) {
			if n, err := r.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("%d of %d bytes, %v", n, len(piece), err)
			}
		}
		if diff := cmp.Diff(Read(output), r.Report()); diff != "" {
			t.Errorf("%s (-whole +pieces)\n%s", path, diff)
		}
	}
}

func TestFailureBeforeNineMegabytesIsNamed(t *testing.T) {
	all := recordings(t)
	output := all["testdata/go-test-v.txt"] + all["testdata/jest.txt"] + all["testdata/junit-pytest.xml"] + "\n"
	for _, name := range []string{"unittest", "mocha", "vitest", "cargo-test", "tap-node"} {
		output += all["testdata/"+name+".txt"]
	}
	noise := strings.Repeat("a line of a log that goes on and on\n", 9<<20/36)
	want := Read(output).Failures
	if diff := cmp.Diff(want, Read(output+noise).Failures); diff != "" || len(want) == 0 {
		t.Errorf("(-alone +before 9 MB)\n%s", diff)
	}
}

func TestNamesAreStable(t *testing.T) {
	for _, pair := range [][2]string{
		{"adds (5 ms)", "adds (1.2 s)"},
		{"a > b 12ms", "a > b 7ms"},
		{"reads /tmp/x123/a.txt", "reads /tmp/y4/b.txt"},
		{"shows <object at 0x7fcadd74b190>", "shows <object at 0x7f4077aafd50>"},
		{"adds # time=1.20ms {", "adds # time=0.31ms {"},
	} {
		if a, b := stableName(pair[0]), stableName(pair[1]); a != b {
			t.Errorf("%q and %q", a, b)
		}
	}
	if stableName("1 + 1 = 2") == stableName("2 + 2 = 4") {
		t.Error("two tests that differ in a number have the same name")
	}
}

func TestHostileXMLIsHarmless(t *testing.T) {
	for name, s := range map[string]string{
		"entities":     `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><testsuite><testcase name="x"><failure>&b;&b;</failure></testcase></testsuite>`,
		"outside":      `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite><testcase name="x"><failure>&a;</failure></testcase></testsuite>`,
		"depth":        "<testsuite>" + strings.Repeat("<a>", 200_000) + `<testcase name="x">`,
		"deep":         "<testsuite>" + strings.Repeat("<a>", 5_000) + strings.Repeat("x", 500_000) + strings.Repeat("</a>", 5_000) + "</testsuite>",
		"broken":       strings.Repeat("<testcase <", 50_000),
		"long":         `<testsuite><testcase name="` + strings.Repeat("x", 500_000) + `"><failure message="` + strings.Repeat("y", 500_000) + `"/></testcase>`,
		"many suites":  strings.Repeat(`<testsuite name="a">`, 40_000) + `<testcase name="x"><failure/></testcase>`,
		"never closed": strings.Repeat(`<testcase name="x"><failure>`, 30_000),
	} {
		t.Run(name, func(t *testing.T) { checkBounds(t, Read("\n"+s)) })
	}
}

func TestOtherCharacterSetsAndBareAmpersandsAreRead(t *testing.T) {
	for _, s := range []string{
		`<?xml version="1.0" encoding="ISO-8859-1"?><testsuite><testcase classname="a" name="x"><failure/></testcase></testsuite>`,
		`<testsuite><testcase classname="a" name="x"><failure message="a & b"/></testcase></testsuite>`,
	} {
		if r := Read(s); r.Failed != 1 || len(r.Failures) != 1 || r.Failures[0].Name != "a.x" {
			t.Errorf("%s: %+v", s, r)
		}
	}
}

func TestAbsurdNumbersAreIgnored(t *testing.T) {
	huge := "test result: ok. 99999999999999999999 passed; 0 failed; 0 ignored;\n"
	if r := Read(huge + huge); r.Passed != 0 || r.Failed != 0 {
		t.Errorf("%d passed, %d failed", r.Passed, r.Failed)
	}
}

func checkBounds(t interface{ Errorf(string, ...any) }, r Report) {
	if len(r.Failures) > maxFailing {
		t.Errorf("%d failures", len(r.Failures))
	}
	if r.Failed != NotCounted && r.Failed < len(r.Failures) && len(r.Failures) < maxFailing {
		t.Errorf("%d failed, %d listed", r.Failed, len(r.Failures))
	}
	seen := map[string]bool{}
	for _, f := range r.Failures {
		if f.Name == "" || len(f.Name) > maxFailureName || len(f.Text) > maxFailureText || !utf8.ValidString(f.Name+f.Text) || seen[f.Name] || strings.ContainsAny(f.Name, "\n\r\x1b") {
			t.Errorf("failure %q with %d bytes", f.Name, len(f.Text))
		}
		seen[f.Name] = true
	}
}

func TestRandomLinesAreBoundedAndDeterministic(t *testing.T) {
	var lines []string
	for _, output := range recordings(t) {
		lines = append(lines, strings.SplitAfter(output, "\n")...)
	}
	rapid.Check(t, func(t *rapid.T) {
		output := strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 300).Draw(t, "lines"), rapid.SampledFrom([]string{"", "\n", "\r", "\xff"}).Draw(t, "between"))
		a, b := Read(output), Read(output)
		checkBounds(t, a)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("read twice:\n%s", diff)
		}
	})
}

func FuzzReadTests(f *testing.F) {
	f.Add("--- FAIL: TestSum (0.00s)\nnot ok 2 - adds\n✕ adds (5 ms)\n")
	for _, output := range recordings(f) {
		f.Add(output)
	}
	f.Fuzz(func(t *testing.T, output string) { checkBounds(t, Read(output)) })
}

func BenchmarkReadTests(b *testing.B) {
	all := recordings(b)
	for _, name := range []string{"go-test-json.txt", "pytest.txt", "jest.txt", "junit-pytest.xml"} {
		output := all["testdata/"+name]
		output = strings.Repeat(output, 64<<10/len(output)+1)[:64<<10]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(output)))
			for b.Loop() {
				Read(output)
			}
		})
	}
}
