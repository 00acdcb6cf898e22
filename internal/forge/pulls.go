package forge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxPullTitle is the longest title in characters that GitHub takes.
const maxPullTitle = 256

// Branch is one end of a pull request. Its repository is empty when that fork was deleted.
type Branch struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	} `json:"repo"`
}

// Pull is a pull request.
type Pull struct {
	Number    int       `json:"number"`
	State     string    `json:"state"` // open or closed; a merged pull request is closed
	CreatedAt time.Time `json:"created_at"`
	MergedAt  time.Time `json:"merged_at"`
	Head      Branch    `json:"head"`
	Base      Branch    `json:"base"`
	HTMLURL   string    `json:"html_url"`
}

// Merged says whether it was merged.
func (p Pull) Merged() bool { return !p.MergedAt.IsZero() }

// Pull reads one pull request.
func (c *Client) Pull(ctx context.Context, repo Repo, number int) (pull Pull, err error) {
	_, err = c.on(ctx, repo, request{route: "/repos/{owner}/{repo}/pulls/{number}", args: []any{number}, holds: []string{"number"}}, &pull)
	return pull, err
}

// pullsRoute are the pull requests of a repository.
const pullsRoute = "/repos/{owner}/{repo}/pulls"

// findPull finds the newest pull request from head to base in the repository itself that is open, or
// was created since a time: a fork's branch of the same name does not count. GitHub ignores a head
// filter that it cannot read, so its answer is checked.
func (c *Client) findPull(ctx context.Context, repo Repo, head, base string, since time.Time) (found Pull, ok bool, err error) {
	state := "open"
	if !since.IsZero() {
		state = "all"
	}
	var all []Pull
	_, err = c.page(ctx, repo, request{route: pullsRoute, query: url.Values{
		"state": {state}, "head": {repo.Owner + ":" + head}, "base": {base},
	}}, 1, &all)
	for _, p := range all {
		own := p.Head.Repo.FullName != "" && strings.EqualFold(p.Head.Repo.FullName, p.Base.Repo.FullName)
		wanted := p.State == "open" || !since.IsZero() && !p.CreatedAt.Before(since)
		if err == nil && own && wanted && p.Head.Ref == head && p.Base.Ref == base {
			return p, true, nil
		}
	}
	return Pull{}, false, err
}

// NewPull is a draft pull request to open from branch Head of the repository itself.
type NewPull struct {
	Title string
	Body  string
	Head  string
	Base  string
	// Begun is when an earlier try began whose end is unknown; what it opened is returned, also where
	// it was closed.
	Begun time.Time
}

// OpenedPull is what CreatePull came to.
type OpenedPull struct {
	Pull
	// DraftRefused: the repository's plan has no drafts, so it is not one.
	DraftRefused bool
}

// clockError is how far GitHub's clock may be from the one that dated an earlier try.
const clockError = time.Minute

// CreatePull opens a pull request, or returns the open one from the same head to the same base, by
// which one whose answer was lost is found.
func (c *Client) CreatePull(ctx context.Context, repo Repo, p NewPull) (OpenedPull, error) {
	if !p.Begun.IsZero() {
		existing, ok, err := c.findPull(ctx, repo, p.Head, p.Base, p.Begun.Add(-clockError))
		if ok || err != nil {
			return OpenedPull{Pull: existing}, err
		}
	}
	opened, err := c.openNew(ctx, repo, p, true)
	if refusedWith(err, "draft pull requests are not supported") {
		opened, err = c.openNew(ctx, repo, p, false)
		opened.DraftRefused = err == nil
	}
	if !refusedWith(err, "a pull request already exists") {
		return opened, err
	}
	existing, ok, lookErr := c.findPull(ctx, repo, p.Head, p.Base, time.Time{})
	if ok || lookErr != nil {
		err = lookErr
	}
	return OpenedPull{Pull: existing}, err
}

func (c *Client) openNew(ctx context.Context, repo Repo, p NewPull, draft bool) (opened OpenedPull, err error) {
	_, err = c.on(ctx, repo, request{
		method: http.MethodPost, route: pullsRoute, holds: []string{"number"},
		body: map[string]any{
			"title": clipLine(p.Title, maxPullTitle), "body": clip(p.Body, maxText), "head": p.Head, "base": p.Base, "draft": draft,
		},
		find: func(ctx context.Context) (found bool, err error) {
			opened.Pull, found, err = c.findPull(ctx, repo, p.Head, p.Base, time.Time{})
			return found, err
		},
	}, &opened.Pull)
	return opened, err
}

// refusedWith says whether GitHub refused the content with a message that holds lower-case words.
func refusedWith(err error, words string) bool {
	failed, ok := errors.AsType[*Error](err)
	return ok && errors.Is(err, ErrInvalid) && strings.Contains(strings.ToLower(failed.Message), words)
}
