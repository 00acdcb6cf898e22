package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithheldFilesAreRestored(t *testing.T) {
	w := checkout(t, map[string]string{"a.json": "{}", "dir/plugin.js": "x", "dir/deep/y": "y", "conf/.env": "A=1", "conf/keep": "k", "main.go": "m"})
	withheld, err := w.Withhold([]string{"a.json", "dir", "conf/.env", "missing", "main.go/x"})
	if d := cmp.Diff([]string{"a.json", "dir", "conf/.env"}, withheld); err != nil || d != "" {
		t.Fatal(d, err)
	}
	for _, p := range withheld {
		if _, err := os.Lstat(filepath.Join(w.Dir, p)); !os.IsNotExist(err) {
			t.Errorf("%s still exists: %v", p, err)
		}
	}
	// The agent writes files at two of the paths, and replaces the third's folder with a link out of the work tree.
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, map[string]string{".env": "host"})
	write(t, w.Dir, map[string]string{"a.json": `{"mine": true}`, "dir/plugin.js": "evil", "main.go": "changed"})
	if err := os.RemoveAll(filepath.Join(w.Dir, "conf")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(w.Dir, "conf")); err != nil {
		t.Fatal(err)
	}
	replaced, err := w.Restore(t.Context(), withheld)
	if d := cmp.Diff([]string{"a.json", "dir"}, replaced); err != nil || d != "" {
		t.Fatal(d, err)
	}
	for path, want := range map[string]string{
		filepath.Join(w.Dir, "a.json"): "{}", filepath.Join(w.Dir, "dir/plugin.js"): "x", filepath.Join(w.Dir, "dir/deep/y"): "y",
		filepath.Join(w.Dir, "conf/.env"): "A=1", filepath.Join(w.Dir, "main.go"): "changed", filepath.Join(outside, ".env"): "host",
	} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s contains %q, want %q: %v", path, got, want, err)
		}
	}
}

func TestWithholdFollowsNoLink(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, map[string]string{".env": "host"})
	w := checkout(t, map[string]string{"x": "x"})
	if err := os.Symlink(outside, filepath.Join(w.Dir, ".gemini")); err != nil {
		t.Fatal(err)
	}
	if withheld, err := w.Withhold([]string{".gemini/.env"}); err != nil || withheld != nil {
		t.Errorf("withheld %q: %v", withheld, err)
	}
	if _, err := os.Stat(filepath.Join(outside, ".env")); err != nil {
		t.Error(err)
	}
}

func TestWithoutAndWithCombineTrees(t *testing.T) {
	w := checkout(t, map[string]string{"a.go": "a", "a_test.go": "old", "gone_test.go": "gone", "package.json": "{}"})
	write(t, w.Dir, map[string]string{"a.go": "b", "a_test.go": "new", "new_test.go": "new", "package.json": "[]", "b.go": "b"})
	if err := os.Remove(filepath.Join(w.Dir, "gone_test.go")); err != nil {
		t.Fatal(err)
	}
	s, _ := snapshot(t, w)
	deleted, edited, added, err := w.Paths(t.Context(), w.StartTree, s.Tree)
	if d := cmp.Diff([][]string{{"gone_test.go"}, {"a.go", "a_test.go", "package.json"}, {"b.go", "new_test.go"}}, [][]string{deleted, edited, added}); err != nil || d != "" {
		t.Fatal(d, err)
	}
	tree, _, err := w.Without(t.Context(), s.Tree, w.StartTree, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	if err != nil {
		t.Fatal(err)
	}
	if tree, err = w.With(t.Context(), tree, map[string][]byte{"package.json": []byte("mixed")}); err != nil {
		t.Fatal(err)
	}
	diff, err := w.Diff(t.Context(), w.StartTree, tree, 1<<20)
	if err != nil || strings.Contains(diff, "_test.go") || !strings.Contains(diff, "+mixed") || !strings.Contains(diff, "b.go") {
		t.Errorf("%v\n%s", err, diff)
	}
}
