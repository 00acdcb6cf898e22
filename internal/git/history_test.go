package git

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// released is a repository with commits, each of which some call tags, and a tag on a side branch.
func released(t testing.TB, commits int, tag func(n int) string) (dir, tip string) {
	t.Helper()
	dir, _ = repository(t, map[string]string{"a.txt": "0"})
	sh(t, dir, "checkout", "-q", "-b", "side")
	sh(t, dir, "commit", "-q", "--allow-empty", "-m", "side")
	sh(t, dir, "tag", "-a", "v9.0.0", "-m", "never merged")
	sh(t, dir, "checkout", "-q", "main")
	for n := range commits {
		sh(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprint(n))
		if name := tag(n); name != "" {
			sh(t, dir, "tag", "-a", name, "-m", name)
		}
	}
	sh(t, dir, "tag", "light", "HEAD~2")
	sh(t, dir, "tag", "a-tree", "HEAD^{tree}")
	return dir, sh(t, dir, "rev-parse", "HEAD")
}

func TestToolsThatAskGitForVersionsWorkInACheckout(t *testing.T) {
	const commits = shortHistory + 15
	old := func(n int) string { return map[int]string{2: "v1.2.0", 1: "v1.1.0"}[n] }
	for name, c := range map[string]struct {
		whole    int64 // bytes of a cache up to which the whole history comes
		tag      func(n int) string
		describe string // empty: none of the annotated tags is there
		count    int
		tags     string
	}{
		"a small repository": {whole: fullCache, tag: old, describe: "v1.2.0-62-g", count: commits + 1, tags: "light\nv1.1.0\nv1.2.0"},
		"a large repository": {tag: old, describe: "v1.2.0-62-g", count: 63, tags: "light\nv1.2.0"},
		"no tag":             {tag: func(int) string { return "" }, count: shortHistory, tags: "light"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, tip := released(t, commits, c.tag)
			cache := open(t)
			cache.whole = c.whole
			if _, err := cache.Fetch(t.Context(), Remote{URL: dir}, "main"); err != nil {
				t.Fatal(err)
			}
			if err := cache.FetchTags(t.Context(), Remote{URL: dir}); err != nil {
				t.Fatal(err)
			}
			from := sh(t, dir, "rev-parse", "HEAD~3")
			w, err := cache.Checkout(t.Context(), CheckoutSpec{Commit: tip, Dir: filepath.Join(t.TempDir(), "attempt"), Base: "main", From: from})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if c.describe != "" {
				if got := sh(t, w.Dir, "describe", "--long"); got != c.describe+sh(t, w.Dir, "rev-parse", "--short", "HEAD") {
					t.Errorf("git describe: %s", got)
				}
			}
			if got := sh(t, w.Dir, "rev-list", "--count", "HEAD"); got != fmt.Sprint(c.count) {
				t.Errorf("%s commits, want %d", got, c.count)
			}
			if diff := cmp.Diff(c.tags, sh(t, w.Dir, "tag")); diff != "" {
				t.Error(diff)
			}
			if got := sh(t, w.Dir, "rev-list", "--count", "origin/main..HEAD"); got != "3" {
				t.Errorf("%s commits since origin/main, want 3", got)
			}
			sh(t, w.Dir, "fsck", "--strict")
		})
	}
}

func TestMovedAndDeletedTagsAreFollowed(t *testing.T) {
	dir, tip := released(t, 3, func(int) string { return "" })
	cache := open(t)
	fetch := func() {
		t.Helper()
		if _, err := cache.Fetch(t.Context(), Remote{URL: dir}, "main"); err != nil {
			t.Fatal(err)
		}
		if err := cache.FetchTags(t.Context(), Remote{URL: dir}); err != nil {
			t.Fatal(err)
		}
	}
	fetch()
	sh(t, dir, "tag", "-f", "light", tip)
	sh(t, dir, "tag", "-d", "v9.0.0")
	fetch() // at once: they are as they were
	if all, err := cache.tags(t.Context()); err != nil || len(all) != 2 || all[0].commit == tip {
		t.Errorf("%v, %v", all, err)
	}
	sh(t, dir, "tag", "v9.0.0/then-a-folder", tip)
	ago := time.Now().Add(-2 * tagsEach)
	if err := os.Chtimes(filepath.Join(cache.dir, "pawl.tags"), ago, ago); err != nil {
		t.Fatal(err)
	}
	fetch()
	all, err := cache.tags(t.Context())
	if err != nil || len(all) != 2 || all[0].commit != tip || all[1].ref != "refs/tags/v9.0.0/then-a-folder" {
		t.Errorf("%v, %v", all, err)
	}
}
