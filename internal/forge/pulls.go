package forge

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlbot/pawl/internal/text"
)

// Pulls changes pull requests that are open; its Client is required.
type Pulls struct{ *Client }

// maxOpen bounds the pages of open pull requests that are read, of 100 each: Pawl's own are mostly of the newest.
const maxOpen = 3

// Into lists the open pull requests into a branch, the newest first.
func (c Pulls) Into(ctx context.Context, repo Repo, base string) ([]Pull, error) {
	return readPages[Pull](ctx, c.Client, repo, maxOpen, request{route: pullsRoute, query: url.Values{"state": {"open"}, "base": {base}}})
}

// Edit sets the description, and the title where one is given. Doing it again is harmless.
func (c Pulls) Edit(ctx context.Context, repo Repo, number int, title text.Title, body string) error {
	edit := map[string]string{"body": clip(body, maxText)}
	if title.String() != "" {
		edit["title"] = title.String()
	}
	_, err := c.on(ctx, repo, request{method: http.MethodPatch, route: "/repos/{owner}/{repo}/issues/{number}", args: []any{number}, body: edit}, nil)
	return err
}

// Ready takes away that a pull request is a draft, by its node id; one that is none stays as it is.
func (c Pulls) Ready(ctx context.Context, repo Repo, node string) error {
	const query = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
	return graph(ctx, c.Client, repo, request{}, query, map[string]any{"id": node}, new(struct{}))
}

// RequestReview asks somebody for a review. ErrInvalid: they cannot review there.
func (c Pulls) RequestReview(ctx context.Context, repo Repo, number int, login string) error {
	_, err := c.on(ctx, repo, request{method: http.MethodPost, route: pullsRoute + "/{number}/requested_reviewers", args: []any{number}, body: map[string][]string{"reviewers": {login}}}, nil)
	return err
}

// Reply answers a remark on lines, by the id of the first one of its thread.
func (c Pulls) Reply(ctx context.Context, repo Repo, number int, id int64, body string) error {
	_, err := c.on(ctx, repo, request{method: http.MethodPost, route: pullsRoute + "/{number}/comments/{id}/replies", args: []any{number, id}, body: map[string]string{"body": clip(body, maxText)}}, nil)
	return err
}

// Resolve marks a thread of remarks as resolved, by its node id; one that is stays so.
func (c Pulls) Resolve(ctx context.Context, repo Repo, node string) error {
	const query = "mutation($id:ID!){resolveReviewThread(input:{threadId:$id}){thread{isResolved}}}"
	return graph(ctx, c.Client, repo, request{}, query, map[string]any{"id": node}, new(struct{}))
}

// React puts a reaction on a review, by its node id, which the REST API cannot. Repeating it changes nothing.
func (c Pulls) React(ctx context.Context, repo Repo, node, reaction string) error {
	const query = "mutation($id:ID!,$content:ReactionContent!){addReaction(input:{subjectId:$id,content:$content}){reaction{content}}}"
	return graph(ctx, c.Client, repo, request{}, query, map[string]any{"id": node, "content": strings.ToUpper(reaction)}, new(struct{}))
}
