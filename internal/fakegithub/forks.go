package fakegithub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fork copies a repository to a person's account, where the App is not
// installed, and returns the name of the copy, "login/name". Pull requests to
// the original come from "login:branch".
func (s *Server) Fork(ctx context.Context, repo, as string) (string, error) {
	r, by, done, err := s.pusher(repo, as)
	if err != nil {
		return "", err
	}
	defer done()
	full := by.login + "/" + r.name
	if s.world.repos[strings.ToLower(full)] != nil {
		return "", fmt.Errorf("the repository %q exists already", full)
	}
	fork := s.newRepository(by, r.name)
	fork.parent, fork.public, fork.defaultBranch = r, r.public, r.defaultBranch
	if err := fork.git.create(ctx, r.defaultBranch); err != nil {
		return "", err
	}
	if _, err := fork.git.run(ctx, nil, "fetch", "--quiet", "--no-write-fetch-head", r.git.dir, "+refs/heads/*:refs/heads/*"); err != nil {
		return "", err
	}
	fork.branches = maps.Clone(r.branches)
	s.world.repos[strings.ToLower(full)] = fork
	return full, nil
}

// forksOf lists the forks of a repository that exist.
func (w *world) forksOf(r *repository) []*repository {
	var list []*repository
	for _, other := range w.repos {
		if other.parent == r && !other.deleted && !slices.Contains(list, other) { // a renamed one is there twice
			list = append(list, other)
		}
	}
	return list
}

// headOf finds what the head of a new pull request names, "branch" or
// "owner:branch": the repository, nil if there is none, and the branch.
func (w *world) headOf(r *repository, head string) (*repository, string) {
	owner, branch, isLabel := strings.Cut(head, ":")
	if !isLabel {
		return r, head
	}
	if strings.EqualFold(owner, r.owner.login) {
		return r, branch
	}
	for _, fork := range w.forksOf(r) {
		if strings.EqualFold(owner, fork.owner.login) {
			return fork, branch
		}
	}
	return nil, branch
}

// bring copies a commit from a fork, as GitHub's forks share their objects.
func (r *repository) bring(ctx context.Context, from *repository, sha string) error {
	if from == r {
		return nil
	}
	_, err := r.git.run(ctx, nil, "fetch", "--quiet", "--no-write-fetch-head", from.git.dir, sha)
	return err
}

// headGone says why a pull request cannot be opened again, empty if it can.
func (p *pull) headGone() string {
	switch {
	case p.from.deleted:
		return "The repository that submitted this pull request has been deleted."
	case p.from.branches[p.headRef] == "":
		return "The " + p.headRef + " branch has been deleted."
	}
	return ""
}

// MakePublic makes a repository public: everybody reads it, also without
// credentials.
func (s *Server) MakePublic(repo string) error {
	defer s.act()()
	r, err := s.world.repo(repo)
	if err != nil || r.public {
		return err
	}
	r.public = true
	s.emit("repository", r, r.owner, obj{"action": "publicized"})
	return nil
}
