package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
)

type CommitSpec struct {
	Tree        string   // id of a tree
	Parents     []string // ids of commits, beginning with the branch's last commit
	Subject     render.Title
	Body        string
	Name, Email string    // author and committer
	When        time.Time // author and committer date, to the second
	SigningKey  string    // path of an SSH key without a passphrase; empty means unsigned
}

// Commit commits a tree and returns the id. It runs no hook and moves no branch.
func (p program) Commit(ctx context.Context, s CommitSpec) (string, error) {
	if err := checkIDs(append([]string{s.Tree}, s.Parents...)...); err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	for _, text := range []string{s.Name, s.Email} {
		if text == "" || strings.ContainsAny(text, "\x00\n<>") {
			return "", fmt.Errorf("commit author %q <%q>: %w", s.Name, s.Email, ErrInvalid)
		}
	}
	args := []string{"commit-tree", s.Tree}
	if s.SigningKey != "" {
		args = []string{"-c", "gpg.format=ssh", "-c", "gpg.ssh.program=ssh-keygen", "commit-tree", "-S" + s.SigningKey, s.Tree}
	}
	for _, parent := range s.Parents {
		args = append(args, "-p", parent)
	}
	date := fmt.Sprintf("%d +0000", s.When.Unix())
	return line(p.run(ctx, command{
		args: append(args, "-F", "-"),
		env: []string{
			"GIT_AUTHOR_NAME=" + s.Name, "GIT_AUTHOR_EMAIL=" + s.Email, "GIT_AUTHOR_DATE=" + date,
			"GIT_COMMITTER_NAME=" + s.Name, "GIT_COMMITTER_EMAIL=" + s.Email, "GIT_COMMITTER_DATE=" + date,
		},
		// git refuses a NUL byte, and a message may quote an agent.
		stdin: strings.ReplaceAll(strings.ToValidUTF8(fmt.Sprintf("%s\n\n%s", s.Subject, s.Body), "�"), "\x00", "") + "\n",
	}))
}

// Merge merges two commits without a work tree. If they conflict, it returns the conflicting paths and a tree with
// conflict markers.
func (c *Cache) Merge(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	args := []string{"merge-tree", "--write-tree", "--no-messages", "--name-only", "-z"}
	out, err := c.run(ctx, command{args: args, ids: []string{ours, theirs}})
	if err != nil && exitCode(err) != 1 { // 1 means conflicts
		return "", nil, err
	}
	fields := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if err := checkIDs(fields[0]); err != nil {
		return "", nil, fmt.Errorf("merge %s into %s: %w", theirs, ours, err)
	}
	return fields[0], fields[1:], nil
}

// Subjects returns up to most non-merge commits after since that changed path, newest first: "short id first line".
func (c *Cache) Subjects(ctx context.Context, since, to, path string, most int) ([]string, error) {
	args := []string{"log", "-z", "--no-merges", "--format=%h %s", fmt.Sprintf("--max-count=%d", most)}
	out, err := c.run(ctx, command{args: args, ids: []string{"^" + since, to}, paths: []string{path}})
	if err != nil {
		return nil, fmt.Errorf("commits of %s: %w", path, err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}

// LastSubjects returns the first lines of the last non-merge commits up to commit, newest first.
func (c *Cache) LastSubjects(ctx context.Context, commit string, most int) ([]string, error) {
	args := []string{"log", "-z", "--no-merges", "--format=%s", fmt.Sprintf("--max-count=%d", most)}
	out, err := c.run(ctx, command{args: args, ids: []string{commit}})
	if err != nil {
		return nil, fmt.Errorf("last commits before %s: %w", commit, err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}

// Authored returns the last commits up to a commit, each as "short id first line, by author". If since is not empty,
// its history is excluded.
func (c *Cache) Authored(ctx context.Context, since, to string, most int) ([]string, error) {
	args := []string{"log", "-z", "--format=%h %s, by %an", fmt.Sprintf("--max-count=%d", most)}
	ids := []string{to}
	if since != "" {
		ids = append(ids, "^"+since)
	}
	out, err := c.run(ctx, command{args: args, ids: ids})
	if err != nil {
		return nil, fmt.Errorf("commits since %s: %w", since, err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}

func (c *Cache) IsAncestor(ctx context.Context, old, new string) (bool, error) {
	base, err := c.MergeBase(ctx, old, new)
	return err == nil && base == old, err
}

// Holds reports whether commit is in the history of tip. The cache has tip's whole history, so a commit that the cache
// lacks is not in that history.
func (c *Cache) Holds(ctx context.Context, tip, commit string) (bool, error) {
	if err := checkIDs(tip, commit); err != nil {
		return false, err
	}
	if _, err := c.run(ctx, command{args: []string{"cat-file", "-e", commit + "^{commit}"}}); err != nil {
		return false, ctx.Err()
	}
	return c.IsAncestor(ctx, commit, tip)
}

// Changed returns the hunks between two commits that touch lines first to last of a file, without context. Line numbers
// start at 1 and refer to from. The result has at most limit bytes, and is empty if no hunk touches the lines.
func (c *Cache) Changed(ctx context.Context, from, to, path string, first, last, limit int) (string, error) {
	out, err := c.run(ctx, command{args: changedLines, ids: []string{from, to}, paths: []string{path}})
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return "", fmt.Errorf("what changed in %s: %w", path, err)
	}
	var changed strings.Builder
	for _, hunk := range strings.Split("\n"+string(out), "\n@@ -")[1:] {
		old, _, _ := strings.Cut(hunk, " ")
		at, many := span("-" + old)
		if touches(at, many, first, last) {
			changed.WriteString("@@ -" + strings.TrimSuffix(hunk, "\n") + "\n")
		}
	}
	return strings.ToValidUTF8(changed.String()[:min(changed.Len(), limit)], ""), nil
}

// touches reports whether a hunk of `many` old lines, beginning at line `at`, touches the lines first to last. A hunk
// without old lines adds lines after `at`.
func touches(at, many, first, last int) bool {
	if at > last {
		return false
	}
	if many == 0 {
		return at >= first-1
	}
	return at+many > first
}

// MergeBase returns a best common ancestor, or empty if there is none. Results are cached.
func (c *Cache) MergeBase(ctx context.Context, a, b string) (string, error) {
	if a == b { // the usual case, while the base has not moved
		return a, nil
	}
	both := [2]string{min(a, b), max(a, b)}
	if base, known := c.bases.Load(both); known {
		return base.(string), nil
	}
	base, err := line(c.run(ctx, command{args: []string{"merge-base"}, ids: both[:]}))
	if err != nil && exitCode(err) != 1 {
		return "", fmt.Errorf("merge base of %s and %s: %w", a, b, err)
	}
	c.bases.Store(both, base)
	return base, nil
}

const (
	modeNone = "000000"
	modeLink = "160000" // a submodule: a link to a commit of another repository
)

// change is a path that differs between two trees. A rename counts as a deletion and an addition.
type change struct {
	path         string
	oldMode      string // such as 100644; 000000 for none
	newMode      string
	oldID, newID string // object ids; zeros for none
}

// maxChanges limits the number of files in a change. With 200,000 small new files on two cores, Snapshot took 17 s. The
// other steps at an attempt's end took as long again.
const maxChanges = 200_000

type differences struct {
	from, to string
	list     []change
}

func (w *Workspace) treeOf(id string) string { return cmp.Or(w.trees[id], id) }

// Same reports whether two trees or commits are known to have the same files. Other checkouts' commits
// count as different.
func (w *Workspace) Same(a, b string) bool { return w.treeOf(a) == w.treeOf(b) }

// changes returns the paths that differ between two trees or commits, in git's order. More than maxChanges paths are
// ErrTooLarge. The last result is cached, since an attempt's changes are read several times. Do not modify it.
func (w *Workspace) changes(ctx context.Context, from, to string) ([]change, error) {
	from, to = w.treeOf(from), w.treeOf(to)
	if w.changed.from == from && w.changed.to == to {
		return w.changed.list, nil
	}
	list, err := w.compare(ctx, from, to)
	if err == nil {
		w.changed = differences{from: from, to: to, list: list}
	}
	return list, err
}

func (w *Workspace) compare(ctx context.Context, from, to string) ([]change, error) {
	var changes []change
	var meta string
	args := []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--no-abbrev"}
	err := w.each(ctx, command{args: args, ids: []string{from, to}}, func(field string) error {
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
		changes, meta = append(changes, change{path: field, oldMode: f[0], newMode: f[1], oldID: f[2], newID: f[3]}), ""
		return nil
	})
	return changes, err
}

// Paths returns the deleted, edited and added paths of a change.
func (w *Workspace) Paths(ctx context.Context, from, to string) (deleted, edited, added []string, err error) {
	changes, err := w.changes(ctx, from, to)
	for _, c := range changes {
		switch {
		case c.oldMode == modeNone:
			added = append(added, c.path)
		case strings.Trim(c.newID, "0") == "":
			deleted = append(deleted, c.path)
		default:
			edited = append(edited, c.path)
		}
	}
	return deleted, edited, added, err
}

// patch makes git write the difference of two trees as a patch, independent of configuration. changedLines omits
// context and treats binary files as text.
var (
	patch = []string{"diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color",
		"--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"}
	changedLines = slices.Concat(patch, []string{"--text", "-U0"})
)

// Diff returns the unified diff of two trees or commits, cut after the last line that fits into limit bytes.
func (w *Workspace) Diff(ctx context.Context, from, to string, limit int) (string, error) {
	out, err := w.run(ctx, command{args: patch, ids: []string{from, to}, limit: limit})
	if errors.Is(err, ErrTooLarge) {
		return string(out[:bytes.LastIndexByte(out, '\n')+1]), nil
	}
	return string(out), err
}
