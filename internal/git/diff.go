package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	modeNone = "000000"
	modeLink = "160000" // to a commit of another repository
)

// change is one path that differs between two trees. Renames appear as a
// deletion and an addition.
type change struct {
	path         string
	oldMode      string // such as 100644; 000000 where there is nothing
	oldID, newID string // object ids; zeros where there is nothing
}

// maxChanges bounds the answer of changes. It is above what the limits let through,
// because a merge may bring in more.
const maxChanges = 200_000

// changes are the paths that differ between two trees or commits, in git's
// order. More than 200,000 are ErrTooLarge.
func (w *Workspace) changes(ctx context.Context, from, to string) ([]change, error) {
	if err := checkIDs(from, to); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	var changes []change
	var meta string
	args := []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--no-abbrev", from, to}
	err := w.each(ctx, command{args: args}, func(field string) error {
		if meta == "" {
			meta = field
			return nil
		}
		f := strings.Fields(strings.TrimPrefix(meta, ":")) // 100644 100755 <id> <id> M
		if len(f) != 5 {
			return fmt.Errorf("changes: git wrote %.200q", meta)
		}
		if len(changes) == maxChanges {
			return tooLarge("more than %d files differ", maxChanges)
		}
		changes, meta = append(changes, change{path: field, oldMode: f[0], oldID: f[2], newID: f[3]}), ""
		return nil
	})
	return changes, err
}

// Diff is the unified diff between two trees or commits, cut at a line before limit
// bytes. No program of anybody's configuration takes part in it.
func (w *Workspace) Diff(ctx context.Context, from, to string, limit int) (string, error) {
	if err := checkIDs(from, to); err != nil {
		return "", fmt.Errorf("diff: %w", err)
	}
	out, err := w.run(ctx, command{limit: limit, args: []string{"diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv",
		"--no-renames", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", from, to}})
	if errors.Is(err, ErrTooLarge) {
		return string(out[:bytes.LastIndexByte(out, '\n')+1]), nil
	}
	return string(out), err
}
