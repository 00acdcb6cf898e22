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

// Delivery is one try to send a webhook. Repeated tries share the GUID.
type Delivery struct {
	ID         int64     `json:"id"`
	GUID       string    `json:"guid"`
	Event      string    `json:"event"`
	Action     string    `json:"action"`
	At         time.Time `json:"delivered_at"` // time of sending
	StatusCode int       `json:"status_code"`  // zero without a connection
}

// Deliveries reads one page of deliveries, newest first. Start with an empty cursor; next is empty on the last page.
// github.com lists 3 days, Enterprise Servers 7 (docs.github.com, "Redelivering webhooks").
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

func explainApp(a answer) (hint string, kind error) {
	if a.status == http.StatusNotFound && a.mentions("integration not found") {
		return explainSelf(a)
	}
	return explain(a)
}

// Hook holds the App's webhook address.
type Hook struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type"`
}

func (s Apps) Hook(ctx context.Context) (h Hook, err error) {
	_, err = s.client.do(ctx, request{route: "/app/hook/config", as: asApp, urgency: background}, &h)
	return h, err
}

// Payload reads a delivery's payload, or nil. GitHub may have reformatted it, so signatures may not match.
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

// Reads for reconciliation. GitHub's since is inclusive and in whole seconds.

const maxChangedPages = 10

// ChangedSince lists issues and pull requests updated since a time, least recently updated first. more means that the
// list is incomplete. A change moves its thread to the end, so page numbers would skip threads. Each request therefore
// starts at the last answer's end; page numbers are used only within one second.
func (s Issues) ChangedSince(ctx context.Context, repo Repo, since time.Time) (list []Issue, more bool, err error) {
	at := map[int]time.Time{}
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
			if at[one.Number].Equal(one.Updated) { // already listed
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
	// Keep only the last entry of a thread that changed meanwhile.
	list = slices.DeleteFunc(list, func(one Issue) bool { return !at[one.Number].Equal(one.Updated) })
	return list, more, nil
}

// CommentsSince lists comments written or edited since a time, oldest first.
func (s Issues) CommentsSince(ctx context.Context, repo Repo, number int, since time.Time) ([]Comment, error) {
	return readPages[Comment](ctx, s.client, repo, maxChangedPages, request{
		route:   commentsRoute,
		args:    []any{number},
		urgency: background,
		query:   from(since),
	})
}

func from(since time.Time) url.Values { return url.Values{"since": {since.UTC().Format(time.RFC3339)}} }

// Reaction is an account's reaction: +1, -1, eyes and others.
type Reaction struct {
	ID      int64          `json:"id"`
	User    feedback.Actor `json:"user"`
	Content string         `json:"content"`
}

// Reactions lists the reactions to a comment.
func (s Issues) Reactions(ctx context.Context, repo Repo, comment int64) ([]Reaction, error) {
	return readPages[Reaction](ctx, s.client, repo, maxChangedPages, request{
		route:   reactionRoutes["issue_comment"],
		args:    []any{comment},
		urgency: background,
	})
}

type Review struct {
	Comment
	Node      string    `json:"node_id"`
	State     string    `json:"state"`        // APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED or PENDING
	SHA       string    `json:"commit_id"`    // reviewed commit
	Submitted time.Time `json:"submitted_at"` // zero if unsubmitted
}

// Reviews lists all reviews, oldest first. GitHub cannot filter by time.
func (s PullRequests) Reviews(ctx context.Context, repo Repo, number int) ([]Review, error) {
	return readPages[Review](ctx, s.client, repo, maxChangedPages, request{
		route:   pullsRoute + "/{number}/reviews",
		args:    []any{number},
		urgency: background,
	})
}

// ReviewComment is a comment on a line. Line is zero if the line is gone.
type ReviewComment struct {
	Comment
	Path string `json:"path"`
	Line int    `json:"line"`
	SHA  string `json:"original_commit_id"` // commit_id would move with the branch
}

// CommentsSince lists review comments written or edited since a time, oldest first.
func (s PullRequests) CommentsSince(ctx context.Context, repo Repo, number int, since time.Time) ([]ReviewComment, error) {
	return readPages[ReviewComment](ctx, s.client, repo, maxChangedPages, request{
		route: pullsRoute + "/{number}/comments", args: []any{number}, urgency: background, query: from(since),
	})
}

// commitForm keeps other text out of a request's path.
var commitForm = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// OfCommit lists the open pull requests that contain a commit, and those that merged it. Unknown commits return
// ErrNotFound or ErrInvalid.
func (s PullRequests) OfCommit(ctx context.Context, repo Repo, sha string) ([]Pull, error) {
	if !commitForm.MatchString(sha) {
		return nil, fmt.Errorf("commit %.80q: want 7 to 64 hexadecimal digits", sha)
	}
	return readPages[Pull](ctx, s.client, repo, maxChangedPages, request{
		route: "/repos/{owner}/{repo}/commits/{sha}/pulls",
		args:  []any{sha},
	})
}
