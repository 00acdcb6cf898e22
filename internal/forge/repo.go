package forge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v60/github"
)

// RepoInfo is what Pawl wants to know of a repository.
type RepoInfo struct {
	ID            int64
	Owner         string
	Name          string
	DefaultBranch string
	Private       bool
	Archived      bool
	// Renamed says that the repository was asked for under an old name; Owner
	// and Name are the new ones.
	Renamed bool
}

// RepoInfo reads the repository, following a rename.
func (c *Client) RepoInfo(ctx context.Context, repo Repo) (RepoInfo, error) {
	var info RepoInfo
	err := c.do(ctx, request{method: http.MethodGet, route: "/repos/{owner}/{repo}", repo: repo, send: func(ctx context.Context, gh *github.Client) error {
		got, _, err := gh.Repositories.Get(ctx, repo.Owner, repo.Name)
		if err == nil && got.GetID() == 0 {
			return errEmptyAnswer
		}
		info = RepoInfo{
			ID: got.GetID(), Owner: got.GetOwner().GetLogin(), Name: got.GetName(), DefaultBranch: got.GetDefaultBranch(),
			Private: got.GetPrivate(), Archived: got.GetArchived(),
		}
		info.Renamed = !strings.EqualFold(info.Owner+"/"+info.Name, repo.FullName())
		return err
	}})
	return info, err
}

// on does a request on a repository. When GitHub answers that it has moved,
// the error says under which name it is now.
func (c *Client) on(ctx context.Context, repo Repo, r request) error {
	if err := repo.check(); err != nil {
		return err
	}
	r.repo = repo
	err := c.do(ctx, r)
	var moved *Moved
	if !errors.As(err, &moved) {
		return err
	}
	if info, lookErr := c.RepoInfo(ctx, repo); lookErr == nil && info.Renamed {
		moved.To = info.Owner + "/" + info.Name
	}
	return err
}

// Permission returns the level a person has on the repository: admin,
// maintain, write, triage, read or none. A custom role counts as the level it
// is based on; a login that GitHub does not know as a user has none.
func (c *Client) Permission(ctx context.Context, repo Repo, login string) (string, error) {
	var got struct {
		Permission string `json:"permission"`
		RoleName   string `json:"role_name"`
	}
	path := "repos/" + repo.FullName() + "/collaborators/" + url.PathEscape(login) + "/permission"
	err := c.on(ctx, repo, request{
		method: http.MethodGet, route: "/repos/{owner}/{repo}/collaborators/{login}/permission",
		send: func(ctx context.Context, gh *github.Client) error {
			req, err := gh.NewRequest(http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			_, err = gh.Do(ctx, req, &got)
			return err
		},
	})
	var failed *Error
	if errors.As(err, &failed) && failed.Status == http.StatusNotFound && strings.Contains(failed.Message, "is not a user") {
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
