package git

import (
	"encoding/hex"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// rawObject stores an object unchanged, even one that git would not write, and returns its id.
func rawObject(t testing.TB, dir, kind, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object")
	write(t, filepath.Dir(file), map[string]string{"object": content})
	return sh(t, dir, "hash-object", "-t", kind, "--literally", "-w", file)
}

// entry returns the raw entry of a tree object.
func entry(t testing.TB, mode, name, id string) string {
	t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	return mode + " " + name + "\x00" + string(raw)
}

func TestHarmlessFaultsAreAcceptedAndAttacksRefused(t *testing.T) {
	const by = "A <a@example.org> 1359452800 +0000"
	commitOf := func(tree string) string {
		return "tree " + tree + "\nauthor " + by + "\ncommitter " + by + "\n\nImport\n"
	}
	for name, c := range map[string]struct {
		tree   func(t *testing.T, blob, tree string) string // the old commit's tree; nil for a valid one
		commit func(tree string) string
		want   error
	}{
		"two entries of one name": {tree: func(t *testing.T, blob, _ string) string {
			return entry(t, "100644", "a.txt", blob) + entry(t, "100644", "a.txt", blob)
		}},
		"entries out of order": {tree: func(t *testing.T, blob, _ string) string {
			return entry(t, "100644", "b", blob) + entry(t, "100644", "a", blob)
		}},
		"a path in a name":        {tree: func(t *testing.T, blob, _ string) string { return entry(t, "100644", "a/b", blob) }},
		"an empty name":           {tree: func(t *testing.T, blob, _ string) string { return entry(t, "100644", "", blob) }, want: ErrMalformed},
		"a mode of six zeros":     {tree: func(t *testing.T, blob, _ string) string { return entry(t, "0100644", "a", blob) }},
		"a folder named .git":     {tree: func(t *testing.T, _, tree string) string { return entry(t, "40000", ".git", tree) }},
		"a folder named ..":       {tree: func(t *testing.T, _, tree string) string { return entry(t, "40000", "..", tree) }},
		"no name and no e-mail":   {commit: func(tree string) string { return strings.ReplaceAll(commitOf(tree), "A <a@example.org>", "A") }},
		"no author":               {commit: func(tree string) string { return "tree " + tree + "\ncommitter " + by + "\n\nImport\n" }},
		"a NUL byte in a message": {commit: func(tree string) string { return commitOf(tree) + "\x00\n" }},
		"a link named .gitmodules": {
			tree: func(t *testing.T, blob, _ string) string { return entry(t, "120000", ".gitmodules", blob) },
			want: ErrMalformed,
		},
		"a tree of noise": {tree: func(*testing.T, string, string) string { return "noise" }, want: ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			dir, first := repository(t, map[string]string{"a.txt": "a"})
			tree := sh(t, dir, "rev-parse", "main^{tree}")
			old := tree
			if c.tree != nil {
				old = rawObject(t, dir, "tree", c.tree(t, sh(t, dir, "rev-parse", "main:a.txt"), tree))
			}
			if c.commit == nil {
				c.commit = commitOf
			}
			old = rawObject(t, dir, "commit", c.commit(old))
			tip := rawObject(t, dir, "commit", strings.Replace(commitOf(tree), "\n", "\nparent "+old+"\n", 1))
			sh(t, dir, "update-ref", "refs/heads/main", tip, first)
			cache := open(t)
			_, err := cache.Fetch(t.Context(), Remote{URL: dir}, "main")
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("fetched with %v, want %v", err, c.want)
			}
			if err != nil {
				return
			}
			if found, err := check(t.Context(), cache.dir); found != sound {
				t.Errorf("the cache is %s: %v", found, err)
			}
			w, err := cache.Checkout(t.Context(), CheckoutSpec{Commit: tip, Dir: filepath.Join(t.TempDir(), "attempt")})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			write(t, w.Dir, map[string]string{"a.txt": "b"})
			snap, _ := snapshot(t, w)
			if _, err := w.Commit(t.Context(), spec(snap.Tree, tip)); err != nil {
				t.Error(err)
			}
			log := exec.Command("git", "-C", w.Dir, "log", "--format=%s")
			if out, err := log.CombinedOutput(); err != nil {
				t.Errorf("the agent's git: %v\n%s", err, out)
			}
		})
	}
}
