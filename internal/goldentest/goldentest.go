// Package goldentest compares texts with files that hold the accepted ones. Only tests import it.
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

var update = flag.Bool("update", false, "write the golden files of the tests that run anew")

// Compare fails the test where a file does not hold a text, and says how to accept the text. With the flag -update it
// writes the file.
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

// accept is the command that accepts what a test now makes.
func accept(test string) string {
	name, _, _ := strings.Cut(test, "/")
	in := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		in = strings.TrimSuffix(info.Path, ".test")
	}
	return fmt.Sprintf("go test %s -run '^%s$' -update", in, name)
}
