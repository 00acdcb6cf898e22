package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type limits struct {
	files      int           // changed files
	fileBytes  int64         // size of one changed file; GitHub warns about files over 50 MiB and refuses those over 100
	totalBytes int64         // size of all changed files together
	time       time.Duration // for one Snapshot
}

type CheckoutSpec struct {
	Commit string // must be in the cache
	Dir    string // absolute; created with its parents; must not exist
	// Branch is the agent's branch. Empty means "work".
	Branch string
	// Files is a commit or tree. The checkout begins with its files, as uncommitted changes to Commit. Empty means
	// Commit's own files.
	Files string
	// Base is the branch that Branch began from, at the commit From. If From is in Commit's history, the checkout's
	// origin/Base is From.
	Base, From string
}

// Workspace is one attempt's checkout. It is not safe for concurrent use. Before a method reads the work tree, all of
// the agent's processes must have ended.
type Workspace struct {
	// Dir is an ordinary checkout for the agent, mounted writable. Its own .git has no remote and no credential. It has
	// only the history and tags of its branch, so that the agent cannot copy other work.
	Dir       string
	StartTree string // the tree of the commit where the checkout started

	program                   // uses the host's git directory, with the checkout as work tree
	trees   map[string]string // by commit: the trees of the start commit and of the checkout's own commits
	changed differences       // last result of changes

	attributes bool   // the last snapshot found a .gitattributes
	root       string // contains the checkout and gitDir
	gitDir     string
	cache      *Cache
	borrowed   *os.File // keeps the cache from being replaced
	limits     limits
}

// Checkout creates a checkout of a commit in the cache. The agent gets only spec.Dir/checkout; it must not see the rest
// of spec.Dir.
func (c *Cache) Checkout(ctx context.Context, spec CheckoutSpec) (*Workspace, error) {
	err := os.MkdirAll(filepath.Dir(spec.Dir), 0o700)
	if err == nil {
		err = os.Mkdir(spec.Dir, 0o700)
	}
	root := ""
	if err == nil {
		root, err = filepath.EvalSymlinks(spec.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("checkout: %w", err)
	}
	w := c.workspace(root)
	if err := w.fill(ctx, spec); err != nil {
		return nil, errors.Join(fmt.Errorf("checkout of %s: %w", spec.Commit, err), w.Close())
	}
	return w, nil
}

func (c *Cache) workspace(root string) *Workspace {
	dir, gitDir := filepath.Join(root, "checkout"), filepath.Join(root, "host.git")
	return &Workspace{
		Dir: dir, program: c.plain.with("GIT_DIR="+gitDir, "GIT_WORK_TREE="+dir), root: root, gitDir: gitDir, cache: c,
		trees:  map[string]string{},
		limits: limits{files: maxChanges, fileBytes: 64 << 20, totalBytes: 512 << 20, time: 2 * time.Minute},
	}
}

// Reopen returns a checkout that a process completed before it was killed.
func (c *Cache) Reopen(ctx context.Context, spec CheckoutSpec) (*Workspace, error) {
	root, err := filepath.EvalSymlinks(spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("reopen a checkout: %w", err)
	}
	w := c.workspace(root)
	_ = os.Remove(filepath.Join(w.gitDir, "index.lock")) // left by a killed git
	if w.borrowed, err = borrow(c.dir); err != nil {
		return nil, fmt.Errorf("reopen a checkout: %w", err)
	}
	return w, w.begin(ctx, spec)
}

func (w *Workspace) begin(ctx context.Context, spec CheckoutSpec) (err error) {
	if err := checkIDs(spec.Commit); err != nil {
		return err
	}
	w.StartTree, err = line(w.run(ctx, command{args: []string{"rev-parse", "--verify", "--end-of-options", spec.Commit + "^{tree}"}}))
	w.trees[spec.Commit] = w.StartTree
	return err
}

func (w *Workspace) fill(ctx context.Context, spec CheckoutSpec) (err error) {
	if w.borrowed, err = borrow(w.cache.dir); err != nil {
		return err
	}
	if err := initialise(w.gitDir, "main", true); err != nil {
		return err
	}
	objects := filepath.Join(w.cache.dir, "objects") + "\n"
	if err := os.WriteFile(filepath.Join(w.gitDir, "objects", "info", "alternates"), []byte(objects), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(w.Dir, 0o755); err != nil {
		return err
	}
	past, err := w.history(ctx, spec.Commit, spec.From)
	if err != nil {
		return err
	}
	w.StartTree = past.commits[0].tree
	w.trees[spec.Commit] = w.StartTree
	if _, err := w.run(ctx, command{args: []string{"read-tree", "-m", "-u", cmp.Or(spec.Files, w.StartTree)}}); err != nil {
		return err
	}
	index, err := os.ReadFile(filepath.Join(w.gitDir, "index"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // git writes no index for an empty tree
		return err
	}
	if err := w.agentDir(ctx, spec, past, index); err != nil {
		return err
	}
	if !bytes.Contains(index, []byte{0, 0, 0o160000 >> 8, 0}) { // the mode of a submodule in an index
		return nil
	}
	return w.freezeLinks(ctx)
}

// freezeLinks marks submodules so that git never reads their directories, which the agent can write.
func (w *Workspace) freezeLinks(ctx context.Context) error {
	var links strings.Builder
	err := w.each(ctx, command{args: []string{"ls-files", "-z", "--stage"}}, func(entry string) error {
		if meta, path, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(meta, modeLink+" ") {
			links.WriteString(path + "\x00")
		}
		return nil
	})
	if err != nil || links.Len() == 0 {
		return err
	}
	_, err = w.run(ctx, command{args: []string{"update-index", "--skip-worktree", "-z", "--stdin"}, stdin: links.String()})
	return err
}

// agentDir creates the agent's throw-away .git. It copies the host's index, so that the agent's first git status does not
// read every file.
func (w *Workspace) agentDir(ctx context.Context, spec CheckoutSpec, past history, index []byte) error {
	branch := cmp.Or(spec.Branch, "work")
	ref, err := fullRef(branch)
	if err != nil {
		return err
	}
	dot := filepath.Join(w.Dir, ".git")
	if err := initialise(dot, branch, false); err != nil {
		return err
	}
	if err := w.pack(ctx, spec, past, dot); err != nil {
		return err
	}
	if err := w.writeRefs(ctx, spec, past, dot); err != nil {
		return err
	}
	config, err := os.OpenFile(filepath.Join(dot, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer config.Close()
	if _, err := config.WriteString("[user]\n\tname = agent\n\temail = agent@localhost\n[gc]\n\tauto = 0\n"); err != nil {
		return err
	}
	if len(index) > 0 {
		if err := os.WriteFile(filepath.Join(dot, "index"), index, 0o600); err != nil {
			return err
		}
	}
	return writeRef(dot, ref, spec.Commit)
}

func writeRef(gitDir, ref, commit string) error {
	file := filepath.Join(gitDir, ref)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(commit+"\n"), 0o600)
}

// keptRef is the reference under which a checkout passes its last commit to the cache.
const keptRef = "refs/pawl/kept"

// Commit commits a tree of this checkout and copies the commit into the cache. There it outlives the checkout and can
// be pushed. Nothing else from the checkout reaches the cache. If git's checks refuse an object, as GitHub's would,
// Commit returns ErrUnsafe.
func (w *Workspace) Commit(ctx context.Context, s CommitSpec) (string, error) {
	sha, err := w.program.Commit(ctx, s)
	if err != nil {
		return "", err
	}
	w.trees[sha] = s.Tree
	if err := w.keep(ctx, sha); err != nil {
		return "", err
	}
	return sha, nil
}

// keep copies a commit into the cache.
func (w *Workspace) keep(ctx context.Context, sha string) error {
	if err := writeRef(w.gitDir, keptRef, sha); err != nil {
		return err
	}
	lock, err := w.cache.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = w.cache.fetch(ctx, Remote{URL: w.gitDir}, lock, []string{keptRef}, func(string) bool { return true })
	failed, ok := errors.AsType[*commandError](err)
	switch {
	case ok && strings.Contains(failed.stderr, "fsck error"):
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	case ok: // the remote is a local folder, so no kind of server error applies
		failed.kind = nil
	}
	if err != nil {
		return fmt.Errorf("keep a commit in the cache: %w", err)
	}
	return nil
}

// Leave ends this process's use of the checkout and keeps its files.
func (w *Workspace) Leave() {
	if w.borrowed != nil {
		w.borrowed.Close()
	}
}

// Close removes the checkout, including read-only directories.
func (w *Workspace) Close() error {
	w.Leave()
	// Remove the git directory first: if Pawl is killed in between, the checkout does not count as complete.
	if err := errors.Join(Remove(w.gitDir), Remove(w.root)); err != nil {
		return fmt.Errorf("remove the checkout: %w", err)
	}
	return nil
}

// Remove deletes a directory that an agent could write to. It also deletes read-only directories, such as those in Go's
// module cache. A missing directory is not an error.
func Remove(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		_ = os.Chmod(dir, 0o700) // only Pawl can write to its parent, so no link has replaced it
	}
	if root, err := os.OpenRoot(dir); err == nil {
		unlock(root)
		root.Close()
	}
	return os.RemoveAll(dir)
}

// unlock makes every directory below root writable for its owner. It does not follow links. It ignores errors, since
// RemoveAll reports what is left.
func unlock(root *os.Root) {
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if !e.IsDir() || root.Chmod(e.Name(), 0o700) != nil {
			continue
		}
		if sub, err := root.OpenRoot(e.Name()); err == nil {
			unlock(sub)
			sub.Close()
		}
	}
}
