package forge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// maxPullTitle is the longest title in characters that GitHub takes.
const maxPullTitle = 256

// Branch is one end of a pull request. Repo and RepoID are empty when the
// repository (a fork) was deleted.
type Branch struct {
	Ref    string
	SHA    string
	Repo   string
	RepoID int64
}

// Pull is a pull request.
type Pull struct {
	Number int
	Title  string
	Body   string
	// State is open or closed; a merged pull request is closed.
	State               string
	Draft               bool
	Merged              bool
	MaintainerCanModify bool
	Author              Actor
	Head                Branch
	Base                Branch
	HTMLURL             string
	Updated             time.Time
}

func pull(p *github.PullRequest) Pull {
	return Pull{
		Number: p.GetNumber(), Title: p.GetTitle(), Body: p.GetBody(), State: p.GetState(), Draft: p.GetDraft(),
		Merged: p.GetMerged() || p.GetMergedAt().Time != time.Time{}, MaintainerCanModify: p.GetMaintainerCanModify(),
		Author: actor(p.GetUser()), Head: branch(p.GetHead()), Base: branch(p.GetBase()),
		HTMLURL: p.GetHTMLURL(), Updated: p.GetUpdatedAt().Time,
	}
}

func branch(b *github.PullRequestBranch) Branch {
	return Branch{Ref: b.GetRef(), SHA: b.GetSHA(), Repo: b.GetRepo().GetFullName(), RepoID: b.GetRepo().GetID()}
}

// Pull reads one pull request.
func (c *Client) Pull(ctx context.Context, repo Repo, number int) (Pull, error) {
	var found Pull
	err := c.on(ctx, repo, request{method: http.MethodGet, route: "/repos/{owner}/{repo}/pulls/{number}", send: func(ctx context.Context, gh *github.Client) error {
		got, _, err := gh.PullRequests.Get(ctx, repo.Owner, repo.Name, number)
		if err == nil && got.GetNumber() == 0 {
			return errEmptyAnswer
		}
		found = pull(got)
		return err
	}})
	return found, err
}

// PullByHead returns the open pull request from a branch of the repository
// itself. A fork's branch of the same name does not count.
func (c *Client) PullByHead(ctx context.Context, repo Repo, branch string) (Pull, bool, error) {
	return c.openPull(ctx, repo, branch, "")
}

// openPull finds the open pull request from head to base; an empty base means
// any. The answer is checked again because GitHub ignores a head filter it
// cannot read and lists everything.
func (c *Client) openPull(ctx context.Context, repo Repo, head, base string) (found Pull, ok bool, err error) {
	err = c.on(ctx, repo, request{method: http.MethodGet, route: "/repos/{owner}/{repo}/pulls", send: func(ctx context.Context, gh *github.Client) error {
		all, _, err := gh.PullRequests.List(ctx, repo.Owner, repo.Name, &github.PullRequestListOptions{
			State: "open", Head: repo.Owner + ":" + head, Base: base, ListOptions: github.ListOptions{PerPage: pageSize},
		})
		if err != nil {
			return err
		}
		for _, one := range all {
			p := pull(one)
			own := strings.EqualFold(p.Head.Repo, one.GetBase().GetRepo().GetFullName())
			if own && p.State == "open" && p.Head.Ref == head && (base == "" || p.Base.Ref == base) {
				found, ok = p, true
				return nil
			}
		}
		return nil
	}})
	return found, ok, err
}

// NewPull is a pull request to open from branch Head of the repository itself.
type NewPull struct {
	Title string
	Body  string
	Head  string
	Base  string
	Draft bool
}

// OpenedPull is what CreatePull came to.
type OpenedPull struct {
	Pull
	// Existed: there was an open one from the same head to the same base.
	Existed bool
	// DraftRefused: the repository's plan has no drafts, so it is not one.
	DraftRefused bool
}

// CreatePull opens a pull request, or returns the open one from the same head
// to the same base. When GitHub's answer is lost, head and base tell whether
// it is there, so that it is not opened twice.
func (c *Client) CreatePull(ctx context.Context, repo Repo, p NewPull) (OpenedPull, error) {
	opened, err := c.openNew(ctx, repo, p)
	if refusedWith(err, "draft pull requests are not supported") && p.Draft {
		p.Draft = false
		opened, err = c.openNew(ctx, repo, p)
		opened.DraftRefused = err == nil
	}
	if !refusedWith(err, "a pull request already exists") {
		return opened, err
	}
	existing, ok, lookErr := c.openPull(ctx, repo, p.Head, p.Base)
	if lookErr != nil {
		return OpenedPull{}, lookErr
	}
	if !ok {
		return OpenedPull{}, err
	}
	return OpenedPull{Pull: existing, Existed: true}, nil
}

func (c *Client) openNew(ctx context.Context, repo Repo, p NewPull) (OpenedPull, error) {
	var opened OpenedPull
	body := &github.NewPullRequest{
		Title: github.String(clipLine(p.Title, maxPullTitle)), Body: github.String(Clip(p.Body, MaxText)),
		Head: github.String(p.Head), Base: github.String(p.Base), Draft: github.Bool(p.Draft),
	}
	err := c.on(ctx, repo, request{
		method: http.MethodPost, route: "/repos/{owner}/{repo}/pulls",
		send: func(ctx context.Context, gh *github.Client) error {
			got, _, err := gh.PullRequests.Create(ctx, repo.Owner, repo.Name, body)
			if err == nil && got.GetNumber() == 0 {
				return errEmptyAnswer
			}
			if err == nil {
				opened.Pull = pull(got)
			}
			return err
		},
		done: func(ctx context.Context) (found bool, err error) {
			opened.Pull, found, err = c.openPull(ctx, repo, p.Head, p.Base)
			return found, err
		},
	})
	return opened, err
}

// refusedWith says whether GitHub refused the content with a message that
// holds the given lower-case words.
func refusedWith(err error, words string) bool {
	var failed *Error
	return errors.Is(err, ErrInvalid) && errors.As(err, &failed) && strings.Contains(strings.ToLower(failed.Message), words)
}
