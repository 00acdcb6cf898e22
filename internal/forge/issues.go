package forge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy/feedback"
)

// Issues accesses issues, the issue side of pull requests, and comments.
type Issues struct{ client *Client }

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
	Closed      time.Time      `json:"closed_at"`
	ClosedBy    feedback.Actor `json:"closed_by"`                // if known
	PullRequest *struct{}      `json:"pull_request"`             // nil for an issue
	App         AppID          `json:"performed_via_github_app"` // author App, or zero
}

type AppID struct {
	ID   int64  `json:"id"`
	Slug string `json:"slug"`
}

func (i Issue) IsPull() bool { return i.PullRequest != nil }

func (s Issues) Get(ctx context.Context, repo Repo, number int) (issue Issue, err error) {
	_, err = s.client.on(ctx, repo, request{
		route: "/repos/{owner}/{repo}/issues/{number}",
		args:  []any{number},
		holds: []string{"number"},
	}, &issue)
	return issue, err
}

// reactionRoutes take an issue's number or a comment's id.
var reactionRoutes = map[string]string{
	"issue":          "/repos/{owner}/{repo}/issues/{number}/reactions",
	"issue_comment":  "/repos/{owner}/{repo}/issues/comments/{id}/reactions",
	"review_comment": "/repos/{owner}/{repo}/pulls/comments/{id}/reactions",
}

// Pawl's reactions: 👀 and 😕.
const (
	Eyes     = "eyes"
	Confused = "confused"
)

// React adds a reaction to an issue, an issue_comment or a review_comment. It is safe to repeat.
func (s Issues) React(ctx context.Context, repo Repo, on string, id int64, reaction string) error {
	_, err := s.client.on(ctx, repo, request{
		method: http.MethodPost, route: cmp.Or(reactionRoutes[on], reactionRoutes["issue_comment"]), args: []any{id},
		body: map[string]string{"content": reaction},
	}, nil)
	return err
}

// maxPages limits a search in pages of 100. GitHub allows 2,500 comments per issue.
const maxPages = 25

type Comment struct {
	ID      int64          `json:"id"`
	Author  feedback.Actor `json:"user"`
	App     AppID          `json:"performed_via_github_app"` // author App, or zero
	Body    string         `json:"body"`
	HTMLURL string         `json:"html_url"`
	Created time.Time      `json:"created_at"`
	Updated time.Time      `json:"updated_at"`
}

const commentsRoute = "/repos/{owner}/{repo}/issues/{number}/comments"

// CreateComment writes a comment with the marker. After a lost answer it looks for the marker first.
func (s Issues) CreateComment(ctx context.Context, repo Repo, number int, body, marker string) (made Comment, err error) {
	if marker == "" {
		return Comment{}, errors.New("create a comment: without a marker it could not be found again")
	}
	_, err = s.client.on(ctx, repo, request{
		method: http.MethodPost, route: commentsRoute, args: []any{number}, body: map[string]string{"body": withMarker(body, marker)},
		holds: []string{"id"},
		find: func(ctx context.Context) (found bool, err error) {
			made, found, err = s.FindComment(ctx, repo, number, marker)
			return found, err
		},
	}, &made)
	return made, err
}

// EditComment replaces a comment's body and keeps the marker. ErrNotFound means that the comment was deleted.
func (s Issues) EditComment(ctx context.Context, repo Repo, id int64, body, marker string) (edited Comment, err error) {
	_, err = s.client.on(ctx, repo, request{
		method: http.MethodPatch, route: "/repos/{owner}/{repo}/issues/comments/{id}", args: []any{id},
		body: map[string]string{"body": withMarker(body, marker)}, urgency: cosmetic, holds: []string{"id"},
	}, &edited)
	return edited, err
}

// FindComment returns the App's oldest comment with the marker. Copies by other authors do not count.
func (s Issues) FindComment(ctx context.Context, repo Repo, number int, marker string) (Comment, bool, error) {
	for page := 1; page != 0 && page <= maxPages; {
		var comments []Comment // oldest first
		next, err := s.client.page(ctx, repo, request{route: commentsRoute, args: []any{number}}, page, &comments)
		if err != nil {
			return Comment{}, false, err
		}
		for _, one := range comments {
			if !strings.Contains(one.Body, marker) {
				continue
			}
			if own, err := s.isOwn(ctx, one); own || err != nil {
				return one, own, err
			}
		}
		page = next
	}
	return Comment{}, false, nil
}

// isOwn reports whether a comment is the App's. It looks up the bot user only if the comment names no App.
func (s Issues) isOwn(ctx context.Context, one Comment) (bool, error) {
	if one.App.ID != 0 || !one.Author.Bot() {
		return one.App.ID == s.client.cfg.AppID, nil
	}
	app, err := s.client.Apps.Get(ctx)
	if err != nil {
		return false, err
	}
	if app.BotID == 0 {
		return one.Author.Login == app.BotLogin, nil
	}
	return one.Author.ID == app.BotID, nil
}

// maxPullTitle is GitHub's limit in characters.
const maxPullTitle = 256

// PullRequests accesses pull requests and reviews.
type PullRequests struct{ client *Client }

// Branch is one end of a pull request. A deleted fork has no repository.
type Branch struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	} `json:"repo"`
}

type Pull struct {
	Number    int            `json:"number"`
	Node      string         `json:"node_id"` // GraphQL id
	State     string         `json:"state"`   // open or closed; merged counts as closed
	CreatedAt time.Time      `json:"created_at"`
	MergedAt  time.Time      `json:"merged_at"`
	Author    feedback.Actor `json:"user"`
	Head      Branch         `json:"head"`
	Base      Branch         `json:"base"`
	HTMLURL   string         `json:"html_url"`
	// Mergeable is nil and MergeableState unknown in lists, and until GitHub computes them. dirty means conflicts;
	// behind means that a rule requires merging the base.
	Mergeable      *bool  `json:"mergeable"`
	MergeableState string `json:"mergeable_state"`
}

// computed reports whether the mergeability is known or does not matter.
func (p Pull) computed() bool { return p.Mergeable != nil || p.State != "open" }

func (p Pull) Merged() bool { return !p.MergedAt.IsZero() }

func (s PullRequests) Get(ctx context.Context, repo Repo, number int) (pull Pull, err error) {
	_, err = s.client.on(ctx, repo, request{
		route: "/repos/{owner}/{repo}/pulls/{number}",
		args:  []any{number},
		holds: []string{"number"},
		lags:  true,
	}, &pull)
	return pull, err
}

// mergeablePause is the wait before GetComputed reads a pull request again.
const mergeablePause = 3 * time.Second

// GetComputed is Get, but waits a few seconds while GitHub computes the mergeability. The result may still be unknown.
func (s PullRequests) GetComputed(ctx context.Context, repo Repo, number int) (pull Pull, err error) {
	for try := 0; ; try++ {
		pull, err = s.Get(ctx, repo, number)
		if err != nil {
			return pull, err
		}
		if pull.computed() || try == 2 {
			return pull, nil
		}
		if err := s.client.cfg.Sleep(ctx, mergeablePause); err != nil {
			return pull, err
		}
	}
}

const pullsRoute = "/repos/{owner}/{repo}/pulls"

// find returns the newest pull request from head to base that is open or was created since a time. Forks do not
// count, and GitHub ignores filters that it cannot parse, so the answer is checked.
func (s PullRequests) find(ctx context.Context, repo Repo, head, base string, since time.Time) (found Pull, ok bool, err error) {
	state := "open"
	if !since.IsZero() {
		state = "all"
	}
	var all []Pull
	_, err = s.client.page(ctx, repo, request{route: pullsRoute, query: url.Values{
		"state": {state}, "head": {repo.Owner + ":" + head}, "base": {base},
	}}, 1, &all)
	if err != nil {
		return Pull{}, false, err
	}
	for _, p := range all {
		wanted := p.Head.Ref == head && p.Base.Ref == base
		if !wanted || p.fromFork() {
			continue
		}
		if p.openOrSince(since) {
			return p, true, nil
		}
	}
	return Pull{}, false, nil
}

// fromFork reports whether the head is in another or a deleted repository.
func (p Pull) fromFork() bool {
	from := p.Head.Repo.FullName
	return from == "" || !strings.EqualFold(from, p.Base.Repo.FullName)
}

func (p Pull) openOrSince(since time.Time) bool {
	if p.State == "open" {
		return true
	}
	return !since.IsZero() && !p.CreatedAt.Before(since)
}

// NewPull describes a draft pull request from a branch of the same repository.
type NewPull struct {
	Title render.Title
	Body  string
	Head  string
	Base  string
	// Begun is the start of an earlier try. Create returns that try's pull request, even if closed.
	Begun time.Time
}

type OpenedPull struct {
	Pull
	// DraftRefused means that the repository's plan does not allow drafts.
	DraftRefused bool
}

// clockError is the allowed difference between GitHub's clock and ours.
const clockError = time.Minute

// Create opens a pull request or returns the existing open one.
func (s PullRequests) Create(ctx context.Context, repo Repo, p NewPull) (OpenedPull, error) {
	if !p.Begun.IsZero() {
		existing, ok, err := s.find(ctx, repo, p.Head, p.Base, p.Begun.Add(-clockError))
		if ok || err != nil {
			return OpenedPull{Pull: existing}, err
		}
	}
	opened, err := s.open(ctx, repo, p, true)
	if refusedWith(err, "draft pull requests are not supported") {
		opened, err = s.open(ctx, repo, p, false)
		opened.DraftRefused = err == nil
	}
	if !refusedWith(err, "a pull request already exists") {
		return opened, err
	}
	existing, ok, lookErr := s.find(ctx, repo, p.Head, p.Base, time.Time{})
	if ok || lookErr != nil {
		err = lookErr
	}
	return OpenedPull{Pull: existing}, err
}

func (s PullRequests) open(ctx context.Context, repo Repo, p NewPull, draft bool) (opened OpenedPull, err error) {
	_, err = s.client.on(ctx, repo, request{
		method: http.MethodPost, route: pullsRoute, holds: []string{"number"},
		body: map[string]any{
			"title": clipLine(p.Title.String(), maxPullTitle), "body": clip(p.Body, maxText), "head": p.Head, "base": p.Base, "draft": draft,
		},
		find: func(ctx context.Context) (found bool, err error) {
			opened.Pull, found, err = s.find(ctx, repo, p.Head, p.Base, time.Time{})
			return found, err
		},
	}, &opened.Pull)
	return opened, err
}

func refusedWith(err error, words string) bool {
	if !errors.Is(err, ErrInvalid) {
		return false
	}
	failed, ok := errors.AsType[*Error](err)
	return ok && strings.Contains(strings.ToLower(failed.Message), words)
}

// maxOpen limits the pages of 100 open pull requests, newest first.
const maxOpen = 3

// Into lists the open pull requests into a branch, newest first.
func (s PullRequests) Into(ctx context.Context, repo Repo, base string) ([]Pull, error) {
	return readPages[Pull](ctx, s.client, repo, maxOpen, request{
		route: pullsRoute,
		query: url.Values{"state": {"open"}, "base": {base}},
	})
}

// From lists the open pull requests of a branch of the repository. GitHub ignores filters that it cannot parse, so the
// answer is checked.
func (s PullRequests) From(ctx context.Context, repo Repo, head string) ([]Pull, error) {
	all, err := readPages[Pull](ctx, s.client, repo, maxOpen, request{
		route: pullsRoute,
		query: url.Values{"state": {"open"}, "head": {repo.Owner + ":" + head}},
	})
	return slices.DeleteFunc(all, func(p Pull) bool { return p.Head.Ref != head || p.fromFork() }), err
}

// Edit sets the description, and the title if given. It is safe to repeat.
func (s PullRequests) Edit(ctx context.Context, repo Repo, number int, title render.Title, body string) error {
	edit := map[string]string{"body": clip(body, maxText)}
	if title.String() != "" {
		edit["title"] = title.String()
	}
	_, err := s.client.on(ctx, repo, request{
		method: http.MethodPatch,
		route:  "/repos/{owner}/{repo}/issues/{number}",
		args:   []any{number},
		body:   edit,
	}, nil)
	return err
}

// Ready ends the draft state. It is safe to repeat.
func (s PullRequests) Ready(ctx context.Context, repo Repo, node string) error {
	const query = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
	return s.client.graph(ctx, repo, request{}, query, map[string]any{"id": node}, new(struct{}))
}

// RequestReview requests a review. ErrInvalid means that the user cannot review.
func (s PullRequests) RequestReview(ctx context.Context, repo Repo, number int, login string) error {
	_, err := s.client.on(ctx, repo, request{
		method: http.MethodPost,
		route:  pullsRoute + "/{number}/requested_reviewers",
		args:   []any{number},
		body:   map[string][]string{"reviewers": {login}},
	}, nil)
	return err
}

// Reply answers a review thread by the id of its first comment.
func (s PullRequests) Reply(ctx context.Context, repo Repo, number int, id int64, body string) error {
	_, err := s.client.on(ctx, repo, request{
		method: http.MethodPost,
		route:  pullsRoute + "/{number}/comments/{id}/replies",
		args:   []any{number, id},
		body:   map[string]string{"body": clip(body, maxText)},
	}, nil)
	return err
}

// Resolve resolves a review thread. It is safe to repeat.
func (s PullRequests) Resolve(ctx context.Context, repo Repo, node string) error {
	const query = "mutation($id:ID!){resolveReviewThread(input:{threadId:$id}){thread{isResolved}}}"
	return s.client.graph(ctx, repo, request{}, query, map[string]any{"id": node}, new(struct{}))
}

// React adds a reaction to a review by its node id. It is safe to repeat.
func (s PullRequests) React(ctx context.Context, repo Repo, node, reaction string) error {
	const query = "mutation($id:ID!,$content:ReactionContent!){addReaction(input:{subjectId:$id,content:$content}){reaction{content}}}"
	return s.client.graph(ctx, repo, request{}, query, map[string]any{"id": node, "content": strings.ToUpper(reaction)}, new(struct{}))
}

// maxText limits texts in bytes. GitHub accepts bodies of 65,536 characters and summaries of 65,535 bytes.
const maxText = 60_000

const more = "…"

// clip cuts a text to at most limit bytes between runes. It replaces invalid UTF-8 and removes NUL, which GitHub
// refuses.
func clip(body string, limit int) string {
	body = strings.ToValidUTF8(strings.ReplaceAll(body, "\x00", ""), "\uFFFD")
	if len(body) <= limit {
		return body
	}
	return render.Head(body, limit-len(more)) + more
}

// clipLine makes one line of at most limit runes.
func clipLine(s string, limit int) string {
	return render.Short(strings.Join(strings.Fields(clip(s, maxText)), " "), limit)
}

func withMarker(body, marker string) string {
	if clipped := clip(body, maxText); strings.Contains(clipped, marker) {
		return clipped
	}
	return clip(body, maxText-len(marker)-2) + "\n\n" + marker
}
