package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/wait"
)

// fetched returns a cache with a repository's main branch, and a git error from that cache.
func fetched(t *testing.T) (c *Cache, dir, tip string, cause error) {
	t.Helper()
	dir, tip = repository(t, map[string]string{"a.txt": "a"})
	c = open(t)
	if _, err := c.Fetch(t.Context(), Remote{URL: dir}, "main"); err != nil {
		t.Fatal(err)
	}
	_, cause = c.run(t.Context(), command{args: []string{"cat-file", "-p", strings.Repeat("1", 40)}})
	return c, dir, tip, cause
}

// spoil empties all of the cache's files that match a pattern.
func spoil(t *testing.T, c *Cache, pattern string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	for _, file := range files {
		if err := errors.Join(os.Chmod(file, 0o600), os.Truncate(file, 0)); err != nil {
			t.Fatal(err)
		}
	}
}

// age backdates the last check of a cache.
func age(t *testing.T, c *Cache, by time.Duration) {
	t.Helper()
	at := time.Now().Add(-by)
	if err := os.Chtimes(c.dir+".checked", at, at); err != nil {
		t.Fatal(err)
	}
}

func mend(t *testing.T, c *Cache, cause error, want bool, fails error) {
	t.Helper()
	got, err := Mend(t.Context(), c.dir, cause)
	if got != want || !errors.Is(err, fails) || (err == nil) != (fails == nil) {
		t.Errorf("replaced: %t, %v; want %t, %v", got, err, want, fails)
	}
}

func TestDamagedCacheIsReplaced(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, c *Cache){
		"no packs and objects": func(t *testing.T, c *Cache) {
			for _, sub := range []string{"objects/pack", "objects"} {
				if err := os.RemoveAll(filepath.Join(c.dir, sub)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"an empty pack":      func(t *testing.T, c *Cache) { spoil(t, c, "objects/pack/*.pack") },
		"an empty index":     func(t *testing.T, c *Cache) { spoil(t, c, "objects/pack/*.idx") },
		"an empty reference": func(t *testing.T, c *Cache) { spoil(t, c, "refs/pawl/*") },
		"half a pack": func(t *testing.T, c *Cache) {
			packs, err := filepath.Glob(filepath.Join(c.dir, "objects/pack/*.pack"))
			if err != nil || len(packs) != 1 {
				t.Fatal(packs, err)
			}
			if err := errors.Join(os.Chmod(packs[0], 0o600), os.Truncate(packs[0], 100)); err != nil {
				t.Fatal(err)
			}
		},
		"noise in packed-refs": func(t *testing.T, c *Cache) { write(t, c.dir, map[string]string{"packed-refs": "noise\n"}) },
		"a tag without its object": func(t *testing.T, c *Cache) {
			write(t, c.dir, map[string]string{"refs/tags/x": strings.Repeat("1", 40)})
		},
		"a file instead of the cache": func(t *testing.T, c *Cache) {
			if err := errors.Join(os.RemoveAll(c.dir), os.WriteFile(c.dir, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
		"a folder as lock": func(t *testing.T, c *Cache) {
			file := filepath.Join(c.dir, lockFile)
			if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
				t.Fatal(err)
			}
		},
		"another byte in a pack": func(t *testing.T, c *Cache) {
			sh(t, c.dir, "repack", "-adq")
			packs, err := filepath.Glob(filepath.Join(c.dir, "objects/pack/*.pack"))
			if err != nil || len(packs) != 1 {
				t.Fatal(packs, err)
			}
			data, err := os.ReadFile(packs[0])
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 0x40
			if err := errors.Join(os.Chmod(packs[0], 0o600), os.WriteFile(packs[0], data, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir, tip, cause := fetched(t)
			damage(t, c)
			mend(t, c, cause, true, nil)
			again, err := Open(t.Context(), c.dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := again.Fetch(t.Context(), Remote{URL: dir}, "main")
			if err != nil || got["main"] != tip {
				t.Errorf("%v, %v", got, err)
			}
			left, err := filepath.Glob(c.dir + "*")
			if want := []string{c.dir, c.dir + ".checked"}; err != nil || !slices.Equal(left, want) {
				t.Errorf("%q are left, want %q", left, want)
			}
			mend(t, c, cause, false, nil)
			spoil(t, c, "objects/pack/*.idx")
			mend(t, c, cause, false, nil) // too early for another check
			age(t, c, 2*checkEach)
			mend(t, c, cause, false, ErrDamaged)
			hours := fmt.Sprintf("damaged %d\n", time.Now().Add(-2*replaceEach).Unix())
			if err := os.WriteFile(c.dir+".checked", []byte(hours), 0o600); err != nil {
				t.Fatal(err)
			}
			mend(t, c, cause, true, nil)
		})
	}
}

func TestDamagedCacheFilesAreRewrittenDuringAnAttempt(t *testing.T) {
	for i, name := range []string{"HEAD", "config", "info/attributes", "HEAD", "config", "info/attributes"} {
		c, dir, tip, cause := fetched(t)
		w, err := c.Checkout(t.Context(), CheckoutSpec{Commit: tip, Dir: filepath.Join(t.TempDir(), "attempt")})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		noise := func() { write(t, c.dir, map[string]string{name: "\x00[["}) }
		if i >= 3 {
			noise = func() {
				at := filepath.Join(c.dir, name)
				if err := errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Join(at, "x"), 0o700)); err != nil {
					t.Fatal(err)
				}
			}
		}
		noise()
		mend(t, c, cause, false, nil)
		noise()
		write(t, w.Dir, map[string]string{"a.txt": "b"})
		s, _ := snapshot(t, w)
		if _, err := w.Commit(t.Context(), spec(s.Tree, tip)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		noise()
		again, err := Open(t.Context(), c.dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.Fetch(t.Context(), Remote{URL: dir}, "main"); err != nil || got["main"] != tip {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestMendIgnoresErrorsWithAnotherCause(t *testing.T) {
	c, dir, _, local := fetched(t)
	_, absent := c.Fetch(t.Context(), Remote{URL: filepath.Join(dir, "none")}, "main")
	spoil(t, c, "objects/pack/*.idx")
	mend(t, c, nil, false, nil)
	mend(t, c, absent, false, nil)
	mend(t, c, errors.New("the database is gone"), false, nil)
	mend(t, c, local, true, nil)
	mend(t, c, local, false, nil) // the branch does not exist
}

func TestMendReusesRecentResults(t *testing.T) {
	c, _, _, cause := fetched(t)
	mend(t, c, cause, false, nil)
	spoil(t, c, "objects/pack/*.idx")
	mend(t, c, cause, false, nil)
	age(t, c, 2*checkEach)
	mend(t, c, cause, true, nil)
}

func TestBorrowedCacheIsNotReplaced(t *testing.T) {
	c, _, tip, cause := fetched(t)
	spec := CheckoutSpec{Commit: tip, Dir: filepath.Join(t.TempDir(), "attempt")}
	w, err := c.Checkout(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Reopen(t.Context(), spec) // stands in for a second process that borrows the cache
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, c, "refs/pawl/*")
	mend(t, c, cause, false, errBorrowed)
	write(t, w.Dir, map[string]string{"a.txt": "b"})
	if _, changes := snapshot(t, w); len(changes) != 1 {
		t.Errorf("the running attempt changed %q", changes)
	}
	again.Leave()
	mend(t, c, cause, false, errBorrowed)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	fetching, err := c.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mend(t, c, cause, false, errBorrowed)
	fetching.Close()
	mend(t, c, cause, true, nil)
}

func TestInterruptedCheckIsInconclusive(t *testing.T) {
	for name, script := range map[string]string{
		"killed, as if out of memory": "kill -9 $$",
		"no memory":                   "echo 'fatal: Out of memory, malloc failed (tried to allocate 5 bytes)' >&2; exit 128",
		"no threads":                  "echo 'fatal: unable to create thread: Resource temporarily unavailable' >&2; exit 128",
		"no read permission":          "echo 'error: cannot open objects/pack: Permission denied' >&2; exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _, cause := fetched(t)
			bin := t.TempDir()
			write(t, bin, map[string]string{"git": "#!/bin/sh\n" + script + "\n"})
			if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			mend(t, c, cause, false, errUnknown)
			mend(t, c, cause, false, errUnknown) // reuses the result
			if _, err := os.Stat(c.dir); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	c, _, _, _ := fetched(t)
	if found, err := check(ctx, c.dir); found != unknown {
		t.Errorf("a check without a timeout: %s, %v", found, err)
	}
}

// Processes share no memory, so the test starts its own binary several times.
func TestConcurrentProcessesReplaceACacheOnce(t *testing.T) {
	if dir := os.Getenv("PAWL_TEST_MEND"); dir != "" {
		mended, err := Mend(t.Context(), dir, &commandError{op: "fetch", cause: errors.New("exit status 128")})
		t.Logf("mended=%t err=%v", mended, err)
		return
	}
	c, dir, tip, _ := fetched(t)
	spoil(t, c, "objects/pack/*.idx")
	var replaced atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestConcurrentProcessesReplaceACacheOnce$", "-test.v")
			cmd.Env = append(os.Environ(), "PAWL_TEST_MEND="+c.dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if strings.Contains(string(out), "mended=true") {
				replaced.Add(1)
				again, err := Open(t.Context(), c.dir)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := again.Fetch(t.Context(), Remote{URL: dir}, "main"); err != nil || got["main"] != tip {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	if n := replaced.Load(); n != 1 {
		t.Errorf("replaced %d times, want once", n)
	}
	lock, err := wait.Lock(t.Context(), c.dir+".checked", 0)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}

func TestDamagedCacheIsNotReportedAsUnsafeWork(t *testing.T) {
	c, _, tip, _ := fetched(t)
	w, err := c.Checkout(t.Context(), CheckoutSpec{Commit: tip, Dir: filepath.Join(t.TempDir(), "attempt")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	write(t, w.Dir, map[string]string{"a.txt": "b"})
	s, _ := snapshot(t, w)
	sha, err := w.program.Commit(t.Context(), spec(s.Tree, tip))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"refs/pawl", "objects"} {
		if err := os.RemoveAll(filepath.Join(c.dir, kind)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(c.dir, "refs/pawl"), 0o700), os.MkdirAll(filepath.Join(c.dir, "objects/pack"), 0o700)); err != nil {
		t.Fatal(err)
	}
	err = w.keep(t.Context(), sha)
	if err == nil || errors.Is(err, ErrUnsafe) || explained(err) {
		t.Errorf("%v: want an error of a damaged cache", err)
	}
}
