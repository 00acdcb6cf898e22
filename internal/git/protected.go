package git

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Withhold removes paths from the work tree until Restore, and returns those that existed. They are slash-separated
// and relative. It follows no link in a path out of the work tree.
func (w *Workspace) Withhold(paths []string) (held []string, err error) {
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, fmt.Errorf("withhold: %w", err)
	}
	defer root.Close()
	for _, p := range paths {
		if !there(root, p) {
			continue
		}
		if err := root.RemoveAll(p); err != nil {
			return held, fmt.Errorf("withhold %s: %w", p, err)
		}
		held = append(held, p)
	}
	return held, nil
}

// there reports whether a path is in the work tree itself. Files behind a link are not the repository's.
func there(root *os.Root, p string) bool {
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

// Restore resets paths to their start: changed ones are restored, new ones removed, deleted ones returned. It
// returns those that replaced something, which is lost.
func (w *Workspace) Restore(ctx context.Context, paths []string) (replaced []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	replaced, err = w.Withhold(paths) // git itself replaces links by folders
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

// Without is tree with every protected path as in base: changed ones restored, new ones removed, deleted ones
// returned. It also returns the undone paths. A file in the place of a protected path's directory is undone, too.
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

// With is tree with other contents of some regular files.
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

// rewrite is tree with replaced entries (in the format of update-index --index-info), through a separate index.
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

// withIndex calls do with an index of its own that holds a tree, which env names. It is in dir, and gone afterwards.
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
