package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

// Delivery is one attempt of GitHub to send a webhook. Those at the same webhook share the GUID.
type Delivery struct {
	ID   int64  `json:"id"`
	GUID string `json:"guid"`
	// Event and Action are those of the payload; Action is empty where the event has none.
	Event      string    `json:"event"`
	Action     string    `json:"action"`
	At         time.Time `json:"delivered_at"` // when GitHub sent it
	StatusCode int       `json:"status_code"`  // what was answered; zero when no connection was made
}

// Deliveries reads one page of the App's deliveries, newest first; an empty cursor begins, an empty
// next ends. github.com lists those of 3 days, an Enterprise Server those of 7 (docs.github.com,
// "Redelivering webhooks").
func (s Apps) Deliveries(ctx context.Context, cursor string) (page []Delivery, next string, err error) {
	query := url.Values{"per_page": {strconv.Itoa(pageSize)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	resp, err := s.client.do(ctx, request{
		route:   "/app/hook/deliveries",
		query:   query,
		as:      asApp,
		urgency: background,
		explain: explainApp,
	}, &page)
	if err != nil {
		return nil, "", err
	}
	return page, resp.Cursor, nil
}

// explainApp reads a refusal of what is asked about the App itself, which GitHub may not know.
func explainApp(a answer) (hint string, kind error) {
	if a.status == http.StatusNotFound && a.says("integration not found") {
		return explainSelf(a)
	}
	return explain(a)
}

// Hook is where GitHub sends the App's deliveries.
type Hook struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type"` // json or form
}

func (s Apps) Hook(ctx context.Context) (h Hook, err error) {
	_, err = s.client.do(ctx, request{route: "/app/hook/config", as: asApp, urgency: background}, &h)
	return h, err
}

// Payload reads what a delivery carried, nil where GitHub keeps no payload. GitHub may have
// written the JSON anew, so a signature of it would not fit.
func (s Apps) Payload(ctx context.Context, id int64) ([]byte, error) {
	var got struct {
		Request struct {
			Payload json.RawMessage `json:"payload"`
		} `json:"request"`
	}
	_, err := s.client.do(ctx, request{
		route: "/app/hook/deliveries/{id}", args: []any{id}, as: asApp, urgency: background, once: true, holds: []string{"id"},
	}, &got)
	raw := got.Request.Payload
	if err != nil || string(raw) == "null" {
		return nil, err
	}
	return raw, nil
}

// The reads of the reconciliation: what changed in a repository and on a thread
// since a time. GitHub's since is inclusive and in whole seconds.

// maxChangedPages bounds what one call reads of a list, in pages of 100.
const maxChangedPages = 10

// ChangedSince lists the issues and pull requests that were updated since a time, those updated longest
// ago first. more says that there are others after them.
//
// A change while it reads moves its thread to the end of GitHub's list, so numbered pages would skip
// one. Each request asks from where the last answer ended; only where one second fills a page is the
// next page of that second read.
func (s Issues) ChangedSince(ctx context.Context, repo Repo, since time.Time) (list []Issue, more bool, err error) {
	at := map[int]time.Time{} // of each number in the list
	since, page := since.UTC().Truncate(time.Second), 1
	for range maxChangedPages {
		var got []Issue
		next, err := s.client.page(ctx, repo, request{route: "/repos/{owner}/{repo}/issues", urgency: background, query: url.Values{
			"state": {"all"}, "sort": {"updated"}, "direction": {"asc"}, "since": {since.Format(time.RFC3339)},
		}}, page, &got)
		if err != nil {
			return nil, false, err
		}
		last := since
		for _, one := range got {
			if one.Number <= 0 || one.Updated.Before(since) {
				continue
			}
			if at[one.Number].Equal(one.Updated) { // it is in the list
				continue
			}
			at[one.Number] = one.Updated
			list = append(list, one)
			last = policy.Later(last, one.Updated)
		}
		if more = next != 0; !more {
			break
		}
		if page++; last.After(since) {
			since, page = last, 1
		}
	}
	// A thread that changed meanwhile was listed twice; the last is how it is now.
	list = slices.DeleteFunc(list, func(one Issue) bool { return !at[one.Number].Equal(one.Updated) })
	return list, more, nil
}

// CommentsSince lists the comments of a conversation that were written or edited since a time, oldest first.
func (s Issues) CommentsSince(ctx context.Context, repo Repo, number int, since time.Time) ([]Comment, error) {
	return readPages[Comment](ctx, s.client, repo, maxChangedPages, request{
		route:   commentsRoute,
		args:    []any{number},
		urgency: background,
		query:   from(since),
	})
}

func from(since time.Time) url.Values { return url.Values{"since": {since.UTC().Format(time.RFC3339)}} }

// Reaction is what an account put under a comment: +1, -1, eyes and others.
type Reaction struct {
	ID      int64          `json:"id"`
	User    feedback.Actor `json:"user"`
	Content string         `json:"content"`
}

// Reactions lists those of a comment of an issue.
func (s Issues) Reactions(ctx context.Context, repo Repo, comment int64) ([]Reaction, error) {
	return readPages[Reaction](ctx, s.client, repo, maxChangedPages, request{
		route:   reactionRoutes["issue_comment"],
		args:    []any{comment},
		urgency: background,
	})
}

type Review struct {
	Comment             // without its times
	Node      string    `json:"node_id"`
	State     string    `json:"state"`        // APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED or PENDING
	SHA       string    `json:"commit_id"`    // the commit that was reviewed
	Submitted time.Time `json:"submitted_at"` // zero for a review that is still being written
}

// Reviews lists the reviews of a pull request, oldest first: GitHub has no way to ask for new ones only.
func (s PullRequests) Reviews(ctx context.Context, repo Repo, number int) ([]Review, error) {
	return readPages[Review](ctx, s.client, repo, maxChangedPages, request{
		route:   pullsRoute + "/{number}/reviews",
		args:    []any{number},
		urgency: background,
	})
}

// ReviewComment is a remark on a line of a pull request. Line is zero where the line is gone.
type ReviewComment struct {
	Comment
	Path string `json:"path"`
	Line int    `json:"line"`
	SHA  string `json:"original_commit_id"` // that it was made on; commit_id moves with the branch
}

// CommentsSince lists the remarks on lines that were written or edited since a time, oldest first.
func (s PullRequests) CommentsSince(ctx context.Context, repo Repo, number int, since time.Time) ([]ReviewComment, error) {
	return readPages[ReviewComment](ctx, s.client, repo, maxChangedPages, request{
		route: pullsRoute + "/{number}/comments", args: []any{number}, urgency: background, query: from(since),
	})
}

// commitForm is what names a commit; anything else would change the path of a request.
var commitForm = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// OfCommit lists the pull requests that brought a commit, or are open with one that is not in the
// default branch. An unknown commit is ErrNotFound or ErrInvalid.
func (s PullRequests) OfCommit(ctx context.Context, repo Repo, sha string) ([]Pull, error) {
	if !commitForm.MatchString(sha) {
		return nil, fmt.Errorf("commit %.80q: want 7 to 64 hexadecimal digits", sha)
	}
	return readPages[Pull](ctx, s.client, repo, maxChangedPages, request{
		route: "/repos/{owner}/{repo}/commits/{sha}/pulls",
		args:  []any{sha},
	})
}
