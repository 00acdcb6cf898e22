package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

func TestAgentSeesAnOrdinaryCheckout(t *testing.T) {
	origin, first := repository(t, map[string]string{"a.txt": "a\n", ".gitattributes": "*.bat eol=crlf\n", "x.bat": "x\n"})
	sh(t, origin, "branch", "base")
	c := open(t)
	if _, err := c.Fetch(t.Context(), Remote{URL: origin}, "main"); err != nil {
		t.Fatal(err)
	}
	w, err := c.Checkout(t.Context(), CheckoutSpec{Commit: first, Dir: filepath.Join(t.TempDir(), "new", "attempt"),
		Branch: "pawl/issue-3"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if got := sh(t, w.Dir, "status", "--porcelain", "--branch"); got != "## pawl/issue-3" {
		t.Errorf("status: %s", got)
	}
	if got := sh(t, w.Dir, "for-each-ref", "--format=%(refname)"); got != "refs/heads/pawl/issue-3" {
		t.Errorf("refs: %s", got)
	}
	if got := sh(t, w.Dir, "remote"); got != "" {
		t.Errorf("remotes: %s", got)
	}
	write(t, w.Dir, map[string]string{"a.txt": "b\n"})
	sh(t, w.Dir, "commit", "-q", "-a", "-m", "the agent's own commit")
	sh(t, w.Dir, "fsck", "--strict")
	s, changes := snapshot(t, w)
	if diff := cmp.Diff([]string{"modified a.txt"}, changes); diff != "" {
		t.Error(diff)
	}
	if got := sh(t, w.Dir, "rev-parse", "HEAD^{tree}"); got != s.Tree {
		t.Error("the agent's commit and the snapshot are different trees")
	}
}

// The cache may already contain the fix: on another branch, on another thread's branch, or in a later commit of the
// default branch.
func TestCheckoutHasOnlyItsBranchsHistory(t *testing.T) {
	origin, first := repository(t, map[string]string{"a.txt": "first\n"})
	for i := range shortHistory {
		write(t, origin, map[string]string{"a.txt": strconv.Itoa(i) + "\n"})
		sh(t, origin, "commit", "-q", "-a", "-m", "more")
	}
	sh(t, origin, "checkout", "-q", "-b", "side", "HEAD~3")
	write(t, origin, map[string]string{"b.txt": "merged\n"})
	sh(t, origin, "add", "-A")
	sh(t, origin, "commit", "-q", "-m", "side")
	sh(t, origin, "checkout", "-q", "main")
	sh(t, origin, "merge", "-q", "--no-ff", "-m", "merge", "side")
	start := sh(t, origin, "rev-parse", "HEAD")
	write(t, origin, map[string]string{"a.txt": "the fix\n"})
	sh(t, origin, "commit", "-q", "-a", "-m", "the fix")
	fix := sh(t, origin, "rev-parse", "HEAD:a.txt")
	c := open(t)
	c.whole = 0
	if _, err := c.Fetch(t.Context(), Remote{URL: origin}, "main", "side"); err != nil {
		t.Fatal(err)
	}
	w, err := c.Checkout(t.Context(), CheckoutSpec{Commit: start, Dir: filepath.Join(t.TempDir(), "attempt")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	all := sh(t, w.Dir, "cat-file", "--batch-all-objects", "--batch-check")
	for what, id := range map[string]string{"the fix": fix, "the oldest commit": first} {
		if strings.Contains(all, id) {
			t.Errorf("the agent finds %s", what)
		}
	}
	if got := sh(t, w.Dir, "rev-list", "--count", "HEAD"); got != strconv.Itoa(shortHistory) {
		t.Errorf("the agent finds %s commits", got)
	}
	if got := sh(t, w.Dir, "rev-parse", "--is-shallow-repository"); got != "true" {
		t.Errorf("shallow: %s", got)
	}
	sh(t, w.Dir, "fsck", "--strict")
	sh(t, w.Dir, "log", "--stat", "-p", "--", "a.txt")
}

func TestSnapshotHasEveryChangeAndNoIgnoredFile(t *testing.T) {
	w := checkout(t, map[string]string{"keep": "k", "edit": "1", "gone": "g", "run.sh": "#!/bin/sh", "f2d": "file", "d2f/a": "a", "d2f/b": "b",
		"dir/x": "x", ".gitignore": "*.log\n", "old.log": "tracked although ignored"})
	if s, _ := snapshot(t, w); s.Tree != w.StartTree {
		t.Fatal("an untouched checkout has another tree")
	}
	for _, name := range []string{"gone", "f2d", "d2f", "dir"} {
		if err := os.RemoveAll(filepath.Join(w.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, w.Dir, map[string]string{"edit": "2", "f2d/inner": "i", "d2f": "file", "new\nline \"é\\": "odd", "-rf": "dash", ":(glob)**": "magic",
		"debug.log": "ignored", "old.log": "changed", "deep/a/b/c": "c", "bad\xff": "not UTF-8"})
	if err := os.Chmod(filepath.Join(w.Dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("keep", filepath.Join(w.Dir, "dir")); err != nil {
		t.Fatal(err)
	}
	s, changes := snapshot(t, w)
	want := []string{"added -rf", "added :(glob)**", "added bad\xff", "added deep/a/b/c", "added d2f", "deleted d2f/a", "deleted d2f/b",
		"added dir", "deleted dir/x", "modified edit", "deleted f2d", "added f2d/inner", "deleted gone", "added new\nline \"é\\",
		"modified old.log", "modified run.sh"}
	if diff := cmp.Diff(want, changes, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
	if len(s.Left) != 0 {
		t.Errorf("left out: %v", s.Left)
	}
	again, _ := snapshot(t, w)
	if again.Tree != s.Tree {
		t.Error("a second snapshot has another tree")
	}
}

func TestEditWithTheOldTimeAndSizeIsSeen(t *testing.T) {
	w := checkout(t, map[string]string{"a": "one"})
	path := filepath.Join(w.Dir, "a")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir, map[string]string{"a": "two"})
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if _, changes := snapshot(t, w); len(changes) != 1 {
		t.Errorf("changes: %v", changes)
	}
}

func TestUncommittableFilesAreLeftOutAndReported(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret": "s"})
	w := checkout(t, map[string]string{"ok": "1", "was": "file", "sub/real": "r", "dir/x": "x"})
	link := func(target, name string) {
		t.Helper()
		path := filepath.Join(w.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	link("/etc/passwd", "abs")
	link("../../secret", "up")
	link(outside, "out")
	link("..", "deep/er/up") // stays inside the work tree
	link("deep/er/up/../../secret", "through")
	link("nowhere", "dangling")
	link(".git/config", "config")
	link("ok", ".gitmodules")
	if err := os.RemoveAll(filepath.Join(w.Dir, "dir")); err != nil {
		t.Fatal(err)
	}
	link(outside, "dir")
	if err := os.Remove(filepath.Join(w.Dir, "was")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new.iso", "sub/real"} { // sparse files of 1 TiB
		if err := errors.Join(os.WriteFile(filepath.Join(w.Dir, name), nil, 0o600), os.Truncate(filepath.Join(w.Dir, name), 1<<40)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"was", "pipe"} {
		if err := unix.Mkfifo(filepath.Join(w.Dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	t.Chdir(w.Dir) // the full path may be too long for a socket's address
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "sock"}); err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir, map[string]string{"nested/file": "n", ".GIT/config": "c", "a/.git /config": "c", "git~1": "x", "b/.g\u200cit/config": "c",
		".git::$INDEX_ALLOCATION/x": "c", "ok": "2"})
	sh(t, filepath.Join(w.Dir, "nested"), "init", "-q")
	sh(t, filepath.Join(w.Dir, "nested"), "add", "-A")
	sh(t, filepath.Join(w.Dir, "nested"), "commit", "-q", "-m", "x")

	s, changes := snapshot(t, w)
	wantChanges := []string{"added dangling", "added deep/er/up", "deleted dir/x", "modified ok"}
	if diff := cmp.Diff(wantChanges, changes, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
	left := map[string]bool{}
	for _, l := range s.Left {
		left[l.Path] = true
	}
	want := map[string]bool{"abs": true, "up": true, "out": true, "through": true, "config": true, ".gitmodules": true, "dir": true, "was": true,
		"pipe": true, "sock": true, "nested": true, ".GIT/config": true, "a/.git /config": true, "git~1": true, "b/.g\u200cit/config": true,
		".git::$INDEX_ALLOCATION/x": true, "new.iso": true, "sub/real": true}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
}

func TestSubmoduleIsUnchanged(t *testing.T) {
	origin, first := repository(t, map[string]string{"a": "a"})
	sh(t, origin, "update-index", "--add", "--cacheinfo", "160000,"+first+",sub")
	sh(t, origin, "commit", "-q", "-m", "sub")
	c := open(t)
	refs, err := c.Fetch(t.Context(), Remote{URL: origin}, "main")
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Checkout(t.Context(), CheckoutSpec{Commit: refs["main"], Dir: filepath.Join(t.TempDir(), "attempt")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	sub := filepath.Join(w.Dir, "sub")
	sh(t, sub, "init", "-q")
	write(t, sub, map[string]string{"f": "f"})
	sh(t, sub, "add", "f")
	sh(t, sub, "commit", "-q", "-m", "another")
	if _, changes := snapshot(t, w); len(changes) != 0 {
		t.Errorf("the agent moved a submodule: %v", changes)
	}
	if err := os.RemoveAll(sub); err != nil {
		t.Fatal(err)
	}
	if _, changes := snapshot(t, w); len(changes) != 0 {
		t.Errorf("the agent removed a submodule: %v", changes)
	}
}

func TestTooManyFilesAreRefusedAndTooManyBytesLeftOut(t *testing.T) {
	bounded := func() *Workspace {
		w := checkout(t, map[string]string{"a": "a"})
		w.limits.files, w.limits.fileBytes, w.limits.totalBytes = 5, 100, 150
		return w
	}
	w := bounded()
	write(t, w.Dir, map[string]string{"1": "", "gen/2": "", "gen/a/3": "", "gen/4": "", "5": "", "gen/6": ""})
	if _, err := w.Snapshot(t.Context()); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `more than 5 files changed, 3 of them in "gen"`) {
		t.Error(err)
	}
	w = bounded()
	write(t, w.Dir, map[string]string{"1": strings.Repeat("x", 90), "2": strings.Repeat("y", 90), "3": strings.Repeat("z", 60), "4": strings.Repeat("z", 101)})
	s, changes := snapshot(t, w)
	if diff := cmp.Diff([]string{"added 1", "added 3"}, changes); diff != "" {
		t.Error(diff)
	}
	want := []Left{{"2", "the changed files have more than 150 B in total"}, {"4", "101 B; Pawl commits no file larger than 100 B"}}
	if diff := cmp.Diff(want, s.Left); diff != "" {
		t.Error(diff)
	}
}

func TestAddedReadsTheLinesOfAnyChange(t *testing.T) {
	w := checkout(t, map[string]string{"a": "a", "gone": strings.Repeat("gone\n", 8<<20)})
	if err := os.Remove(filepath.Join(w.Dir, "gone")); err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir, map[string]string{"line": strings.Repeat("x", 40<<20) + "y", "lines": strings.Repeat("zzzzzzz\n", 4<<20), "a": "a\nb"})
	s, _ := snapshot(t, w)
	bytes, last := map[string]int{}, map[string]string{}
	err := w.Added(t.Context(), w.StartTree, s.Tree, func(path string, n int, line string) {
		bytes[path] += len(line)
		last[path] = fmt.Sprintf("%d %.10s", n, line[max(0, len(line)-3):])
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"line": 40<<20 + 1, "lines": 28 << 20, "a": 2}, bytes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"line": "1 xxy", "lines": "4194304 zzz", "a": "2 b"}, last); diff != "" {
		t.Error(diff)
	}
}

func TestTreeThatWouldHangGitIsRefused(t *testing.T) {
	for _, name := range []string{".gitignore", "d/.gitattributes", "d/.git/HEAD", "e/.git"} {
		w := checkout(t, map[string]string{"a": "a"})
		if err := os.MkdirAll(filepath.Dir(filepath.Join(w.Dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(filepath.Join(w.Dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Snapshot(t.Context()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := checkout(t, map[string]string{"a": "a"})
	write(t, w.Dir, map[string]string{".gitignore": strings.Repeat("#", maxRules+1)})
	if _, err := w.Snapshot(t.Context()); !errors.Is(err, ErrUnsafe) {
		t.Errorf("huge rules: %v", err)
	}
	w = checkout(t, map[string]string{"a": "a"})
	write(t, w.Dir, map[string]string{strings.Repeat("d/", maxDepth+2) + "f": ""})
	if _, err := w.Snapshot(t.Context()); !errors.Is(err, ErrUnsafe) {
		t.Errorf("deep: %v", err)
	}
	w = checkout(t, map[string]string{"a": "a"})
	if err := os.Rename(w.Dir, w.Dir+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", w.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Snapshot(t.Context()); !errors.Is(err, ErrUnsafe) {
		t.Errorf("replaced by a link: %v", err)
	}
}

func TestUnforeseenHangTimesOut(t *testing.T) {
	// A nested repository's .git links to a folder that the survey skips. Its HEAD, which git reads, is a pipe.
	elsewhere := t.TempDir()
	write(t, elsewhere, map[string]string{"objects/": "", "refs/": ""})
	if err := unix.Mkfifo(filepath.Join(elsewhere, "HEAD"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := checkout(t, map[string]string{"a": "a"})
	w.limits.time = 3 * time.Second
	write(t, w.Dir, map[string]string{"d/f": "f"})
	if err := os.Symlink(elsewhere, filepath.Join(w.Dir, "d", ".git")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Snapshot(t.Context()); !errors.Is(err, ErrUnsafe) {
		t.Error(err)
	}
}

func TestProtectedPathsAreRestored(t *testing.T) {
	w := checkout(t, map[string]string{".github/workflows/ci.yml": "ci", ".github/workflows/old.yml": "old", ".github/pawl.yml": "p", "a": "a"})
	protected := func(path string) bool {
		return strings.HasPrefix(path, ".github/workflows/") || path == ".github/pawl.yml"
	}
	write(t, w.Dir, map[string]string{".github/workflows/ci.yml": "evil", ".github/workflows/new.yml": "evil", "a": "b", ".github/other": "fine"})
	if err := os.Remove(filepath.Join(w.Dir, ".github/workflows/old.yml")); err != nil {
		t.Fatal(err)
	}
	s, _ := snapshot(t, w)
	check := func(tree string, wantKept, wantUndone []string) {
		t.Helper()
		got, undone, err := w.Without(t.Context(), tree, w.StartTree, protected)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantUndone, undone); diff != "" {
			t.Error(diff)
		}
		changes, err := w.changes(t.Context(), w.StartTree, got)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, c := range changes {
			kept = append(kept, c.path)
		}
		if diff := cmp.Diff(wantKept, kept); diff != "" {
			t.Error(diff)
		}
	}
	check(s.Tree, []string{".github/other", "a"}, []string{".github/workflows/ci.yml", ".github/workflows/new.yml", ".github/workflows/old.yml"})

	if err := os.RemoveAll(filepath.Join(w.Dir, ".github")); err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir, map[string]string{".github": "a file where the directory was"})
	s, _ = snapshot(t, w)
	check(s.Tree, []string{"a"}, []string{".github", ".github/pawl.yml", ".github/workflows/ci.yml", ".github/workflows/old.yml"})
}

func TestDiffIsLimitedAndCannotBeHidden(t *testing.T) {
	w := checkout(t, map[string]string{"a": "a\n"})
	write(t, w.Dir, map[string]string{"a": "b\n" + strings.Repeat("line\n", 100), ".gitattributes": "* -diff binary\n"})
	s, _ := snapshot(t, w)
	whole, err := w.Diff(t.Context(), w.StartTree, s.Tree, 1<<20)
	if err != nil || !strings.Contains(whole, "\n-a\n+b\n") || strings.Count(whole, "\n+line") != 100 {
		t.Errorf("%v:\n%s", err, whole)
	}
	text, err := w.Diff(t.Context(), w.StartTree, s.Tree, 200)
	if err != nil || len(text) > 200 || text == "" || !strings.HasSuffix(text, "\n") || !strings.HasPrefix(whole, text) {
		t.Errorf("%v: %q", err, text)
	}
}

func TestCloseRemovesReadOnlyFolders(t *testing.T) {
	w := checkout(t, map[string]string{"a": "a"})
	write(t, w.Dir, map[string]string{"locked/inner/file": "x"})
	for _, name := range []string{"locked/inner", "locked"} {
		if err := os.Chmod(filepath.Join(w.Dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(w.root); !os.IsNotExist(err) {
		t.Error("a folder is left")
	}
}

func TestUnreadableFilesAreReported(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	w := checkout(t, map[string]string{"tracked/a": "a", "b": "b"})
	write(t, w.Dir, map[string]string{"new/x": "x", "b": "changed"})
	for _, name := range []string{"tracked", "new", "b"} {
		if err := os.Chmod(filepath.Join(w.Dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	s, changes := snapshot(t, w)
	if len(changes) != 0 {
		t.Errorf("changes: %v", changes)
	}
	left := map[string]bool{}
	for _, l := range s.Left {
		left[l.Path] = true
	}
	if !left["tracked"] || !left["new"] || !left["b"] {
		t.Errorf("left: %v", s.Left)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if syscall.Geteuid() == 0 {
		t.Error("the test ran as root")
	}
}

// The agent owns its checkout and its HOME, and can remove the permission to enter them.
func TestUnenterableCheckoutIsUnsafeAndRemovable(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	for _, mode := range []os.FileMode{0, 0o100, 0o400, 0o555} {
		w := checkout(t, map[string]string{"sub/a": "a"})
		write(t, w.Dir, map[string]string{"sub/inner/new": "x"})
		for _, name := range []string{"sub/inner", "sub", "."} {
			if err := os.Chmod(filepath.Join(w.Dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Snapshot(t.Context()); mode&0o500 != 0o500 && !errors.Is(err, ErrUnsafe) {
			t.Errorf("mode %o: %v, want an unsafe work tree", mode, err)
		}
		if err := Remove(w.Dir); err != nil {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if syscall.Geteuid() == 0 {
		t.Error("the test ran as root")
	}
}
