package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Modes of tree entries, as git writes them.
const (
	modeNone = "000000"
	modeLink = "160000" // to a commit of another repository
)

// Kind says what happened to a path.
type Kind string

// The kinds of a Change.
const (
	Added       Kind = "added"
	Deleted     Kind = "deleted"
	Modified    Kind = "modified"
	TypeChanged Kind = "type changed" // between file, symbolic link and submodule
)

// Change is one path that differs between two trees. Renames appear as a
// deletion and an addition.
type Change struct {
	Path             string
	Kind             Kind
	OldMode, NewMode string // such as 100644; 000000 where there is nothing
	OldID, NewID     string // object ids; zeros where there is nothing
}

// maxChanges bounds the answer of Changes. It is above what Limits lets through
// by default, because a merge may bring in more.
const maxChanges = 200_000

// Changes are the paths that differ between two trees or commits, in git's
// order. More than 200,000 are ErrTooLarge.
func (w *Workspace) Changes(ctx context.Context, from, to string) ([]Change, error) {
	if err := checkIDs(from, to); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	var changes []Change
	var meta string
	args := []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--no-abbrev", from, to}
	err := w.each(ctx, command{args: args}, func(field string) error {
		if meta == "" {
			meta = field
			return nil
		}
		change, err := parseChange(meta, field)
		meta = ""
		if changes = append(changes, change); len(changes) > maxChanges {
			return tooLarge("more than %d files differ", maxChanges)
		}
		return err
	})
	return changes, err
}

// parseChange reads ":100644 100755 <id> <id> M" and a path.
func parseChange(meta, path string) (Change, error) {
	f := strings.Fields(strings.TrimPrefix(meta, ":"))
	if len(f) != 5 {
		return Change{}, fmt.Errorf("changes: git wrote %.200q", meta)
	}
	kinds := map[string]Kind{"A": Added, "D": Deleted, "M": Modified, "T": TypeChanged}
	kind, ok := kinds[f[4]]
	if !ok {
		return Change{}, fmt.Errorf("changes: git wrote %.200q", meta)
	}
	return Change{Path: path, Kind: kind, OldMode: f[0], NewMode: f[1], OldID: f[2], NewID: f[3]}, nil
}

// Diff is the unified diff between two trees or commits. It ends at a line
// before limit bytes, and cut tells whether anything is missing. No program of
// anybody's configuration takes part in it.
func (w *Workspace) Diff(ctx context.Context, from, to string, limit int) (text string, cut bool, err error) {
	if err := checkIDs(from, to); err != nil {
		return "", false, fmt.Errorf("diff: %w", err)
	}
	out, err := w.run(ctx, command{limit: limit, args: []string{"diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv",
		"--no-renames", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", from, to}})
	if errors.Is(err, ErrTooLarge) {
		end := strings.LastIndexByte(string(out), '\n') + 1
		return string(out[:end]), true, nil
	}
	if err != nil {
		return "", false, err
	}
	return string(out), false, nil
}

// Without is tree with every protected path put back to what it is in base: the
// changed ones restored, the new ones removed, the deleted ones returned. It
// also returns the paths that this undid. A file that stands where a protected
// path needs a directory is undone too.
func (w *Workspace) Without(ctx context.Context, tree, base string, protected func(path string) bool) (string, []string, error) {
	changes, err := w.Changes(ctx, base, tree)
	if err != nil {
		return "", nil, err
	}
	var back, drop strings.Builder
	for _, c := range changes {
		switch {
		case !protected(c.Path):
		case c.OldMode == modeNone:
			fmt.Fprintf(&drop, "0 %s\t%s\x00", c.NewID, c.Path)
		default:
			fmt.Fprintf(&back, "%s %s\t%s\x00", c.OldMode, c.OldID, c.Path)
		}
	}
	if back.Len()+drop.Len() == 0 {
		return tree, nil, nil
	}
	dir, err := os.MkdirTemp(w.root, "index")
	if err != nil {
		return "", nil, fmt.Errorf("restore protected paths: %w", err)
	}
	defer os.RemoveAll(dir)
	restored, err := w.rewrite(ctx, filepath.Join(dir, "index"), tree, drop.String()+back.String())
	if err != nil {
		return "", nil, fmt.Errorf("restore protected paths: %w", err)
	}
	undone, err := w.Changes(ctx, restored, tree)
	var paths []string
	for _, c := range undone {
		paths = append(paths, c.Path)
	}
	return restored, paths, err
}

// rewrite is tree with entries (in the format of update-index --index-info)
// replaced, by way of an index of its own.
func (w *Workspace) rewrite(ctx context.Context, index, tree, entries string) (string, error) {
	env := []string{"GIT_INDEX_FILE=" + index}
	if _, err := w.run(ctx, command{args: []string{"read-tree", tree}, env: env}); err != nil {
		return "", err
	}
	update := []string{"update-index", "--add", "--replace", "-z", "--index-info"}
	if _, err := w.run(ctx, command{args: update, env: env, stdin: entries}); err != nil {
		return "", err
	}
	out, err := w.run(ctx, command{args: []string{"write-tree"}, env: env})
	return strings.TrimSpace(string(out)), err
}
