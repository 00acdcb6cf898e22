package git

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// released returns a repository with tagged commits and a tag on a side branch.
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

func TestGitDescribeWorksInACheckout(t *testing.T) {
	const commits = shortHistory + 15
	old := func(n int) string { return map[int]string{2: "v1.2.0", 1: "v1.1.0"}[n] }
	for name, c := range map[string]struct {
		whole    int64 // the largest cache, in bytes, from which checkouts get the whole history
		tag      func(n int) string
		describe string // empty if no annotated tag exists
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
	sh(t, dir, "tag", "-a", "v8.0.0", "-m", "v8", "HEAD~1")
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
	sh(t, dir, "tag", "-d", "v8.0.0")
	fetch() // too early to fetch tags again
	if all, err := cache.tags(t.Context()); err != nil || len(all) != 2 || all[0].commit == tip {
		t.Errorf("%v, %v", all, err)
	}
	sh(t, dir, "tag", "v8.0.0/then-a-folder", tip)
	ago := time.Now().Add(-2 * tagsEach)
	if err := os.Chtimes(filepath.Join(cache.dir, "pawl.tags"), ago, ago); err != nil {
		t.Fatal(err)
	}
	fetch()
	all, err := cache.tags(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if all[0].commit != tip || all[1].ref != "refs/tags/v8.0.0/then-a-folder" {
		t.Errorf("%v", all)
	}
}

// large returns a shallow checkout of a branch that began at from.
func large(t *testing.T, dir, branch, from string) *Workspace {
	t.Helper()
	cache := open(t)
	cache.whole = 0
	tips, err := cache.Fetch(t.Context(), Remote{URL: dir}, branch)
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.FetchTags(t.Context(), Remote{URL: dir}); err != nil {
		t.Fatal(err)
	}
	w, err := cache.Checkout(t.Context(), CheckoutSpec{Commit: tips[branch], Dir: filepath.Join(t.TempDir(), "attempt"), Base: branch, From: from})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	sh(t, w.Dir, "fsck", "--strict")
	return w
}

// dated creates a commit with parents and a date, in seconds after a fixed time.
func dated(t *testing.T, dir string, date int, parents ...string) string {
	t.Helper()
	by := fmt.Sprintf("A <a@example.org> %d +0000\n", 1359452800+date)
	text := "tree " + sh(t, dir, "rev-parse", "main^{tree}") + "\n"
	for _, p := range parents {
		text += "parent " + p + "\n"
	}
	return rawObject(t, dir, "commit", text+"author "+by+"committer "+by+"\nx\n")
}

func TestMergedOldBranchKeepsTheShortHistory(t *testing.T) {
	dir, tip := repository(t, map[string]string{"a.txt": "0"})
	line := []string{dated(t, dir, 0)}
	for n := 1; n < 3*shortHistory; n++ {
		line = append(line, dated(t, dir, n*10, line[n-1]))
	}
	newest := len(line) - 1
	old := dated(t, dir, 1, line[0])
	merge := dated(t, dir, newest*10+1, line[newest], old)
	sh(t, dir, "update-ref", "refs/heads/main", merge, tip)
	w := large(t, dir, "main", "")
	if got := sh(t, w.Dir, "rev-list", "--count", "--first-parent", "HEAD"); got != fmt.Sprint(shortHistory) {
		t.Errorf("%s commits, want %d", got, shortHistory)
	}
	sh(t, w.Dir, "diff", "--quiet", "HEAD^2", "HEAD")

	for _, since := range []int{5, 2 * shortHistory} {
		w = large(t, dir, "main", line[newest-since])
		if got := sh(t, w.Dir, "rev-list", "--count", "--first-parent", "origin/main..HEAD"); got != fmt.Sprint(since+1) {
			t.Errorf("%s commits since origin/main, want %d", got, since+1)
		}
	}

	tagged := newest - shortHistory/2
	sh(t, dir, "tag", "-a", "v1", "-m", "v1", line[tagged])
	side := dated(t, dir, tagged*10+1, line[tagged-2*shortHistory])
	side = dated(t, dir, tagged*10+2, side, line[tagged-shortHistory]) // the branch merges a commit older than the tag
	sh(t, dir, "update-ref", "refs/heads/main", dated(t, dir, newest*10+2, merge, side), merge)
	w = large(t, dir, "main", "")
	want := sh(t, dir, "describe", "--abbrev=40", "main")
	if got := sh(t, w.Dir, "describe", "--abbrev=40"); got != want {
		t.Errorf("git describe: %s, want %s", got, want)
	}
}

func TestRenamedTagObjectIsFound(t *testing.T) {
	dir, _ := released(t, shortHistory+10, func(int) string { return "" })
	sh(t, dir, "tag", "-d", "light", "v9.0.0")
	sh(t, dir, "tag", "-a", "other", "-m", "other", "HEAD~55")
	sh(t, dir, "update-ref", "refs/tags/release/v3", "other")
	sh(t, dir, "tag", "-d", "other")
	w := large(t, dir, "main", "")
	if got := sh(t, w.Dir, "rev-list", "--count", "release/v3..HEAD"); got != "55" {
		t.Errorf("%s commits since the tag, want 55", got)
	}
}

func TestFetchTagsFetchesNoOtherCommits(t *testing.T) {
	dir, _ := released(t, 3, func(int) string { return "" })
	cache := open(t)
	if _, err := cache.Fetch(t.Context(), Remote{URL: dir}, "main"); err != nil {
		t.Fatal(err)
	}
	if err := cache.FetchTags(t.Context(), Remote{URL: dir}); err != nil {
		t.Fatal(err)
	}
	side := sh(t, dir, "rev-parse", "side")
	if _, err := cache.run(t.Context(), command{args: []string{"cat-file", "-e", side}}); err == nil {
		t.Error("the tag of another branch fetched that branch's commits")
	}
}

func TestSlowTagListBlocksNoFetch(t *testing.T) {
	dir, tip := released(t, 3, func(int) string { return "" })
	cache := open(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		w.WriteHeader(http.StatusNotFound)
	}))
	defer slow.Close()
	failed := make(chan error)
	go func() { failed <- cache.FetchTags(t.Context(), Remote{URL: slow.URL + "/a/b"}) }()
	<-asked
	got, err := cache.Fetch(t.Context(), Remote{URL: dir}, "main")
	close(answer)
	if err != nil || got["main"] != tip {
		t.Errorf("%v, %v", got, err)
	}
	if err := <-failed; !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
