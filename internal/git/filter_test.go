package git

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestFilteredFilesAreFound(t *testing.T) {
	version := "version https://git-lfs.github.com/spec/v1\n"
	oid := "oid sha256:" + strings.Repeat("2d", 32) + "\n"
	w := checkout(t, map[string]string{
		".gitattributes":     "*.png filter=lfs diff=lfs merge=lfs -text\n/secrets/** filter=git-crypt\nplain.png -filter\n[attr]stored filter=lfs\n*.iso stored\n",
		"sub/.gitattributes": "*.png !filter\n",
		"was.png":            version + oid + "size 10\n",
		"untouched.png":      version + oid + "size 11\n",
		"gone.png":           version + oid + "size 12\n",
	})
	write(t, w.Dir, map[string]string{
		"was.png":       "\x89PNG",
		"raw.png":       "\x89PNG\n" + strings.Repeat("x", 1<<20),
		"pointer.png":   version + oid + "size 13\n",
		"ext.png":       version + "ext-0-foo sha256:" + strings.Repeat("3e", 32) + "\n" + oid + "size 14\n",
		"hawser.png":    "version https://hawser.github.com/spec/v1\n" + oid + "size 15",
		"like.png":      version + oid + "size 16\nand more\n",
		"empty.png":     "",
		"plain.png":     "\x89PNG",
		"sub/a.png":     "\x89PNG",
		"odd \n é.png":  "\x89PNG",
		"disk.iso":      "ISO",
		"secrets/key":   "plain text",
		"secrets/empty": "",
		"a.txt":         "a",
	})
	sh(t, w.Dir, "rm", "-q", "gone.png")
	s, _ := snapshot(t, w)
	got, err := w.Unfiltered(t.Context(), w.StartTree, s.Tree)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, l := range got {
		paths = append(paths, l.Path)
		if strings.Contains(l.Path, "secrets") != strings.Contains(l.Reason, "git-crypt") {
			t.Errorf("%q: %s", l.Path, l.Reason)
		}
	}
	want := []string{"was.png", "raw.png", "like.png", "odd \n é.png", "disk.iso", "secrets/key", "secrets/empty"}
	if diff := cmp.Diff(want, paths, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
}
