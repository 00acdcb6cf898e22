package forge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy/feedback"
)

// Issue is an issue or the issue side of a pull request.
type Issue struct {
	Number      int            `json:"number"`
	Title       string         `json:"title"`
	Body        string         `json:"body"`
	State       string         `json:"state"` // open or closed
	Author      feedback.Actor `json:"user"`
	HTMLURL     string         `json:"html_url"`
	Created     time.Time      `json:"created_at"`
	Updated     time.Time      `json:"updated_at"`
	Closed      time.Time      `json:"closed_at"`                // when it was closed
	ClosedBy    feedback.Actor `json:"closed_by"`                // as far as GitHub says
	PullRequest *struct{}      `json:"pull_request"`             // nil for an issue that is none
	App         AppID          `json:"performed_via_github_app"` // the App through which it was written; its ID is zero for none
}

// AppID names an App.
type AppID struct {
	ID int64 `json:"id"`
}

// IsPull says whether it is a pull request.
func (i Issue) IsPull() bool { return i.PullRequest != nil }

// Issue reads one issue or pull request.
func (c *Client) Issue(ctx context.Context, repo Repo, number int) (issue Issue, err error) {
	_, err = c.on(ctx, repo, request{route: "/repos/{owner}/{repo}/issues/{number}", args: []any{number}, holds: []string{"number"}}, &issue)
	return issue, err
}

// reactionRoutes are where a reaction is put: on an issue or pull request by its number, on a comment
// by its id.
var reactionRoutes = map[string]string{
	"issue":          "/repos/{owner}/{repo}/issues/{number}/reactions",
	"issue_comment":  "/repos/{owner}/{repo}/issues/comments/{id}/reactions",
	"review_comment": "/repos/{owner}/{repo}/pulls/comments/{id}/reactions",
}

// React puts 👀 on an issue, an issue_comment or a review_comment. Repeating it changes nothing.
func (c *Client) React(ctx context.Context, repo Repo, on string, id int64) error {
	_, err := c.on(ctx, repo, request{
		method: http.MethodPost, route: cmp.Or(reactionRoutes[on], reactionRoutes["issue_comment"]), args: []any{id},
		body: map[string]string{"content": "eyes"},
	}, nil)
	return err
}

// maxPages bounds the search for a comment: GitHub takes 2,500 on an issue.
const maxPages = 25

// Comment is a comment on an issue or in a pull request's conversation.
type Comment struct {
	ID      int64          `json:"id"`
	Author  feedback.Actor `json:"user"`
	App     AppID          `json:"performed_via_github_app"` // the App through which it was written; its ID is zero for none
	Body    string         `json:"body"`
	HTMLURL string         `json:"html_url"`
	Created time.Time      `json:"created_at"`
	Updated time.Time      `json:"updated_at"`
}

// commentsRoute are the comments on an issue or in a pull request's conversation.
const commentsRoute = "/repos/{owner}/{repo}/issues/{number}/comments"

// CreateComment writes a comment that holds the marker, which is added at the end where the body lacks
// it. By the marker one whose answer was lost is found, so that it is not written twice.
func (c *Client) CreateComment(ctx context.Context, repo Repo, number int, body, marker string) (made Comment, err error) {
	if marker == "" {
		return Comment{}, errors.New("create a comment: without a marker it could not be found again")
	}
	_, err = c.on(ctx, repo, request{
		method: http.MethodPost, route: commentsRoute, args: []any{number}, body: map[string]string{"body": withMarker(body, marker)},
		holds: []string{"id"},
		find: func(ctx context.Context) (found bool, err error) {
			made, found, err = c.FindComment(ctx, repo, number, marker)
			return found, err
		},
	}, &made)
	return made, err
}

// EditComment replaces a comment's body; the marker stays in it. ErrNotFound: somebody deleted it.
func (c *Client) EditComment(ctx context.Context, repo Repo, id int64, body, marker string) (edited Comment, err error) {
	_, err = c.on(ctx, repo, request{
		method: http.MethodPatch, route: "/repos/{owner}/{repo}/issues/comments/{id}", args: []any{id},
		body: map[string]string{"body": withMarker(body, marker)}, urgency: cosmetic, holds: []string{"id"},
	}, &edited)
	return edited, err
}

// FindComment returns the oldest comment that holds the marker and is by the App itself: anybody can
// copy a marker.
func (c *Client) FindComment(ctx context.Context, repo Repo, number int, marker string) (Comment, bool, error) {
	for page := 1; page != 0 && page <= maxPages; {
		var comments []Comment // oldest first
		next, err := c.page(ctx, repo, request{route: commentsRoute, args: []any{number}}, page, &comments)
		if err != nil {
			return Comment{}, false, err
		}
		for _, one := range comments {
			if !strings.Contains(one.Body, marker) {
				continue
			}
			if own, err := c.isOwn(ctx, one); own || err != nil {
				return one, own, err
			}
		}
		page = next
	}
	return Comment{}, false, nil
}

// isOwn says whether a comment is by the App. The App's own user is looked up only for a bot's comment
// that names no App.
func (c *Client) isOwn(ctx context.Context, one Comment) (bool, error) {
	if one.App.ID != 0 || !one.Author.Bot() {
		return one.App.ID == c.appID, nil
	}
	app, err := c.App(ctx)
	if err == nil && app.BotID == 0 {
		return one.Author.Login == app.BotLogin, nil
	}
	return err == nil && one.Author.ID == app.BotID, err
}
