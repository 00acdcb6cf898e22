package fakegithub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Push is one change of one branch. Before or After is 40 zeros when the branch
// was created or deleted; Forced says that After does not contain Before.
type Push struct {
	Branch string
	Before string
	After  string
	Forced bool
	By     string
	At     time.Time
}

const noCommit = "0000000000000000000000000000000000000000"

// refsMoved compares the repository on disk with what is remembered and does
// what GitHub does after a push, branch by branch.
func (s *Server) refsMoved(ctx context.Context, r *repository, by *account) error {
	now, err := r.git.refs(ctx)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for name := range r.branches {
		names[name] = true
	}
	for name := range now {
		names[name] = true
	}
	before := r.branches
	r.branches = now
	if len(before) == 0 && len(now) > 0 && now[r.defaultBranch] == "" { // the first branch becomes the default one
		r.defaultBranch = slices.Min(slices.Collect(maps.Keys(now)))
		if _, err := r.git.run(ctx, nil, "symbolic-ref", "HEAD", "refs/heads/"+r.defaultBranch); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] == now[name] {
			continue
		}
		if err := s.branchMoved(ctx, r, name, before[name], now[name], by); err != nil {
			return err
		}
	}
	return nil
}

// branchMoved records one push, sends its events and moves the pull requests
// whose head it is.
func (s *Server) branchMoved(ctx context.Context, r *repository, name, before, after string, by *account) error {
	r.pushed = s.now()
	p := Push{Branch: name, Before: orZero(before), After: orZero(after), By: by.login, At: s.now()}
	var fresh []commitInfo
	var err error
	switch {
	case after == "":
	case before == "":
		others := []string{after, "--not"}
		for other, sha := range r.branches {
			if other != name {
				others = append(others, sha)
			}
		}
		fresh, err = r.git.log(ctx, maxPushCommits, others...)
	default:
		if _, notAncestor := r.git.run(ctx, nil, "merge-base", "--is-ancestor", before, after); notAncestor != nil {
			p.Forced = true
		}
		fresh, err = r.git.log(ctx, maxPushCommits, after, "^"+before)
	}
	if err != nil {
		return err
	}
	r.pushes = append(r.pushes, p)
	if s.world.installationOf(r) != nil {
		fields, err := s.pushFields(ctx, r, p, fresh, by)
		if err != nil {
			return err
		}
		s.emit("push", r, by, fields)
	}
	switch {
	case before == "":
		s.emit("create", r, by, obj{"ref": name, "ref_type": "branch", "master_branch": r.defaultBranch, "description": nil, "pusher_type": "user"})
	case after == "":
		s.emit("delete", r, by, obj{"ref": name, "ref_type": "branch", "pusher_type": "user"})
	}
	return s.moveHeads(ctx, r, p, by)
}

// moveHeads follows a push in the open pull requests of that branch, as head or
// as base; when the head is gone they are closed.
func (s *Server) moveHeads(ctx context.Context, r *repository, p Push, by *account) error {
	for _, t := range r.threads {
		if t.pull != nil && t.state == "open" && t.pull.baseRef == p.Branch && p.After != noCommit {
			if err := s.measure(ctx, r, t); err != nil {
				return err
			}
		}
	}
	bases := []*repository{r}
	if r.parent != nil && !r.parent.deleted {
		bases = append(bases, r.parent)
	}
	for _, base := range bases {
		for _, t := range base.threads {
			if t.pull == nil || t.state != "open" || t.pull.from != r || t.pull.headRef != p.Branch {
				continue
			}
			if err := s.moveHead(ctx, base, t, p, by); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveHead follows a push to the head of one pull request of r.
func (s *Server) moveHead(ctx context.Context, r *repository, t *thread, p Push, by *account) error {
	if p.After == noCommit {
		s.setState(r, t, "closed", "", by)
		return nil
	}
	t.updated, t.pull.headSHA = s.now(), p.After
	if err := r.bring(ctx, t.pull.from, p.After); err != nil {
		return err
	}
	if err := s.measure(ctx, r, t); err != nil {
		return err
	}
	s.emitThread(r, t, "synchronize", by, obj{"before": p.Before, "after": p.After})
	return nil
}

// measure writes refs/pull/<n>/head, which outlives the branch, and compares the
// pull request with its base.
func (s *Server) measure(ctx context.Context, r *repository, t *thread) error {
	ref := fmt.Sprintf("refs/pull/%d/head", t.number)
	if _, err := r.git.run(ctx, nil, "update-ref", ref, t.pull.headSHA); err != nil {
		return err
	}
	diff, err := r.compare(ctx, r.branches[t.pull.baseRef], t.pull.headSHA)
	t.pull.diff = diff
	return err
}

// moveRef sets or, with an empty commit, deletes a ref and follows it up.
func (s *Server) moveRef(ctx context.Context, r *repository, by *account, ref, sha string) error {
	args := []string{"update-ref", ref, sha}
	if sha == "" {
		args = []string{"update-ref", "-d", ref}
	}
	if _, err := r.git.run(ctx, nil, args...); err != nil {
		return err
	}
	return s.refsMoved(ctx, r, by)
}

func orZero(sha string) string {
	if sha == "" {
		return noCommit
	}
	return sha
}
