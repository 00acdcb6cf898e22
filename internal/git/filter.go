package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// maxPointer is the largest size of a Git LFS pointer in bytes (Git LFS specification).
const maxPointer = 1024

// pointer matches a Git LFS pointer, also with one of the two earlier version URLs (Git LFS specification).
var pointer = regexp.MustCompile(`^version https?://\S+\n(ext-\d+-\S+ sha256:[0-9a-f]{64}\n)*oid sha256:[0-9a-f]{64}\nsize \d+\n?$`)

// lfs is the filter attribute of files in Git LFS.
const lfs = "lfs"

// Unfiltered lists the changed regular files whose filter attribute names a program, such as Git LFS or an encryption
// tool. Pawl runs no filters, so a commit would contain the unconverted files. Git LFS pointers and empty files in Git
// LFS are exempt.
func (w *Workspace) Unfiltered(ctx context.Context, from, tree string) ([]Left, error) {
	changes, err := w.changes(ctx, from, tree)
	if err != nil {
		return nil, err
	}
	rules := w.attributes
	ids := map[string]string{}
	var paths strings.Builder
	for _, c := range changes {
		rules = rules || path.Base(c.path) == attributesFile
		if isFile(c.newMode) {
			ids[c.path] = c.newID
			paths.WriteString(c.path + "\x00")
		}
	}
	if !rules || len(ids) == 0 {
		return nil, nil
	}
	filters, err := w.filters(ctx, tree, paths.String())
	if err != nil {
		return nil, fmt.Errorf("attributes of the changed files: %w", err)
	}
	var left []Left
	for _, f := range filters {
		stays, err := w.staysPointer(ctx, f.name, ids[f.path])
		if err != nil {
			return nil, err
		}
		if !stays {
			left = append(left, Left{Path: f.path, Reason: reasonOf(f.name)})
		}
	}
	return left, nil
}

func reasonOf(filter string) string {
	if filter == lfs {
		return "Git LFS stores this file, and Pawl does not upload to Git LFS"
	}
	return fmt.Sprintf("Pawl does not run filter=%.50s of .gitattributes", filter)
}

// filtered is a path with its filter.
type filtered struct{ path, name string }

// filters returns the paths that have a filter in the tree's .gitattributes. In paths, a NUL byte ends each path.
func (w *Workspace) filters(ctx context.Context, tree, paths string) (all []filtered, err error) {
	err = w.withIndex(ctx, tree, func(dir string, index []string) error {
		// The attributes of the host's git directory would override all filters.
		plain := filepath.Join(dir, "plain.git")
		if err := initialise(plain, "main", true); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(plain, "info", "attributes")); err != nil {
			return err
		}
		var fields []string
		ask := command{
			args:  []string{"check-attr", "--cached", "-z", "--stdin", "filter"},
			env:   append(index, "GIT_DIR="+plain, "GIT_OBJECT_DIRECTORY="+filepath.Join(w.gitDir, "objects")),
			stdin: paths,
		}
		return w.each(ctx, ask, func(field string) error {
			fields = append(fields, field) // path, filter, value
			if len(fields) < 3 {
				return nil
			}
			if names(fields[2]) {
				all = append(all, filtered{fields[0], fields[2]})
			}
			fields = nil
			return nil
		})
	})
	return all, err
}

func names(value string) bool {
	switch value {
	case "unspecified", "unset", "set":
		return false
	}
	return true
}

// staysPointer reports whether a file with a filter may be committed as it is.
func (w *Workspace) staysPointer(ctx context.Context, filter, id string) (bool, error) {
	if filter != lfs {
		return false, nil
	}
	text, err := w.run(ctx, command{args: []string{"cat-file", "blob"}, ids: []string{id}, limit: maxPointer})
	if errors.Is(err, ErrTooLarge) {
		return false, nil
	}
	return len(text) == 0 || pointer.Match(text), err
}
