package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/wait"
)

// Cache is a bare repository on this machine that holds everything fetched so far from one remote repository,
// and the commits that Pawl made for it. It is never collected or pruned, because checkouts borrow its
// objects. Any number of goroutines and processes may use one at the same time.
type Cache struct {
	program         // in this repository
	plain   program // outside of any
	dir     string  // absolute, without symbolic links
}

// attributes override those of the work tree. No filter, no encoding and no
// identifier expansion applies, because those run programs or change bytes; and
// an agent cannot hide its changes from the diff by calling a text binary.
const attributes = "* -filter -ident -working-tree-encoding !diff\n"

// Open opens the cache in dir, and creates it if there is none.
func Open(ctx context.Context, dir string) (*Cache, error) {
	p, err := findProgram()
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open a cache: %w", err)
	}
	c := &Cache{program: p.with("GIT_DIR=" + dir), plain: p, dir: dir}
	if c.created() { // the usual case, which need not wait for a running fetch
		return c, nil
	}
	held, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if c.created() {
		return c, nil
	}
	if err := p.init(ctx, dir, dir, "--bare"); err != nil {
		return nil, fmt.Errorf("create the cache %s: %w", dir, err)
	}
	return c, nil
}

// created reports whether the repository is there. The attributes file is the last that init writes, so it says that
// all before it was done.
func (c *Cache) created() bool {
	have, err := os.ReadFile(filepath.Join(c.dir, "info", "attributes"))
	return err == nil && string(have) == attributes
}

// init makes a repository without hooks or samples in dir, where it is missing or was left half made. gitDir is where
// its own files are.
func (p program) init(ctx context.Context, dir, gitDir, kind string) error {
	if _, err := p.run(ctx, command{args: []string{"init", "--quiet", "--template=", kind, "--", dir}}); err != nil {
		return err
	}
	info := filepath.Join(gitDir, "info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte(attributes), 0o600)
}

// Fetch brings the named references into the cache and returns the commit of each that exists, under the name
// it was asked for. A name is a branch, or a full reference such as refs/pull/7/head. A repository without
// any branch is ErrEmpty.
func (c *Cache) Fetch(ctx context.Context, r Remote, names ...string) (map[string]string, error) {
	full := make(map[string]string, len(names)) // asked name → full reference
	for _, name := range names {
		ref, err := fullRef(name)
		if err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
		full[name] = ref
	}
	held, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if err := c.fetch(ctx, r, held, full); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		// git refuses the whole fetch for one missing reference, so ask which
		// are there. Most fetches never come here and cost one conversation.
		missing, listErr := c.forgetMissing(ctx, r, full)
		if listErr != nil {
			return nil, listErr
		}
		if !missing {
			return nil, err
		}
		if err := c.fetch(ctx, r, held, full); err != nil {
			return nil, err
		}
	}
	found := make(map[string]string, len(full))
	for name, ref := range full {
		commit, err := line(c.run(ctx, command{args: []string{"rev-parse", "--verify", "--end-of-options", cacheRef(ref) + "^{commit}"}}))
		if err != nil {
			return nil, fmt.Errorf("%s is not a commit: %w", ref, err)
		}
		found[name] = commit
	}
	return found, nil
}

func (c *Cache) fetch(ctx context.Context, r Remote, held *os.File, full map[string]string) error {
	if len(full) == 0 {
		return nil
	}
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--", r.URL}
	for _, ref := range slices.Compact(slices.Sorted(maps.Values(full))) {
		args = append(args, "+"+ref+":"+cacheRef(ref))
	}
	_, err := c.run(ctx, command{args: args, remote: &r, files: []*os.File{held}})
	return err
}

// forgetMissing removes from full what the remote does not have, and reports whether anything was missing.
func (c *Cache) forgetMissing(ctx context.Context, r Remote, full map[string]string) (bool, error) {
	args := []string{"ls-remote", "--", r.URL}
	for _, ref := range full {
		args = append(args, ref)
	}
	out, err := c.run(ctx, command{args: args, remote: &r})
	if err != nil {
		return false, err
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if _, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			there[ref] = true
		}
	}
	before := len(full)
	maps.DeleteFunc(full, func(_, ref string) bool { return !there[ref] })
	if len(full) == 0 {
		if err := c.checkEmpty(ctx, r); err != nil {
			return false, err
		}
	}
	return len(full) < before, nil
}

func (c *Cache) checkEmpty(ctx context.Context, r Remote) error {
	out, err := c.run(ctx, command{args: []string{"ls-remote", "--heads", "--", r.URL}, remote: &r})
	if errors.Is(err, ErrTooLarge) {
		return nil // more branches than fit: not empty
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: %w", r.URL, ErrEmpty)
	}
	return err
}

// DefaultBranch asks the remote for its default branch, without refs/heads/.
func (c *Cache) DefaultBranch(ctx context.Context, r Remote) (string, error) {
	out, err := c.run(ctx, command{args: []string{"ls-remote", "--symref", "--", r.URL, "HEAD"}, remote: &r})
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		target, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if branch, ok := strings.CutPrefix(target, "ref: refs/heads/"); ok && name == "HEAD" {
			if _, err := fullRef(branch); err != nil {
				return "", err
			}
			return branch, nil
		}
	}
	if err := c.checkEmpty(ctx, r); err != nil {
		return "", err
	}
	return "", fmt.Errorf("%s: HEAD names no branch: %w", r.URL, ErrNotExist)
}

// ReadFile is the content of a regular file of a commit. A directory, a symbolic link or nothing at that path
// is ErrNotExist; more than 1 MiB is ErrTooLarge.
func (c *Cache) ReadFile(ctx context.Context, commit, path string) ([]byte, error) {
	if !fs.ValidPath(path) || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("path %.200q: %w", path, ErrInvalid)
	}
	out, err := c.run(ctx, command{args: []string{"ls-tree", "-z", "--full-tree"}, ids: []string{commit}, paths: []string{path}})
	if err != nil {
		return nil, err
	}
	entry, _, _ := bytes.Cut(out, []byte{0})
	meta, name, _ := strings.Cut(string(entry), "\t")
	fields := strings.Fields(meta) // mode, type, id
	if len(fields) != 3 || name != path || !isFile(fields[0]) {
		return nil, fmt.Errorf("%s in %s: %w", path, commit, ErrNotExist)
	}
	return c.run(ctx, command{args: []string{"cat-file", "blob", fields[2]}}) // of which no more is read
}

// isFile says whether a mode is that of a regular file.
func isFile(mode string) bool {
	switch mode {
	case "100644", "100755":
		return true
	}
	return false
}

// Files are the files of a commit that wanted names, each as its mode, id and path.
func (c *Cache) Files(ctx context.Context, commit string, wanted func(path string) bool) (files []string, err error) {
	list := command{args: []string{"ls-tree", "-r", "-z", "--full-tree"}, ids: []string{commit}}
	err = c.each(ctx, list, func(entry string) error {
		if _, path, ok := strings.Cut(entry, "\t"); ok && wanted(path) {
			files = append(files, entry)
		}
		return nil
	})
	return files, err
}

// lock takes the cache for one writer among all goroutines and processes, until the file is closed: hand it to the
// git process as well, so that a git which outlives a killed Pawl still holds it.
func (c *Cache) lock(ctx context.Context) (*os.File, error) {
	f, err := wait.Lock(ctx, filepath.Join(c.dir, "pawl.lock"), math.MaxInt64)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := c.clean(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// clean removes what a killed git left behind: with the lock held, nobody else can be using these files.
func (c *Cache) clean() error {
	for _, pattern := range []string{"*.lock", "refs/pawl/*.lock", "objects/pack/tmp_*", "objects/pack/.tmp-*"} {
		stale, err := filepath.Glob(filepath.Join(c.dir, pattern))
		if err != nil {
			return fmt.Errorf("look for stale files: %w", err)
		}
		for _, path := range stale {
			if filepath.Base(path) == "pawl.lock" {
				continue
			}
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove a stale file: %w", err)
			}
		}
	}
	return nil
}
