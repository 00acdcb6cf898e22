package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/needs"
)

// inTheWay lists ways to replace a file or folder of a cache, or to block the path of one that git would create.
var inTheWay = map[string]func(path string) error{
	"a file":          func(path string) error { return os.WriteFile(path, []byte("noise\n"), 0o600) },
	"an empty file":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
	"a folder":        func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	"a looping link":  func(path string) error { return os.Symlink(path, path) },
	"a dangling link": func(path string) error { return os.Symlink("/nowhere/at/all", path) },
}

// unmade lists names that git uses in a repository, but that a new cache lacks.
var unmade = []string{
	"logs", "packed-refs", "shallow", "FETCH_HEAD", "ORIG_HEAD", "config.worktree", "worktrees", "modules", "commondir", "hooks", "reftable", "branches", "remotes", "index", ".git",
	"gc.pid", "HEAD.lock", "config.lock", "shallow.lock", "packed-refs.lock", "info/grafts", "objects/12", "objects/info/alternates", "objects/info/commit-graph",
	"objects/info/commit-graphs", "objects/pack/multi-pack-index", "objects/pack/tmp_pack_x", "objects/pack/pack-x.idx", "refs/replace", "refs/tags", "refs/stray", "refs/heads/x",
	"refs/pawl/kept", "refs/pawl/probe", "refs/pawl/x.lock", "pawl.borrowed", "../cache.damaged",
}

// made returns the files and folders of a cache with a branch.
func made(t *testing.T) (names []string) {
	t.Helper()
	c, _, _, _ := fetched(t)
	err := filepath.WalkDir(c.dir, func(path string, _ fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(c.dir, path)
		names = append(names, name)
		return errors.Join(err, relErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// attempted uses a cache like an attempt: it fetches, checks out and commits.
func attempted(t *testing.T, dir, url, tip string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	got, err := c.Fetch(ctx, Remote{URL: url}, "main", "next")
	if err != nil {
		return err
	}
	if got["next"] != tip {
		return fmt.Errorf("fetched %v, want %s as next", got, tip)
	}
	w, err := c.Checkout(ctx, CheckoutSpec{Commit: tip, Dir: filepath.Join(t.TempDir(), "attempt")})
	if err != nil {
		return err
	}
	defer w.Close()
	write(t, w.Dir, map[string]string{"a.txt": "b"})
	s, err := w.Snapshot(ctx)
	if err != nil {
		return err
	}
	_, err = w.Commit(ctx, spec(s.Tree, tip))
	return err
}

// Either an obstacle has no effect, or the cache is replaced once.
func TestObstaclesInACacheAreIgnoredOrReplaced(t *testing.T) {
	names := []string{"", "HEAD", "config", "objects", "refs", "logs", "packed-refs.lock", "pawl.borrowed"}
	if needs.AreAll() {
		names = slices.Concat(unmade, made(t))
	}
	for _, name := range names {
		for what, put := range inTheWay {
			t.Run(what+" as "+name, func(t *testing.T) {
				t.Parallel()
				c, url, _, _ := fetched(t)
				sh(t, url, "checkout", "-q", "-b", "next")
				write(t, url, map[string]string{"b.txt": "b"})
				sh(t, url, "add", "-A")
				sh(t, url, "commit", "-q", "-m", "second")
				tip := sh(t, url, "rev-parse", "HEAD")
				at := filepath.Join(c.dir, name)
				if err := errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Dir(at), 0o700), put(at)); err != nil {
					t.Fatal(err)
				}
				err := attempted(t, c.dir, url, tip)
				if err == nil {
					return
				}
				mend(t, c, err, true, nil)
				if again := attempted(t, c.dir, url, tip); again != nil {
					t.Errorf("after the replacement: %v; before it: %v", again, err)
				}
			})
		}
	}
}

// Opening a pipe without a writer would block forever.
func TestPipeInACacheIsReplaced(t *testing.T) {
	for _, name := range []string{"HEAD", "config", "info/attributes"} {
		c, url, tip, _ := fetched(t)
		at := filepath.Join(c.dir, name)
		if err := errors.Join(os.Remove(at), unix.Mkfifo(at, 0o600)); err != nil {
			t.Fatal(err)
		}
		again, err := Open(t.Context(), c.dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.Fetch(t.Context(), Remote{URL: url}, "main"); err != nil || got["main"] != tip {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	c, _, _, cause := fetched(t)
	if err := unix.Mkfifo(filepath.Join(c.dir, "packed-refs"), 0o600); err != nil {
		t.Fatal(err)
	}
	mend(t, c, cause, true, nil)
}

func TestFileAtACachesParentFolderIsRenamed(t *testing.T) {
	around := filepath.Join(t.TempDir(), "acme")
	write(t, filepath.Dir(around), map[string]string{"acme": "noise"})
	if _, err := Open(t.Context(), filepath.Join(around, "widgets.git")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(Damaged(around)); string(text) != "noise" {
		t.Errorf("the file was not renamed: %q, %v", text, err)
	}
}

func TestDamagedCheckRecordIsReplaced(t *testing.T) {
	for what, put := range inTheWay {
		c, _, _, cause := fetched(t)
		spoil(t, c, "objects/pack/*.pack")
		if err := put(c.dir + ".checked"); err != nil {
			t.Fatal(err)
		}
		t.Log(what)
		mend(t, c, cause, true, nil)
	}
}
