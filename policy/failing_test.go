package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFailingTestsAreReadFromTheOutputOfRunners(t *testing.T) {
	for _, tc := range []struct {
		name, output string
		want         []string
	}{
		{"go test", "=== RUN   TestSum\n    sum_test.go:9: got 3\n--- FAIL: TestSum (0.00s)\n    --- FAIL: TestSum/zero (0.00s)\nFAIL\nFAIL\texample.com/sum\t0.002s\n", []string{"TestSum", "TestSum/zero"}},
		{"go test -json", `{"Action":"run","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0.1}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n", []string{"p TestA"}},
		{"pytest", "E   assert 3 == 4\nFAILED tests/test_sum.py::test_add - assert 3 == 4\nERROR tests/test_io.py::test_read - OSError\n", []string{"tests/test_io.py::test_read", "tests/test_sum.py::test_add"}},
		{"Jest", "  ✕ adds (5 ms)\n  ✓ subtracts\n  ● sum › adds\n", []string{"adds", "sum › adds"}},
		{"Vitest", " × src/sum.test.ts > adds 12ms\n", []string{"src/sum.test.ts > adds"}},
		{"cargo test", "test sum::adds ... FAILED\ntest sum::subtracts ... ok\n", []string{"sum::adds"}},
		{"TAP", "ok 1 - subtracts\nnot ok 2 - adds\nnot ok 3 - later # TODO\n", []string{"adds"}},
		{"each once, in order", "--- FAIL: TestB (0s)\n--- FAIL: TestA (0s)\n--- FAIL: TestB (0s)\n", []string{"TestA", "TestB"}},
		{"another program", "make: *** [test] Error 1\nERROR in the build\n", nil},
	} {
		if diff := cmp.Diff(tc.want, FailingTests(tc.output)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
	}
}

func FuzzFailingTests(f *testing.F) {
	f.Add("--- FAIL: TestSum (0.00s)\nnot ok 2 - adds\n✕ adds (5 ms)\n")
	f.Fuzz(func(t *testing.T, output string) {
		if names := FailingTests(output); len(names) > maxFailing {
			t.Errorf("%d names", len(names))
		}
	})
}
