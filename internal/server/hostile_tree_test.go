package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

var strange = []struct{ mode, content, name string }{
	{"120000", "/etc/passwd", "out"}, {"120000", "../../../../../etc", "up"}, {"120000", "sub", "to-sub"}, {"120000", "loop", "loop"},
	{"100644", "one\n", "new\nline.txt"}, {"100644", "one\n", `back\slash.txt`}, {"100644", "one\n", `quo"te$(touch x).txt`}, {"100644", "one\n", "tab\there"},
	{"100644", "one\n", "-rf"}, {"100644", "one\n", ":(glob)**"}, {"100644", "one\n", "README"}, {"100644", "one\n", "readme"}, {"100644", "one\n", "CON"},
	{"100644", "one\n", "\u00e9.txt"}, {"100644", "one\n", "e\u0301.txt"}, {"100644", "one\n", "\u202etxt.exe"}, {"100644", "one\n", "trailing. "}, {"100644", "one\n", "bad\xff.txt"},
	{"100644", "big.bin filter=lfs diff=lfs merge=lfs\n*.evil filter=evil\n*.txt ident working-tree-encoding=UTF-16 eol=crlf\n", ".gitattributes"},
	{"100644", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n", "big.bin"},
}

func TestStrangeTreeEntriesStayUnchanged(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	git := func(args ...string) string {
		out, err := r.World.Git(t.Context(), testrig.Repo, args...)
		r.Must(err)
		return strings.TrimSpace(out)
	}
	main := git("rev-parse", "main")
	git("read-tree", main)
	git("update-index", "--add", "--cacheinfo", "160000", main, "sub")
	for i, s := range strange {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i))
		r.Must(os.WriteFile(path, []byte(s.content), 0o600))
		git("update-index", "--add", "--cacheinfo", s.mode, git("hash-object", "-w", "--no-filters", path), s.name)
	}
	git("update-ref", "refs/heads/main", git("-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-p", main, "-m", "strange", git("write-tree")))
	r.Agent("cat > /dev/null; echo two >> a.txt; printf 'two\\n' >> 'new\nline.txt'\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	if changed := git("diff-tree", "-r", "-z", "--name-status", "main", fmt.Sprintf("pawl/issue-%d", n)); changed != "M\x00a.txt\x00M\x00new\nline.txt\x00" {
		t.Errorf("the attempt changed %q", changed)
	}
}
