package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/internal/wait"
)

// Cache is a local bare repository. It holds everything fetched from one remote repository, and Pawl's own commits. It
// is never garbage-collected, because checkouts borrow its objects. Goroutines and processes may use it concurrently.
type Cache struct {
	program          // runs in this repository
	plain   program  // runs outside any repository
	dir     string   // absolute, without symbolic links
	bases   sync.Map // merge bases by pair of commits
	whole   int64    // cache size in bytes up to which checkouts get the whole history
}

// attributes override the work tree's attributes. They disable filters, encodings and identifier expansion, which run
// programs or change bytes. They also keep an agent from hiding its changes by marking text files as binary.
const attributes = "* -filter -ident -working-tree-encoding !diff\n"

// Open opens or creates the cache in dir.
func Open(ctx context.Context, dir string) (*Cache, error) {
	p, err := findProgram()
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err == nil {
		err = makeFolder(dir)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open a cache: %w", err)
	}
	c := &Cache{program: p.with("GIT_DIR=" + dir), plain: p, dir: dir, whole: fullCache}
	if created(dir) { // the usual case: no need to wait for a running fetch
		return c, nil
	}
	lock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	return c, lock.Close()
}

// makeFolder creates a cache's folder. The parent folder is named after the repository's owner. If there is a file at
// the parent's path, makeFolder renames it first.
func makeFolder(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Lstat(parent)
	if err == nil && info.Mode().IsRegular() {
		err = os.Rename(parent, Damaged(parent))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}

// created reports whether a cache has the files that initialise writes last, with their content unchanged.
func created(dir string) bool {
	return !slices.ContainsFunc(files("main", true), func(f file) bool {
		have, err := readRegular(filepath.Join(dir, f.name))
		return err != nil || string(have) != f.content
	})
}

// readRegular reads a regular file. It refuses anything else, since opening a pipe would block.
func readRegular(path string) ([]byte, error) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fs.ErrInvalid)
	}
	return os.ReadFile(path)
}

// writeRegular writes a file. It replaces anything else at the path, such as a folder or a pipe.
func writeRegular(path, content string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

type file struct{ name, content string }

func files(branch string, bare bool) []file {
	config := fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = %t\n\tlogallrefupdates = %t\n", bare, !bare)
	return []file{{"config", config}, {"HEAD", "ref: refs/heads/" + branch + "\n"}, {"info/attributes", attributes}}
}

// initialise creates or completes a repository in dir. It writes the few files itself, which avoids a git process and
// the machine's templates.
func initialise(dir, branch string, bare bool) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	for _, f := range files(branch, bare) {
		if err := writeRegular(filepath.Join(dir, f.name), f.content); err != nil {
			return err
		}
	}
	return nil
}

// Fetch fetches references and returns their commits by name, without missing references. A name is a branch or a full
// reference such as refs/pull/7/head. Fetch returns ErrEmpty if the repository has no branch.
func (c *Cache) Fetch(ctx context.Context, r Remote, names ...string) (map[string]string, error) {
	full := make(map[string]string, len(names)) // requested name → full reference
	for _, name := range names {
		ref, err := fullRef(name)
		if err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
		full[name] = ref
	}
	lock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	refs := slices.Compact(slices.Sorted(maps.Values(full)))
	err = c.fetch(ctx, r, lock, refs, c.fetchedBefore)
	if failed, ok := errors.AsType[*commandError](err); ok && strings.Contains(failed.stderr, "couldn't find remote ref") {
		err = c.fetch(ctx, r, lock, refs, func(string) bool { return false })
	}
	if err != nil {
		return nil, err
	}
	found := make(map[string]string, len(full))
	for name, ref := range full {
		text, err := os.ReadFile(c.fileOf(ref))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		commit, err := line(text, err)
		if err == nil {
			err = checkIDs(commit)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s after a fetch: %w", ref, err)
		}
		found[name] = commit
	}
	if len(found) > 0 {
		return found, nil
	}
	if filepath.IsAbs(r.URL) && c.shallow(ctx, r.URL) {
		return nil, fmt.Errorf("fetch from %s: %w: it is a shallow clone; run git fetch --unshallow there", r.URL, ErrInvalid)
	}
	return found, c.checkEmpty(ctx, r)
}

// shallow reports whether a local repository is a shallow clone, from which git fetches no branch.
func (c *Cache) shallow(ctx context.Context, dir string) bool {
	text, err := line(c.plain.run(ctx, command{args: []string{"-C", dir, "rev-parse", "--is-shallow-repository"}}))
	return err == nil && text == "true"
}

func (c *Cache) fileOf(full string) string { return filepath.Join(c.dir, cacheRef(full)) }

func (c *Cache) fetchedBefore(full string) bool {
	_, err := os.Stat(c.fileOf(full))
	return err == nil
}

// fetch fetches references and deletes those that the remote no longer has. If a reference requested by its exact name
// is missing, the whole fetch fails. So fetch uses a pattern unless exists reports true. Pass the file from Cache.lock.
func (c *Cache) fetch(ctx context.Context, r Remote, lock *os.File, refs []string, exists func(ref string) bool) error {
	if len(refs) == 0 {
		return nil
	}
	args := []string{"fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--", r.URL}
	for _, ref := range refs {
		from, to := ref, cacheRef(ref)
		if !exists(ref) {
			from, to = pattern(ref)
		}
		args = append(args, "+"+from+":"+to)
	}
	_, err := c.run(ctx, command{args: args, remote: &r, files: []*os.File{lock}})
	return err
}

func (c *Cache) checkEmpty(ctx context.Context, r Remote) error {
	out, err := c.run(ctx, command{args: []string{"ls-remote", "--heads", "--", r.URL}, remote: &r})
	if errors.Is(err, ErrTooLarge) {
		return nil // more branches than fit into the output, so not empty
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: %w", r.URL, ErrEmpty)
	}
	return err
}

// DefaultBranch asks the remote for its default branch.
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
	return "", fmt.Errorf("%s: HEAD does not name a branch: %w", r.URL, ErrNotExist)
}

// maxListed limits the tree object of a file's folder, in bytes: about 200,000 entries.
const maxListed = 8 << 20

// ReadFile returns the content of a regular file in a commit. Directories, links and missing paths are ErrNotExist.
// Files over 1 MiB, and files in a folder over maxListed, are ErrTooLarge.
func (c *Cache) ReadFile(ctx context.Context, commit, name string) ([]byte, error) {
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("path %.200q: %w", name, ErrInvalid)
	}
	if err := checkIDs(commit); err != nil {
		return nil, err
	}
	folder := commit + ":" + strings.TrimSuffix(name, path.Base(name))
	asked := []string{commit + "^{commit}", strings.TrimSuffix(folder, "/"), commit + ":" + name}
	out, err := c.run(ctx, command{
		args:  []string{"cat-file", "--batch", "-z"},
		stdin: strings.Join(asked, "\x00") + "\x00",
		limit: maxListed + defaultOutput,
	})
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return nil, err
	}
	var objects [3]object
	for i, ask := range asked {
		objects[i], out = nextObject(ask, out)
	}
	switch file := objects[2]; {
	case objects[0].kind != "commit":
		return nil, fmt.Errorf("read %s: %s is not a commit in the cache", name, commit)
	case objects[1].kind == "tree" && objects[1].size > maxListed:
		return nil, tooLarge("the folder of %s", name)
	case !hasFile(objects[1], path.Base(name)):
		return nil, fmt.Errorf("%s in %s: %w", name, commit, ErrNotExist)
	case file.size > defaultOutput:
		return nil, tooLarge("%s has more than %d bytes", name, defaultOutput)
	case file.kind != "blob" || len(file.content) != file.size:
		return nil, fmt.Errorf("read %s in %s: git wrote %.200q", name, commit, out)
	default:
		return file.content, nil
	}
}

type object struct {
	kind    string // such as blob; empty for a missing object
	size    int    // in bytes
	content []byte // shorter than size if the output was cut
}

func nextObject(asked string, out []byte) (object, []byte) {
	if rest, missing := bytes.CutPrefix(out, []byte(asked+" missing\n")); missing {
		return object{}, rest
	}
	header, rest, _ := bytes.Cut(out, []byte{'\n'})
	fields := strings.Fields(string(header)) // id, type, size
	if len(fields) != 3 {
		return object{}, nil
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil {
		return object{}, nil
	}
	have := min(size, len(rest))
	return object{kind: fields[1], size: size, content: rest[:have]}, rest[min(size+1, len(rest)):]
}

const idBytes = 20

// hasFile reports whether a tree object has a regular file with that name. An entry is a mode, a space, a name, a NUL
// byte and a binary id.
func hasFile(folder object, name string) bool {
	if folder.kind != "tree" {
		return false
	}
	rest := folder.content
	for {
		entry, ids, ok := bytes.Cut(rest, []byte{0})
		if !ok || len(ids) < idBytes {
			return false
		}
		mode, at, _ := strings.Cut(string(entry), " ")
		if at == name {
			return isFile(mode)
		}
		rest = ids[idBytes:]
	}
}

func isFile(mode string) bool {
	switch mode {
	case "100644", "100755":
		return true
	}
	return false
}

// Files returns a line of git ls-tree (mode, type, id, path) for each wanted file.
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

const lockFile = "pawl.lock"

// lock makes the caller the only writer among all goroutines and processes until it closes the file. Pass the file to
// git, too: if Pawl is killed, git then holds the lock until git exits.
func (c *Cache) lock(ctx context.Context) (*os.File, error) {
	f, err := wait.Lock(ctx, filepath.Join(c.dir, lockFile), math.MaxInt64)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := errors.Join(c.clean(), complete(c.dir)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// complete creates the cache, or rewrites its small files if one is missing or altered.
func complete(dir string) error {
	if created(dir) {
		return nil
	}
	if err := initialise(dir, "main", true); err != nil {
		return fmt.Errorf("create the cache %s: %w", dir, err)
	}
	return nil
}

// clean removes lock files and temporary files left by a killed git. The caller must hold the cache's lock.
func (c *Cache) clean() error {
	var stale []string
	for _, pattern := range []string{"*.lock", "objects/pack/tmp_*", "objects/pack/.tmp-*"} {
		some, err := filepath.Glob(filepath.Join(c.dir, pattern))
		if err != nil {
			return fmt.Errorf("look for stale files: %w", err)
		}
		stale = append(stale, some...)
	}
	err := filepath.WalkDir(filepath.Join(c.dir, "refs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".lock") {
			stale = append(stale, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for stale files: %w", err)
	}
	for _, path := range stale {
		if filepath.Base(path) == lockFile {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove a stale file: %w", err)
		}
	}
	return nil
}
