package fakegithub

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// maxPushCommits is how many commits a push event lists ("The array includes a
// maximum of 2048 commits", webhook events and payloads, push).
const maxPushCommits = 2048

// pushFields is the payload of a push event; commits come oldest first.
func (s *Server) pushFields(ctx context.Context, r *repository, p Push, fresh []commitInfo, by *account) (obj, error) {
	known := []string{p.After, "--not"}
	for name, sha := range r.branches {
		if name != p.Branch {
			known = append(known, sha)
		}
	}
	commits := []obj{}
	var head any
	if p.After != noCommit {
		distinct, err := r.git.log(ctx, maxPushCommits, known...)
		if err != nil {
			return nil, err
		}
		tip, err := r.git.commit(ctx, p.After)
		if err != nil {
			return nil, err
		}
		for _, c := range slices.Backward(fresh) {
			body, err := s.renderPushCommit(ctx, r, c, by)
			if err != nil {
				return nil, err
			}
			body["distinct"] = slices.ContainsFunc(distinct, func(d commitInfo) bool { return d.sha == c.sha })
			commits = append(commits, body)
		}
		// A new branch on a known commit lists none, and still has a head.
		if head, err = s.renderPushCommit(ctx, r, tip, by); err != nil {
			return nil, err
		}
	}
	return obj{"ref": "refs/heads/" + p.Branch, "before": p.Before, "after": p.After, "created": p.Before == noCommit,
		"deleted": p.After == noCommit, "forced": p.Forced, "base_ref": nil, "commits": commits, "head_commit": head,
		"compare": fmt.Sprintf("%s/%s/compare/%.12s...%.12s", s.base, r.fullName(), p.Before, p.After),
		"pusher":  obj{"name": by.login, "email": email(by)}}, nil
}

func (s *Server) renderPushCommit(ctx context.Context, r *repository, c commitInfo, by *account) (obj, error) {
	person := obj{"name": c.name, "email": c.email}
	if c.email == email(by) {
		person["username"] = by.login
	}
	files, err := r.git.changes(ctx, c)
	if err != nil {
		return nil, err
	}
	return obj{"id": c.sha, "tree_id": c.tree, "distinct": true, "message": c.message, "timestamp": stamp(c.at),
		"url":    s.base + "/" + r.fullName() + "/commit/" + c.sha,
		"author": person, "committer": person, "added": files["A"], "removed": files["D"], "modified": files["M"]}, nil
}

// changes lists the files that a commit added (A), removed (D) and modified (M)
// against its first parent. A renamed file is one removed and one added.
func (b bare) changes(ctx context.Context, c commitInfo) (map[string][]string, error) {
	args := []string{"diff-tree", "-r", "-z", "--no-commit-id", "--name-status", "--no-renames", "--root", c.sha}
	if len(c.parents) > 0 {
		args = []string{"diff-tree", "-r", "-z", "--name-status", "--no-renames", c.parents[0], c.sha}
	}
	out, err := b.run(ctx, nil, args...)
	if err != nil {
		return nil, err
	}
	files := map[string][]string{"A": {}, "D": {}, "M": {}}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		kind := fields[i]
		if kind == "T" { // a file became a link or the other way round
			kind = "M"
		}
		files[kind] = append(files[kind], fields[i+1])
	}
	return files, nil
}

func email(a *account) string {
	return fmt.Sprintf("%d+%s@users.noreply.github.com", a.id, strings.ToLower(a.login))
}
