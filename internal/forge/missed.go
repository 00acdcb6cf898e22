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

// Delivery is one try of GitHub to send a webhook. Tries of the same webhook share the GUID.
type Delivery struct {
	ID   int64  `json:"id"`
	GUID string `json:"guid"`
	// Event and Action are the payload's; Action is empty for events without one.
	Event      string    `json:"event"`
	Action     string    `json:"action"`
	At         time.Time `json:"delivered_at"` // when GitHub sent it
	StatusCode int       `json:"status_code"`  // the answer; zero if no connection was made
}

// Deliveries reads one page of the App's deliveries, newest first. An empty cursor begins; an empty next ends.
// github.com lists 3 days, an Enterprise Server 7 (docs.github.com, "Redelivering webhooks").
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

// explainApp explains a refused request about the App itself, which GitHub may not know.
func explainApp(a answer) (hint string, kind error) {
	if a.status == http.StatusNotFound && a.says("integration not found") {
		return explainSelf(a)
	}
	return explain(a)
}

// Hook is the App's webhook address.
type Hook struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type"` // json or form
}

func (s Apps) Hook(ctx context.Context) (h Hook, err error) {
	_, err = s.client.do(ctx, request{route: "/app/hook/config", as: asApp, urgency: background}, &h)
	return h, err
}

// Payload reads a delivery's payload, nil if GitHub keeps none. GitHub may have reformatted the JSON, so a
// signature would not match.
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

// The reconciliation's reads: changes in a repository and on a thread since a time. GitHub's since is inclusive and
// in whole seconds.

// maxChangedPages limits one call's pages of 100.
const maxChangedPages = 10

// ChangedSince lists the issues and pull requests that were updated since a time, least recent first. more says
// that others follow.
//
// A change during the reading moves its thread to the end of GitHub's list, so numbered pages would skip one. Each
// request begins where the last answer ended; only if one second fills a page, it reads that second's next page.
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
			if at[one.Number].Equal(one.Updated) { // already in the list
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
	// A thread that changed meanwhile was listed twice; the last entry is current.
	list = slices.DeleteFunc(list, func(one Issue) bool { return !at[one.Number].Equal(one.Updated) })
	return list, more, nil
}

// CommentsSince lists a conversation's comments that were written or edited since a time, oldest first.
func (s Issues) CommentsSince(ctx context.Context, repo Repo, number int, since time.Time) ([]Comment, error) {
	return readPages[Comment](ctx, s.client, repo, maxChangedPages, request{
		route:   commentsRoute,
		args:    []any{number},
		urgency: background,
		query:   from(since),
	})
}

func from(since time.Time) url.Values { return url.Values{"since": {since.UTC().Format(time.RFC3339)}} }

// Reaction is an account's reaction to a comment: +1, -1, eyes and others.
type Reaction struct {
	ID      int64          `json:"id"`
	User    feedback.Actor `json:"user"`
	Content string         `json:"content"`
}

// Reactions lists the reactions to an issue's comment.
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
	Submitted time.Time `json:"submitted_at"` // zero for an unsubmitted review
}

// Reviews lists a pull request's reviews, oldest first: GitHub cannot list only new ones.
func (s PullRequests) Reviews(ctx context.Context, repo Repo, number int) ([]Review, error) {
	return readPages[Review](ctx, s.client, repo, maxChangedPages, request{
		route:   pullsRoute + "/{number}/reviews",
		args:    []any{number},
		urgency: background,
	})
}

// ReviewComment is a comment on a line of a pull request. Line is zero if the line is gone.
type ReviewComment struct {
	Comment
	Path string `json:"path"`
	Line int    `json:"line"`
	SHA  string `json:"original_commit_id"` // its own; commit_id moves with the branch
}

// CommentsSince lists review comments that were written or edited since a time, oldest first.
func (s PullRequests) CommentsSince(ctx context.Context, repo Repo, number int, since time.Time) ([]ReviewComment, error) {
	return readPages[ReviewComment](ctx, s.client, repo, maxChangedPages, request{
		route: pullsRoute + "/{number}/comments", args: []any{number}, urgency: background, query: from(since),
	})
}

// commitForm is a commit's hash; anything else would change the path of a request.
var commitForm = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// OfCommit lists the pull requests that brought a commit, or are open with one that is not in the default branch.
// An unknown commit is ErrNotFound or ErrInvalid.
func (s PullRequests) OfCommit(ctx context.Context, repo Repo, sha string) ([]Pull, error) {
	if !commitForm.MatchString(sha) {
		return nil, fmt.Errorf("commit %.80q: want 7 to 64 hexadecimal digits", sha)
	}
	return readPages[Pull](ctx, s.client, repo, maxChangedPages, request{
		route: "/repos/{owner}/{repo}/commits/{sha}/pulls",
		args:  []any{sha},
	})
}
