package fakegithub

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Push is one change of a branch. Before or After is 40 zeros for a created or deleted branch. Forced means that
// After does not contain Before.
type Push struct {
	Branch string
	Before string
	After  string
	Forced bool
	By     string
	At     time.Time
}

const noCommit = "0000000000000000000000000000000000000000"

// refsMoved compares the repository on disk with the known branches, and handles each change like a push at GitHub.
func (w pushes) refsMoved(ctx context.Context, r *repository, by *account) error {
	now, err := r.git.branches()
	if err != nil {
		return err
	}
	before := r.branches
	r.branches = now
	names := maps.Clone(now)
	maps.Copy(names, before)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] == now[name] {
			continue
		}
		if err := w.branchMoved(ctx, r, name, before[name], now[name], by); err != nil {
			return err
		}
	}
	return nil
}

// branchMoved records one push, sends its events and updates the branch's pull requests.
func (w pushes) branchMoved(ctx context.Context, r *repository, name, before, after string, by *account) error {
	r.pushed = w.now()
	p := Push{Branch: name, Before: cmp.Or(before, noCommit), After: cmp.Or(after, noCommit), By: by.login, At: w.now()}
	if before != "" && after != "" {
		_, notAncestor := r.git.run(ctx, nil, "merge-base", "--is-ancestor", before, after)
		p.Forced = notAncestor != nil
	}
	r.pushes = append(r.pushes, p)
	fields, err := w.pushFields(ctx, r, p, by)
	if err != nil {
		return err
	}
	w.emit("push", r, by, fields)
	switch {
	case before == "":
		w.emit("create", r, by, obj{"ref": name, "ref_type": "branch", "master_branch": r.defaultBranch, "description": nil, "pusher_type": "user"})
	case after == "":
		w.emit("delete", r, by, obj{"ref": name, "ref_type": "branch", "pusher_type": "user"})
	}
	return w.moveHeads(ctx, r, p, by)
}

// moveHeads updates open pull requests whose head or base was pushed. It closes those whose head was deleted.
func (w pushes) moveHeads(ctx context.Context, r *repository, p Push, by *account) error {
	for _, t := range r.threads {
		if t.pull == nil || t.state != "open" {
			continue
		}
		isHead := t.pull.headRef == p.Branch
		if isHead && p.After == noCommit {
			w.setState(r, t, "closed", "", by)
			continue
		}
		if isHead {
			t.updated, t.pull.headSHA = w.now(), p.After
		}
		if isHead || t.pull.baseRef == p.Branch && p.After != noCommit {
			if err := w.measure(ctx, r, t); err != nil {
				return err
			}
		}
		if isHead {
			w.emitThread(r, t, "synchronize", by, obj{"before": p.Before, "after": p.After})
		}
	}
	return nil
}

// measure writes refs/pull/<n>/head, which outlives the branch, and compares the pull request with its base.
func (w pushes) measure(ctx context.Context, r *repository, t *thread) error {
	ref := fmt.Sprintf("refs/pull/%d/head", t.number)
	if err := r.git.setRef(ref, t.pull.headSHA); err != nil {
		return err
	}
	diff, err := r.compare(ctx, r.branches[t.pull.baseRef], t.pull.headSHA)
	t.pull.diff, t.pull.computed = diff, false
	return err
}

// moveRef sets a ref, or deletes it if the commit is empty, and handles the change.
func (w pushes) moveRef(ctx context.Context, r *repository, by *account, ref, sha string) error {
	if err := r.git.setRef(ref, sha); err != nil {
		return err
	}
	return w.refsMoved(ctx, r, by)
}

type Commit struct {
	Branch  string
	Message string
	// Files are added or replaced; content that starts with "#!" is executable.
	Files  map[string]string
	Delete []string
	// From is the parent commit or branch. Empty means the branch itself, else the default branch. On an existing
	// branch, From forces the push.
	From string
}

// PushCommit pushes a commit and returns its id.
func (w pushes) PushCommit(ctx context.Context, repo, as string, c Commit) (string, error) {
	r, by, done, err := w.pusher(repo, as)
	if err != nil {
		return "", err
	}
	defer done()
	sha, err := w.writeCommit(ctx, r, by, c)
	if err != nil {
		return "", err
	}
	return sha, w.refsMoved(ctx, r, by)
}

// pusher takes the locks of a push: git's, then the world's.
func (w pushes) pusher(repo, as string) (*repository, *account, func(), error) {
	w.mu.Lock()
	r, errRepo := w.repo(repo)
	by, errBy := w.account(as)
	w.mu.Unlock()
	if err := errors.Join(errRepo, errBy); err != nil {
		return nil, nil, nil, err
	}
	r.pushing.Lock()
	done := w.act()
	return r, by, func() { done(); r.pushing.Unlock() }, nil
}

// writeCommit uses git fast-import, which needs no checkout.
func (w pushes) writeCommit(ctx context.Context, r *repository, by *account, c Commit) (string, error) {
	from := c.From
	if sha := r.branches[from]; sha != "" {
		from = sha
	}
	if from == "" {
		from = r.branches[c.Branch]
	}
	if from == "" {
		from = r.branches[r.defaultBranch]
	}
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit refs/heads/%s\nmark :1\ncommitter %s <%s> %d +0000\n", c.Branch, by.login, email(by), w.now().Unix())
	data(&in, c.Message)
	if from != "" {
		fmt.Fprintf(&in, "from %s\n", from)
	}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(c.Files)), c.Delete) {
		if strings.ContainsAny(path, "\"\n") {
			return "", fmt.Errorf("path %q: quotes and line breaks are not supported here", path)
		}
	}
	for _, path := range c.Delete {
		fmt.Fprintf(&in, "D %s\n", path)
	}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		mode := "100644"
		if strings.HasPrefix(c.Files[path], "#!") {
			mode = "100755"
		}
		fmt.Fprintf(&in, "M %s inline %s\n", mode, path)
		data(&in, c.Files[path])
	}
	in.WriteString("get-mark :1\n")
	sha, err := r.git.run(ctx, in.Bytes(), "fast-import", "--quiet", "--force")
	return strings.TrimSpace(string(sha)), err
}

func data(in *bytes.Buffer, text string) { fmt.Fprintf(in, "data %d\n%s\n", len(text), text) }

func (w pushes) DeleteBranch(ctx context.Context, repo, as, branch string) error {
	r, by, done, err := w.pusher(repo, as)
	if err != nil {
		return err
	}
	defer done()
	if r.branches[branch] == "" {
		return fmt.Errorf("no branch %s in %s", branch, repo)
	}
	return w.moveRef(ctx, r, by, "refs/heads/"+branch, "")
}

// ResetBranch force-pushes a branch to an existing commit.
func (w pushes) ResetBranch(ctx context.Context, repo, as, branch, sha string) error {
	r, by, done, err := w.pusher(repo, as)
	if err != nil {
		return err
	}
	defer done()
	return w.moveRef(ctx, r, by, "refs/heads/"+branch, sha)
}

// maxPushCommits: "The array includes a maximum of 2048 commits" (webhook events and payloads, push).
const maxPushCommits = 2048

// pushFields returns a push event's payload. It lists the commits that no other branch had before, oldest first, with
// changed files.
func (w pushes) pushFields(ctx context.Context, r *repository, p Push, by *account) (obj, error) {
	commits := []obj{}
	if p.After != noCommit {
		args := []string{fmt.Sprintf("--max-count=%d", maxPushCommits), p.After, "--not"}
		if p.Before != noCommit {
			args = append(args, p.Before)
		}
		for name, sha := range r.branches {
			if name != p.Branch && p.Before == noCommit {
				args = append(args, sha)
			}
		}
		list, err := r.git.log(ctx, args...)
		if err != nil {
			return nil, err
		}
		for _, c := range slices.Backward(list) {
			person := obj{"name": c.name, "email": c.email}
			commits = append(commits, obj{"id": c.sha, "tree_id": c.tree, "distinct": true, "message": c.message, "timestamp": c.committed,
				"url": w.webOf(r) + "/commit/" + c.sha, "author": person, "committer": person,
				"added": c.files("A"), "removed": c.files("D"), "modified": c.files("MT")})
		}
	}
	var head any
	if len(commits) > 0 {
		head = commits[len(commits)-1]
	}
	return obj{"ref": "refs/heads/" + p.Branch, "before": p.Before, "after": p.After, "created": p.Before == noCommit,
		"deleted": p.After == noCommit, "forced": p.Forced, "base_ref": nil, "commits": commits, "head_commit": head,
		"compare": fmt.Sprintf("%s/compare/%.12s...%.12s", w.webOf(r), p.Before, p.After),
		"pusher":  obj{"name": by.login, "email": email(by)}}, nil
}

func email(a *account) string {
	return fmt.Sprintf("%d+%s@users.noreply.github.com", a.id, strings.ToLower(a.login))
}
