package forge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy/feedback"
)

// Issues reads and writes issues, the issue side of pull requests, and their comments.
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
	Closed      time.Time      `json:"closed_at"`                // when it was closed
	ClosedBy    feedback.Actor `json:"closed_by"`                // if GitHub says so
	PullRequest *struct{}      `json:"pull_request"`             // nil for an issue
	App         AppID          `json:"performed_via_github_app"` // the App that wrote it; its ID is zero for none
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

// reactionRoutes are the routes of reactions: on an issue or pull request by number, on a comment by id.
var reactionRoutes = map[string]string{
	"issue":          "/repos/{owner}/{repo}/issues/{number}/reactions",
	"issue_comment":  "/repos/{owner}/{repo}/issues/comments/{id}/reactions",
	"review_comment": "/repos/{owner}/{repo}/pulls/comments/{id}/reactions",
}

// The reactions that Pawl uses: 👀 and 😕.
const (
	Eyes     = "eyes"
	Confused = "confused"
)

// React adds a reaction to an issue, an issue_comment or a review_comment. Repeating it changes nothing.
func (s Issues) React(ctx context.Context, repo Repo, on string, id int64, reaction string) error {
	_, err := s.client.on(ctx, repo, request{
		method: http.MethodPost, route: cmp.Or(reactionRoutes[on], reactionRoutes["issue_comment"]), args: []any{id},
		body: map[string]string{"content": reaction},
	}, nil)
	return err
}

// maxPages limits the search for a comment: GitHub takes 2,500 on an issue.
const maxPages = 25

type Comment struct {
	ID      int64          `json:"id"`
	Author  feedback.Actor `json:"user"`
	App     AppID          `json:"performed_via_github_app"` // the App that wrote it; its ID is zero for none
	Body    string         `json:"body"`
	HTMLURL string         `json:"html_url"`
	Created time.Time      `json:"created_at"`
	Updated time.Time      `json:"updated_at"`
}

const commentsRoute = "/repos/{owner}/{repo}/issues/{number}/comments"

// CreateComment writes a comment with the marker, which it appends if the body lacks it. After a lost answer the
// comment is found by its marker, so that it is not written twice.
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

// EditComment replaces a comment's body and keeps the marker. ErrNotFound: it was deleted.
func (s Issues) EditComment(ctx context.Context, repo Repo, id int64, body, marker string) (edited Comment, err error) {
	_, err = s.client.on(ctx, repo, request{
		method: http.MethodPatch, route: "/repos/{owner}/{repo}/issues/comments/{id}", args: []any{id},
		body: map[string]string{"body": withMarker(body, marker)}, urgency: cosmetic, holds: []string{"id"},
	}, &edited)
	return edited, err
}

// FindComment returns the App's own oldest comment with the marker: everyone can copy a marker.
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

// isOwn reports whether a comment is the App's. It looks up the App's user only for a bot's comment that names no
// App.
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

// maxPullTitle is GitHub's limit of a title, in characters.
const maxPullTitle = 256

// PullRequests reads and writes pull requests and their reviews.
type PullRequests struct{ client *Client }

// Branch is one end of a pull request. Its repository is empty if that fork was deleted.
type Branch struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	} `json:"repo"`
}

type Pull struct {
	Number    int       `json:"number"`
	Node      string    `json:"node_id"` // its id in GraphQL
	State     string    `json:"state"`   // open or closed; a merged pull request is closed
	CreatedAt time.Time `json:"created_at"`
	MergedAt  time.Time `json:"merged_at"`
	Head      Branch    `json:"head"`
	Base      Branch    `json:"base"`
	HTMLURL   string    `json:"html_url"`
	// Mergeable is nil, and MergeableState unknown, until GitHub has computed it, and in lists. A state is dirty for
	// conflicts, or behind if a rule requires merging the base first; others do not concern the base.
	Mergeable      *bool  `json:"mergeable"`
	MergeableState string `json:"mergeable_state"`
}

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

const pullsRoute = "/repos/{owner}/{repo}/pulls"

// find finds the newest pull request from head to base in the repository itself that is open, or was created since
// a time. A fork's branch of the same name does not count. GitHub ignores a head filter that it cannot parse, so
// the answer is checked.
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

// fromFork says that the head is in another or a deleted repository.
func (p Pull) fromFork() bool {
	from := p.Head.Repo.FullName
	return from == "" || !strings.EqualFold(from, p.Base.Repo.FullName)
}

// openOrSince says that a pull request is open, or was created since a time; zero for none.
func (p Pull) openOrSince(since time.Time) bool {
	if p.State == "open" {
		return true
	}
	return !since.IsZero() && !p.CreatedAt.Before(since)
}

// NewPull is a draft pull request to open from branch Head of the repository itself.
type NewPull struct {
	Title render.Title
	Body  string
	Head  string
	Base  string
	// Begun is the start of an earlier try with an unknown result; its pull request is returned, even if it was
	// closed.
	Begun time.Time
}

type OpenedPull struct {
	Pull
	// DraftRefused: the repository's plan has no drafts, so it is none.
	DraftRefused bool
}

// clockError is the allowed difference between GitHub's clock and the clock that dated an earlier try.
const clockError = time.Minute

// Create opens a pull request, or returns the open one from the same head to the same base, which may be an earlier
// try's.
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

// refusedWith reports whether GitHub refused the content with a message that has these lower-case words.
func refusedWith(err error, words string) bool {
	if !errors.Is(err, ErrInvalid) {
		return false
	}
	failed, ok := errors.AsType[*Error](err)
	return ok && strings.Contains(strings.ToLower(failed.Message), words)
}

// maxOpen limits the pages of 100 open pull requests: Pawl's own are mostly among the newest.
const maxOpen = 3

// Into lists the open pull requests into a branch, the newest first.
func (s PullRequests) Into(ctx context.Context, repo Repo, base string) ([]Pull, error) {
	return readPages[Pull](ctx, s.client, repo, maxOpen, request{
		route: pullsRoute,
		query: url.Values{"state": {"open"}, "base": {base}},
	})
}

// Edit sets the description, and the title if there is one. It is safe to repeat.
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

// Ready ends a pull request's draft state, by its node id. It is safe to repeat.
func (s PullRequests) Ready(ctx context.Context, repo Repo, node string) error {
	const query = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
	return s.client.graph(ctx, repo, request{}, query, map[string]any{"id": node}, new(struct{}))
}

// RequestReview requests a review. ErrInvalid: the user cannot review there.
func (s PullRequests) RequestReview(ctx context.Context, repo Repo, number int, login string) error {
	_, err := s.client.on(ctx, repo, request{
		method: http.MethodPost,
		route:  pullsRoute + "/{number}/requested_reviewers",
		args:   []any{number},
		body:   map[string][]string{"reviewers": {login}},
	}, nil)
	return err
}

// Reply answers a review comment, by the id of its thread's first one.
func (s PullRequests) Reply(ctx context.Context, repo Repo, number int, id int64, body string) error {
	_, err := s.client.on(ctx, repo, request{
		method: http.MethodPost,
		route:  pullsRoute + "/{number}/comments/{id}/replies",
		args:   []any{number, id},
		body:   map[string]string{"body": clip(body, maxText)},
	}, nil)
	return err
}

// Resolve resolves a review thread, by its node id. It is safe to repeat.
func (s PullRequests) Resolve(ctx context.Context, repo Repo, node string) error {
	const query = "mutation($id:ID!){resolveReviewThread(input:{threadId:$id}){thread{isResolved}}}"
	return s.client.graph(ctx, repo, request{}, query, map[string]any{"id": node}, new(struct{}))
}

// React adds a reaction to a review, by its node id, which the REST API cannot. Repeating it changes nothing.
func (s PullRequests) React(ctx context.Context, repo Repo, node, reaction string) error {
	const query = "mutation($id:ID!,$content:ReactionContent!){addReaction(input:{subjectId:$id,content:$content}){reaction{content}}}"
	return s.client.graph(ctx, repo, request{}, query, map[string]any{"id": node, "content": strings.ToUpper(reaction)}, new(struct{}))
}

// maxText is the length in bytes at which every text is cut. GitHub refuses bodies over 65,536 characters and
// summaries over 65,535 bytes; internal/checkrun's texts are never longer.
const maxText = 60_000

// more ends a text that was cut.
const more = "…"

// clip cuts a text to at most limit bytes, between two runes, and shows that. Invalid UTF-8 becomes U+FFFD and NUL
// is removed, as GitHub takes neither.
func clip(body string, limit int) string {
	body = strings.ToValidUTF8(strings.ReplaceAll(body, "\x00", ""), "\uFFFD")
	if len(body) <= limit {
		return body
	}
	return render.Head(body, limit-len(more)) + more
}

// clipLine makes one line of at most limit runes, for titles and labels.
func clipLine(s string, limit int) string {
	return render.Short(strings.Join(strings.Fields(clip(s, maxText)), " "), limit)
}

func withMarker(body, marker string) string {
	if clipped := clip(body, maxText); strings.Contains(clipped, marker) {
		return clipped
	}
	return clip(body, maxText-len(marker)-2) + "\n\n" + marker
}
