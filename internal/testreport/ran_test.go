package testreport

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Pawl can report a removed test only if the runner names passed tests.
func TestPassedTestsAreNamed(t *testing.T) {
	var naming []string
	for path, output := range recordings(t) {
		r := Read(output)
		if len(r.Ran) == 0 {
			continue
		}
		naming = append(naming, filepath.Base(path))
		if len(r.Ran) != r.Passed {
			t.Errorf("%s: names %q of %d that passed", path, r.Ran, r.Passed)
		}
		for _, f := range r.Failures {
			if slices.Contains(r.Ran, f.Name) {
				t.Errorf("%s: %q passed and failed", path, f.Name)
			}
		}
	}
	slices.Sort(naming)
	want := strings.Fields("cargo-test.txt go-test-json.txt go-test-v.txt junit-bun.xml junit-ctest.xml junit-gtest.xml junit-jest.xml junit-node.xml junit-phpunit.xml junit-playwright.xml junit-pytest.xml junit-surefire.xml junit-vitest.xml " +
		"pytest-v-colour.txt pytest-xdist.txt tap-14.txt tap-node.txt tap-perl.txt tap-prove-v.txt tap-vitest.txt written-junit-gradle.xml")
	if diff := cmp.Diff(want, naming); diff != "" {
		t.Errorf("recordings with names (-want +got)\n%s", diff)
	}
}

func TestTooManyPassedTestsAreNotNamed(t *testing.T) {
	var out strings.Builder
	out.WriteString("TAP version 14\n")
	for range maxRan + 1 {
		out.WriteString("ok 1 - a\n")
	}
	if r := Read(out.String()); len(r.Ran) != 0 || r.Passed != maxRan+1 {
		t.Errorf("%d names of %d tests", len(r.Ran), r.Passed)
	}
}
