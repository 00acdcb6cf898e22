package forge

import (
	"context"
	"net/url"
	"time"

	"github.com/pawlbot/pawl/policy/feedback"
)

// Backlog reads issues by their label. Nobody waits for its requests.
type Backlog struct{ *Client }

// Labelled reads one page of the open issues and pull requests with a label, those opened longest ago first; page 1
// begins, next is zero after the last.
func (c Backlog) Labelled(ctx context.Context, repo Repo, label string, page int) (list []Issue, next int, err error) {
	next, err = c.page(ctx, repo, request{route: "/repos/{owner}/{repo}/issues", urgency: background, query: url.Values{
		"state": {"open"}, "labels": {label}, "sort": {"created"}, "direction": {"asc"},
	}}, page, &list)
	return list, next, err
}

// IssueEvent is something that somebody did to an issue, such as labeled or renamed.
type IssueEvent struct {
	ID    int64          `json:"id"`
	Event string         `json:"event"`
	Actor feedback.Actor `json:"actor"` // zero for an account that is gone
	App   AppID          `json:"performed_via_github_app"`
	At    time.Time      `json:"created_at"`
	Label struct {
		Name string `json:"name"`
	} `json:"label"`
}

// Events lists what was done to an issue, oldest first, the first thousand.
func (c Backlog) Events(ctx context.Context, repo Repo, number int) ([]IssueEvent, error) {
	return readPages[IssueEvent](ctx, c.Client, repo, maxChangedPages, request{route: "/repos/{owner}/{repo}/issues/{number}/events", args: []any{number}, urgency: background})
}
