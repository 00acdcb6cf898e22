package git

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
)

// Withhold removes paths from the work tree until Restore brings them back, and
// returns those that were there. They are slash-separated and relative. A link in
// a path is not followed out of the work tree.
func (w *Workspace) Withhold(paths []string) ([]string, error) {
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, fmt.Errorf("withhold: %w", err)
	}
	defer root.Close()
	var held []string
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

// there reports whether a path stands in the work tree itself. What lies behind a
// link is not the repository's, and not reached.
func there(root *os.Root, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return false
		}
	}
	_, err := root.Lstat(p)
	return err == nil
}

// maxRestored bounds the list of what is restored, in bytes.
const maxRestored = 4 << 20

// Restore brings paths back to what they were at the start: the changed ones
// restored, the new ones removed, the deleted ones returned. It returns those in
// whose place there was something, which is lost.
func (w *Workspace) Restore(ctx context.Context, paths []string) (replaced []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	defer root.Close()
	for _, p := range paths {
		if !there(root, p) {
			continue // git itself puts folders in the place of links
		}
		replaced = append(replaced, p)
		if err := root.RemoveAll(p); err != nil {
			return replaced, fmt.Errorf("restore %s: %w", p, err)
		}
	}
	out, err := w.run(ctx, command{args: append([]string{"ls-tree", "--name-only", "-z", w.StartTree, "--"}, paths...), limit: maxRestored})
	if err != nil {
		return replaced, fmt.Errorf("restore: %w", err)
	}
	was := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	if len(was) == 0 {
		return replaced, nil
	}
	if _, err := w.run(ctx, command{args: append([]string{"checkout", "--quiet", "--force", w.StartTree, "--"}, was...)}); err != nil {
		return replaced, fmt.Errorf("restore: %w", err)
	}
	return replaced, nil
}
