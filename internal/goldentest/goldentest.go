// Package goldentest compares texts with files of accepted texts. Only tests import it.
package goldentest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files of the tests that run")

// Compare fails the test if a file differs from got, and says how to accept got. With the flag -update it writes the
// file.
func Compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	diff := cmp.Diff(string(want), got)
	if err != nil {
		diff = err.Error()
	}
	if diff != "" {
		t.Errorf("%s (-accepted +new):\n%s\nTo accept the new text: %s", path, diff, accept(t.Name()))
	}
}

// accept returns the command that accepts a test's current text.
func accept(test string) string {
	name, _, _ := strings.Cut(test, "/")
	in := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		in = strings.TrimSuffix(info.Path, ".test")
	}
	return fmt.Sprintf("go test %s -run '^%s$' -update", in, name)
}
