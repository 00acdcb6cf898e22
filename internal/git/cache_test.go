package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestFetchReturnsTheCommitsOfTheBranchesThatExist(t *testing.T) {
	dir, commit := repository(t, map[string]string{"a.txt": "a"})
	sh(t, dir, "update-ref", "refs/pull/7/head", commit)
	c := open(t)
	got, err := c.Fetch(t.Context(), Remote{URL: dir}, "main", "gone", "refs/pull/7/head", "refs/pull/8/head")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"main": commit, "refs/pull/7/head": commit}, got); diff != "" {
		t.Error(diff)
	}
	got, err = c.Fetch(t.Context(), Remote{URL: dir}, "gone")
	if err != nil || len(got) != 0 {
		t.Errorf("a missing branch gave %v, %v", got, err)
	}
}

func TestFetchFollowsABranchThatWasRewrittenOrBecameADirectory(t *testing.T) {
	dir, first := repository(t, map[string]string{"a.txt": "a"})
	sh(t, dir, "branch", "topic")
	c := open(t)
	if _, err := c.Fetch(t.Context(), Remote{URL: dir}, "main", "topic"); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "branch", "-D", "topic")
	sh(t, dir, "branch", "topic/one")
	sh(t, dir, "commit", "-q", "--amend", "--allow-empty", "-m", "other")
	got, err := c.Fetch(t.Context(), Remote{URL: dir}, "main", "topic/one")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"main": sh(t, dir, "rev-parse", "main"), "topic/one": first}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnEmptyRepositoryIsSaidToBeEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "empty")
	sh(t, "/", "init", "-q", "-b", "main", dir)
	c := open(t)
	if _, err := c.Fetch(t.Context(), Remote{URL: dir}, "main"); !errors.Is(err, ErrEmpty) {
		t.Errorf("Fetch: %v", err)
	}
	if _, err := c.DefaultBranch(t.Context(), Remote{URL: dir}); !errors.Is(err, ErrEmpty) {
		t.Errorf("DefaultBranch: %v", err)
	}
}

func TestDefaultBranchIsWhatTheRemoteSays(t *testing.T) {
	dir, _ := repository(t, map[string]string{"a.txt": "a"})
	sh(t, dir, "checkout", "-q", "-b", "trunk/main")
	got, err := open(t).DefaultBranch(t.Context(), Remote{URL: dir})
	if err != nil || got != "trunk/main" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReadFileReadsOnlyRegularFiles(t *testing.T) {
	dir, _ := repository(t, map[string]string{"d/pawl.yml": "verify: []\n", "* odd": "odd", "large": strings.Repeat("x", defaultOutput+1)})
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "add", "-A")
	sh(t, dir, "commit", "-q", "-m", "link")
	c := open(t)
	refs, err := c.Fetch(t.Context(), Remote{URL: dir}, "main")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		"d/pawl.yml": nil, "* odd": nil, "d": ErrNotExist, "link": ErrNotExist, "none": ErrNotExist, "d/*": ErrNotExist,
		"../x": ErrInvalid, "/etc/passwd": ErrInvalid,
	} {
		got, err := c.ReadFile(t.Context(), refs["main"], path)
		if !errors.Is(err, want) || want == nil && len(got) == 0 {
			t.Errorf("%s: %q, %v; want %v", path, got, err, want)
		}
	}
	if _, err := c.ReadFile(t.Context(), refs["main"], "large"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file over the limit: %v", err)
	}
	if _, err := c.ReadFile(t.Context(), "main", "d/pawl.yml"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a branch as a commit: %v", err)
	}
}

func TestManyFetchesAtOnceDoNotDisturbEachOther(t *testing.T) {
	dir, commit := repository(t, map[string]string{"a.txt": "a"})
	cacheDir := filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			c, err := Open(t.Context(), cacheDir)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := c.Fetch(t.Context(), Remote{URL: dir}, "main")
			if err != nil || got["main"] != commit {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	wg.Wait()
}

func TestWhatAKilledGitLeftBehindIsNoObstacle(t *testing.T) {
	dir, commit := repository(t, map[string]string{"a.txt": "a"})
	c := open(t)
	write(t, c.dir, map[string]string{"packed-refs.lock": "", "HEAD.lock": "", cacheRef("refs/heads/main") + ".lock": "",
		"objects/pack/tmp_pack_x": "half"})
	got, err := c.Fetch(t.Context(), Remote{URL: dir}, "main")
	if err != nil || got["main"] != commit {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "objects/pack/tmp_pack_x")); !os.IsNotExist(err) {
		t.Error("the half pack is still there")
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	c := open(t)
	f, err := os.Open(filepath.Join(c.dir, "pawl.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Fetch(ctx, Remote{URL: "/nowhere"}, "main"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDangerousRemotesAndNamesAreRefused(t *testing.T) {
	c := open(t)
	for _, url := range []string{"ext::sh -c id", "ssh://host/x", "git@github.com:a/b", "--upload-pack=id", "relative/path", "",
		"https://user:pw@github.com/a/b", "file:///etc", "https://", "https://h/\na"} {
		if _, err := c.Fetch(t.Context(), Remote{URL: url}, "main"); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", url, err)
		} else if strings.Contains(err.Error(), "pw") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
	for _, name := range []string{"", "-x", "a b", "a..b", "a:b", "+a", "*", "refs/heads/*", "a\nb", ".a", "a/.b", "a.lock", "a@{1}", "a//b", "/a"} {
		if _, err := c.Fetch(t.Context(), Remote{URL: "/x"}, name); name != "+a" && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
