package git

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Withhold removes slash-separated relative paths from the work tree until Restore, and returns those that existed. It
// does not follow links out of the work tree.
func (w *Workspace) Withhold(paths []string) (withheld []string, err error) {
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, fmt.Errorf("withhold: %w", err)
	}
	defer root.Close()
	for _, p := range paths {
		if !exists(root, p) {
			continue
		}
		if err := root.RemoveAll(p); err != nil {
			return withheld, fmt.Errorf("withhold %s: %w", p, err)
		}
		withheld = append(withheld, p)
	}
	return withheld, nil
}

// exists reports whether a path exists in the work tree without passing a link. Files behind a link are not the
// repository's.
func exists(root *os.Root, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return false
		}
	}
	_, err := root.Lstat(p)
	return err == nil
}

// maxRestored limits the list of restored paths, in bytes.
const maxRestored = 4 << 20

// Restore resets paths to their content at the start of the attempt: it restores changed and deleted files and removes
// new ones. It returns the paths where it discarded something.
func (w *Workspace) Restore(ctx context.Context, paths []string) (replaced []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	replaced, err = w.Withhold(paths) // git checkout would replace links with folders
	if err != nil {
		return replaced, fmt.Errorf("restore: %w", err)
	}
	out, err := w.run(ctx, command{args: []string{"ls-tree", "--name-only", "-z"}, ids: []string{w.StartTree}, paths: paths, limit: maxRestored})
	if err != nil {
		return replaced, fmt.Errorf("restore: %w", err)
	}
	was := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	if len(was) == 0 {
		return replaced, nil
	}
	if _, err := w.run(ctx, command{args: []string{"checkout", "--quiet", "--force"}, ids: []string{w.StartTree}, paths: was}); err != nil {
		return replaced, fmt.Errorf("restore: %w", err)
	}
	return replaced, nil
}

// Without returns tree with every protected path as in base, and the paths that it reset. If a file replaced a
// directory of protected paths, that file is reset, too.
func (w *Workspace) Without(ctx context.Context, tree, base string, protected func(path string) bool) (string, []string, error) {
	changes, err := w.changes(ctx, base, tree)
	if err != nil {
		return "", nil, err
	}
	var back, drop strings.Builder
	for _, c := range changes {
		switch {
		case !protected(c.path):
		case c.oldMode == modeNone:
			fmt.Fprintf(&drop, "0 %s\t%s\x00", c.newID, c.path)
		default:
			fmt.Fprintf(&back, "%s %s\t%s\x00", c.oldMode, c.oldID, c.path)
		}
	}
	if back.Len()+drop.Len() == 0 {
		return tree, nil, nil
	}
	restored, err := w.rewrite(ctx, tree, drop.String()+back.String())
	if err != nil {
		return "", nil, fmt.Errorf("restore protected paths: %w", err)
	}
	undone, err := w.changes(ctx, restored, tree)
	var paths []string
	for _, c := range undone {
		paths = append(paths, c.path)
	}
	return restored, paths, err
}

// With returns a copy of tree in which contents, by path, replaces or adds regular files.
func (w *Workspace) With(ctx context.Context, tree string, contents map[string][]byte) (string, error) {
	var entries strings.Builder
	for path, content := range contents {
		id, err := line(w.run(ctx, command{args: []string{"hash-object", "-w", "--stdin"}, stdin: string(content)}))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&entries, "100644 %s\t%s\x00", id, path)
	}
	if entries.Len() == 0 {
		return tree, nil
	}
	return w.rewrite(ctx, tree, entries.String())
}

// rewrite returns tree with replaced entries, given in the format of update-index --index-info. It uses a separate index.
func (w *Workspace) rewrite(ctx context.Context, tree, entries string) (id string, err error) {
	err = w.withIndex(ctx, tree, func(_ string, env []string) error {
		update := []string{"update-index", "--add", "--replace", "-z", "--index-info"}
		if _, err := w.run(ctx, command{args: update, env: env, stdin: entries}); err != nil {
			return err
		}
		id, err = line(w.run(ctx, command{args: []string{"write-tree"}, env: env}))
		return err
	})
	return id, err
}

// withIndex calls do with a temporary index of a tree, which env selects. The index is in dir, which withIndex deletes
// afterwards.
func (w *Workspace) withIndex(ctx context.Context, tree string, do func(dir string, env []string) error) error {
	dir, err := os.MkdirTemp(w.root, "index")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	if _, err := w.run(ctx, command{args: []string{"read-tree", tree}, env: env}); err != nil {
		return err
	}
	return do(dir, env)
}
