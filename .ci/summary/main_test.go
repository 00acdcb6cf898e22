package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const recorded = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:9: bubblewrap is not installed\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestB","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.01s\n"}
{"Action":"pass","Package":"p","Elapsed":0.01}
`

func TestSkippedTestsAreListedWithTheirReasons(t *testing.T) {
	var out strings.Builder
	if code := run(strings.NewReader(recorded), &out, false); code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := "ok  \tp\t0.01s\n\nskipped:\n  p TestA: a_test.go:9: bubblewrap is not installed\n\n1 passed, 0 failed, 1 skipped\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if code := run(strings.NewReader(recorded), &strings.Builder{}, true); code != 1 {
		t.Errorf("exit code %d where skips are not allowed", code)
	}
}

func TestFailuresBuildErrorsAndPanicsFail(t *testing.T) {
	for name, in := range map[string]string{
		"a failed test":          `{"Action":"output","Package":"p","Test":"TestA","Output":"why\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestA"}`,
		"a package that died":    `{"Action":"output","Package":"p","Test":"TestA","Output":"why\n"}` + "\n" + `{"Action":"fail","Package":"p"}`,
		"a build error":          `{"Action":"build-output","ImportPath":"p","Output":"why\n"}` + "\n" + `{"Action":"build-fail","ImportPath":"p"}`,
		"a failure around tests": `{"Action":"output","Package":"p","Output":"why\n"}` + "\n" + `{"Action":"fail","Package":"p"}`,
	} {
		var out strings.Builder
		if code := run(strings.NewReader(in), &out, false); code != 1 || !strings.Contains(out.String(), "why\n") {
			t.Errorf("%s: exit code %d, output %q", name, code, out.String())
		}
	}
}
