package forge

import (
	"context"
	"net/http"
	"time"

	"github.com/google/go-github/v60/github"
)

// Actor is an account at GitHub. ID stays when the login changes.
type Actor struct {
	ID    int64
	Login string
	Bot   bool
}

func actor(u *github.User) Actor {
	return Actor{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}

// Issue is an issue or, with IsPull, the issue side of a pull request.
type Issue struct {
	Number int
	Title  string
	Body   string
	// State is open or closed.
	State   string
	Locked  bool
	IsPull  bool
	Author  Actor
	Labels  []string
	HTMLURL string
	Created time.Time
	Updated time.Time
	// Closed is when it was closed; zero while it is open.
	Closed time.Time
}

// Issue reads one issue or pull request.
func (c *Client) Issue(ctx context.Context, repo Repo, number int) (Issue, error) {
	var issue Issue
	err := c.on(ctx, repo, request{method: http.MethodGet, route: "/repos/{owner}/{repo}/issues/{number}", send: func(ctx context.Context, gh *github.Client) error {
		got, _, err := gh.Issues.Get(ctx, repo.Owner, repo.Name, number)
		if err == nil && got.GetNumber() == 0 {
			return errEmptyAnswer
		}
		issue = Issue{
			Number: got.GetNumber(), Title: got.GetTitle(), Body: got.GetBody(), State: got.GetState(), Locked: got.GetLocked(),
			IsPull: got != nil && got.IsPullRequest(), Author: actor(got.GetUser()), HTMLURL: got.GetHTMLURL(),
			Created: got.GetCreatedAt().Time, Updated: got.GetUpdatedAt().Time, Closed: got.GetClosedAt().Time,
		}
		if got != nil {
			for _, label := range got.Labels {
				issue.Labels = append(issue.Labels, label.GetName())
			}
		}
		return err
	}})
	return issue, err
}

// Target is what a reaction is put on.
type Target string

// The targets of React; for OnIssue the id is the issue's or pull request's
// number, otherwise the comment's id.
const (
	OnIssue         Target = "issue"
	OnIssueComment  Target = "issue_comment"
	OnReviewComment Target = "review_comment"
)

// React puts a reaction such as "eyes" on something. Putting it there again
// changes nothing at GitHub, so it may be repeated.
func (c *Client) React(ctx context.Context, repo Repo, on Target, id int64, content string) error {
	r := request{method: http.MethodPost, urgency: acknowledges}
	switch on {
	case OnIssue:
		r.route = "/repos/{owner}/{repo}/issues/{number}/reactions"
		r.send = func(ctx context.Context, gh *github.Client) error {
			_, _, err := gh.Reactions.CreateIssueReaction(ctx, repo.Owner, repo.Name, int(id), content)
			return err
		}
	case OnReviewComment:
		r.route = "/repos/{owner}/{repo}/pulls/comments/{id}/reactions"
		r.send = func(ctx context.Context, gh *github.Client) error {
			_, _, err := gh.Reactions.CreatePullRequestCommentReaction(ctx, repo.Owner, repo.Name, id, content)
			return err
		}
	default:
		r.route = "/repos/{owner}/{repo}/issues/comments/{id}/reactions"
		r.send = func(ctx context.Context, gh *github.Client) error {
			_, _, err := gh.Reactions.CreateIssueCommentReaction(ctx, repo.Owner, repo.Name, id, content)
			return err
		}
	}
	return c.on(ctx, repo, r)
}
