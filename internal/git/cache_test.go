package git

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestFetchReturnsExistingReferences(t *testing.T) {
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

// The first fetch requests a branch by a pattern, which other branches may match.
func TestFetchIgnoresSimilarlyNamedBranches(t *testing.T) {
	dir, _ := repository(t, map[string]string{"a.txt": "a"})
	for _, name := range []string{"pawl/issue-11", "pawl/iss-ue-1", "pawl/iss/deep/ue-1", "other/pawl/issue-1", "maxin"} {
		sh(t, dir, "branch", name)
	}
	c := open(t)
	fetch := func(want ...string) {
		t.Helper()
		got, err := c.Fetch(t.Context(), Remote{URL: dir}, "main", "pawl/issue-1", "refs/pawl/unfinished/1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Error(diff)
		}
	}
	fetch("main")
	sh(t, dir, "branch", "pawl/issue-1")
	sh(t, dir, "update-ref", "refs/pawl/unfinished/1", "main")
	fetch("main", "pawl/issue-1", "refs/pawl/unfinished/1")
	sh(t, dir, "branch", "-D", "pawl/issue-1", "pawl/iss-ue-1")
	sh(t, dir, "branch", "pawl/iss-ue-1/pawl/issue-1")
	fetch("main", "refs/pawl/unfinished/1") // none of the earlier references
	sh(t, dir, "branch", "pawl/issue-1")
	fetch("main", "pawl/issue-1", "refs/pawl/unfinished/1")
}

func TestPatternSplitsTheLongestPart(t *testing.T) {
	for full, want := range map[string]string{
		"refs/heads/main":          "refs/heads/ma*in",
		"refs/heads/x":             "refs/heads/*x",
		"refs/heads/pawl/issue-12": "refs/heads/pawl/issu*e-12",
		"refs/heads/release/1.0":   "refs/heads/rel*ease/1.0",
		"refs/pawl/unfinished/7":   "refs/pawl/unfin*ished/7",
		"refs/pull/7/head":         "refs/pull/7/he*ad",
		"refs/stash":               "refs/st*ash",
	} {
		got, to := pattern(full)
		if got != want {
			t.Errorf("%s is requested as %s, want %s", full, got, want)
		}
		if strings.Replace(to, "*", "", 1) != cacheRef(full) {
			t.Errorf("%s is stored at %s and looked up at %s", full, to, cacheRef(full))
		}
	}
}

func TestFetchFollowsRewrittenAndReplacedBranches(t *testing.T) {
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

func TestEmptyRepositoryIsReported(t *testing.T) {
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

func TestDefaultBranchComesFromTheRemote(t *testing.T) {
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
	if _, err := c.ReadFile(t.Context(), strings.Repeat("1", 40), "d/pawl.yml"); err == nil || errors.Is(err, ErrNotExist) {
		t.Errorf("a commit outside the cache: %v, want an error that names the reason", err)
	}
	if _, err := c.ReadFile(t.Context(), "main", "d/pawl.yml"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a branch as a commit: %v", err)
	}
}

func TestConcurrentFetchesSucceed(t *testing.T) {
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

func TestIncompleteCacheIsCompleted(t *testing.T) {
	dir, commit := repository(t, map[string]string{"a.txt": "a"})
	half := filepath.Join(t.TempDir(), "cache")
	write(t, half, map[string]string{"HEAD": "", "config": "[co", "objects/": ""})
	c, err := Open(t.Context(), half)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Fetch(t.Context(), Remote{URL: dir}, "main")
	if err != nil || got["main"] != commit {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLeftoversOfAKilledGitAreRemoved(t *testing.T) {
	dir, commit := repository(t, map[string]string{"a.txt": "a"})
	c := open(t)
	write(t, c.dir, map[string]string{"packed-refs.lock": "", "HEAD.lock": "", cacheRef("refs/heads/main") + ".lock": "",
		cacheRef("refs/pawl/unfinished/7") + ".lock": "",
		"objects/pack/tmp_pack_x":                    "half"})
	sh(t, dir, "update-ref", "refs/pawl/unfinished/7", commit)
	got, err := c.Fetch(t.Context(), Remote{URL: dir}, "main", "refs/pawl/unfinished/7")
	if err != nil || got["main"] != commit || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "objects/pack/tmp_pack_x")); !os.IsNotExist(err) {
		t.Error("the incomplete pack still exists")
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

func TestShallowCloneIsReported(t *testing.T) {
	dir, _ := repository(t, map[string]string{"a.txt": "a"})
	sh(t, dir, "commit", "-q", "--allow-empty", "-m", "second")
	shallow := filepath.Join(t.TempDir(), "shallow")
	sh(t, "/", "clone", "-q", "--depth", "1", "file://"+dir, shallow)
	_, err := open(t).Fetch(t.Context(), Remote{URL: shallow}, "main")
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Error(err)
	}
}
