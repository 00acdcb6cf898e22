package forge

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"
)

// RepoInfo is what Pawl wants to know of a repository.
type RepoInfo struct {
	ID            int64  `json:"id"`
	FullName      string `json:"full_name"` // the new one of a repository that was asked for under an old name
	DefaultBranch string `json:"default_branch"`
}

// RepoInfo reads the repository, following a rename.
func (c *Client) RepoInfo(ctx context.Context, repo Repo) (info RepoInfo, err error) {
	_, err = c.do(ctx, request{route: "/repos/{owner}/{repo}", repo: repo, holds: []string{"id"}}, &info)
	return info, err
}

// on does a request on a repository. When that has moved, the error says to which name.
func (c *Client) on(ctx context.Context, repo Repo, r request, into any) (*github.Response, error) {
	if err := repo.validate(); err != nil {
		return nil, err
	}
	r.repo = repo
	resp, err := c.do(ctx, r, into)
	if moved, ok := errors.AsType[*Moved](err); ok {
		if info, err := c.RepoInfo(ctx, repo); err == nil && !strings.EqualFold(info.FullName, repo.FullName()) {
			moved.To = info.FullName
		}
	}
	return resp, err
}

// Permission returns a person's level: admin, maintain, write, triage, read or none. A custom role
// counts as the level it is based on.
func (c *Client) Permission(ctx context.Context, repo Repo, login string) (string, error) {
	var got struct {
		Permission string `json:"permission"`
		RoleName   string `json:"role_name"`
	}
	_, err := c.on(ctx, repo, request{route: "/repos/{owner}/{repo}/collaborators/{login}/permission", args: []any{login}}, &got)
	failed, ok := errors.AsType[*Error](err)
	if ok && failed.Status == http.StatusNotFound && strings.Contains(failed.Message, "is not a user") {
		return "none", nil
	}
	if err != nil {
		return "none", err
	}
	switch got.RoleName {
	case "admin", "maintain", "write", "triage", "read":
		return got.RoleName, nil
	}
	switch got.Permission {
	case "admin", "write", "read":
		return got.Permission, nil
	}
	return "none", nil
}
