package forge

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"
)

// The reads of the reconciliation: what changed in a repository and on a thread
// since a time. GitHub's since is inclusive and in whole seconds.

// Changed is an issue or pull request as a list of a repository gives it.
type Changed struct {
	Number int
	Title  string
	Body   string
	// State is open or closed; Merged is true for a pull request that was merged.
	State   string
	Merged  bool
	IsPull  bool
	Author  Actor
	HTMLURL string
	Updated time.Time
	// Closed is when, and ClosedBy by whom, it was closed, as far as GitHub says.
	Closed   time.Time
	ClosedBy string
}

func changed(i *github.Issue) Changed {
	return Changed{
		Number: i.GetNumber(), Title: i.GetTitle(), Body: i.GetBody(), State: i.GetState(), IsPull: i.IsPullRequest(),
		Merged: !i.GetPullRequestLinks().GetMergedAt().IsZero(), Author: actor(i.GetUser()), HTMLURL: i.GetHTMLURL(),
		Updated: i.GetUpdatedAt().Time, Closed: i.GetClosedAt().Time, ClosedBy: i.GetClosedBy().GetLogin(),
	}
}

// maxChangedPages bounds what one call reads of a list, in pages of 100.
const maxChangedPages = 10

// ChangedSince lists the issues and pull requests of a repository that were
// updated since a time, those updated longest ago first. more says that there
// are others after them.
//
// A change while it reads moves its thread to the end of GitHub's list, and what
// follows would come a place sooner: numbered pages would skip one. So each
// request asks from where the last answer ended. Only where one second fills a
// page is the next page of that second read.
func (c *Client) ChangedSince(ctx context.Context, repo Repo, since time.Time) (list []Changed, more bool, err error) {
	const route = "/repos/{owner}/{repo}/issues"
	at := map[int]time.Time{} // of each number in the list
	since, page := since.UTC().Truncate(time.Second), 1
	for range maxChangedPages {
		var got []*github.Issue
		got, more, err = readPage[*github.Issue](ctx, c, repo, background, route, "issues", page, url.Values{
			"state": {"all"}, "sort": {"updated"}, "direction": {"asc"}, "since": {since.Format(time.RFC3339)},
		})
		if err != nil {
			return nil, false, err
		}
		last := since
		for _, i := range got {
			one := changed(i)
			if one.Number <= 0 || one.Updated.Before(since) || at[one.Number].Equal(one.Updated) {
				continue
			}
			at[one.Number] = one.Updated
			list = append(list, one)
			last = later(last, one.Updated)
		}
		if !more {
			break
		}
		if page++; last.After(since) {
			since, page = last, 1
		}
	}
	// A thread that changed meanwhile was listed twice; the last is how it is now.
	list = slices.DeleteFunc(list, func(one Changed) bool { return !at[one.Number].Equal(one.Updated) })
	return list, more, nil
}

// CommentsSince lists the comments on an issue or in a pull request's
// conversation that were written or edited since a time, oldest first.
func (c *Client) CommentsSince(ctx context.Context, repo Repo, number int, since time.Time) ([]Comment, error) {
	const route = "/repos/{owner}/{repo}/issues/{number}/comments"
	all, _, err := readPages[wireComment](ctx, c, repo, background, route, fmt.Sprintf("issues/%d/comments", number),
		url.Values{"since": {since.UTC().Format(time.RFC3339)}})
	list := make([]Comment, 0, len(all))
	for _, one := range all {
		list = append(list, one.comment())
	}
	return list, err
}

// Review is a review of a pull request as a whole.
type Review struct {
	ID     int64
	Author Actor
	// AppID is the App through which it was written; zero for none.
	AppID int64
	Body  string
	// State is APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED or PENDING.
	State string
	// SHA is the commit that was reviewed.
	SHA     string
	HTMLURL string
	// Submitted is zero for a review that is still being written.
	Submitted time.Time
}

// Reviews lists the reviews of a pull request, oldest first. GitHub has no way to
// ask for the new ones only.
func (c *Client) Reviews(ctx context.Context, repo Repo, number int) ([]Review, error) {
	const route = "/repos/{owner}/{repo}/pulls/{number}/reviews"
	all, _, err := readPages[struct {
		github.PullRequestReview
		Via *github.App `json:"performed_via_github_app"`
	}](ctx, c, repo, background, route, fmt.Sprintf("pulls/%d/reviews", number), nil)
	list := make([]Review, 0, len(all))
	for _, r := range all {
		list = append(list, Review{
			ID: r.GetID(), Author: actor(r.User), AppID: r.Via.GetID(), Body: r.GetBody(), State: r.GetState(), SHA: r.GetCommitID(),
			HTMLURL: r.GetHTMLURL(), Submitted: r.GetSubmittedAt().Time,
		})
	}
	return list, err
}

// ReviewComment is a remark on a line of a pull request. Line is zero where the
// line is gone.
type ReviewComment struct {
	Comment
	Path string
	Line int
	SHA  string
}

// ReviewCommentsSince lists the remarks on lines of a pull request that were
// written or edited since a time, oldest first.
func (c *Client) ReviewCommentsSince(ctx context.Context, repo Repo, number int, since time.Time) ([]ReviewComment, error) {
	const route = "/repos/{owner}/{repo}/pulls/{number}/comments"
	all, _, err := readPages[struct {
		github.PullRequestComment
		Via *github.App `json:"performed_via_github_app"`
	}](ctx, c, repo, background, route, fmt.Sprintf("pulls/%d/comments", number), url.Values{"since": {since.UTC().Format(time.RFC3339)}})
	list := make([]ReviewComment, 0, len(all))
	for _, r := range all {
		list = append(list, ReviewComment{
			Comment: Comment{
				ID: r.GetID(), Author: actor(r.User), AppID: r.Via.GetID(), Body: r.GetBody(), HTMLURL: r.GetHTMLURL(),
				Created: r.GetCreatedAt().Time, Updated: r.GetUpdatedAt().Time,
			},
			Path: r.GetPath(), Line: r.GetLine(), SHA: r.GetCommitID(),
		})
	}
	return list, err
}

// commitForm is what names a commit; anything else would change the path of a
// request.
var commitForm = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// PullsOfCommit lists the pull requests that brought a commit into the
// repository or, for one that is not in the default branch, that are open with
// it. An unknown commit is ErrNotFound or ErrInvalid.
func (c *Client) PullsOfCommit(ctx context.Context, repo Repo, sha string) ([]Pull, error) {
	if !commitForm.MatchString(sha) {
		return nil, fmt.Errorf("commit %.80q: want 7 to 64 hexadecimal digits", sha)
	}
	const route = "/repos/{owner}/{repo}/commits/{sha}/pulls"
	all, _, err := readPages[*github.PullRequest](ctx, c, repo, needed, route, "commits/"+sha+"/pulls", nil)
	list := make([]Pull, 0, len(all))
	for _, p := range all {
		list = append(list, pull(p))
	}
	return list, err
}

// readPages reads a list below a repository's address, at most maxChangedPages
// pages; more says that there are others.
func readPages[T any](ctx context.Context, c *Client, repo Repo, u urgency, route, path string, query url.Values) (list []T, more bool, err error) {
	for page := 1; page <= maxChangedPages; page++ {
		var got []T
		if got, more, err = readPage[T](ctx, c, repo, u, route, path, page, query); err != nil {
			return nil, false, err
		}
		list = append(list, got...)
		if !more {
			break
		}
	}
	return list, more, nil
}

// readPage reads one page of such a list; more says that others follow.
func readPage[T any](ctx context.Context, c *Client, repo Repo, u urgency, route, path string, page int, query url.Values) (list []T, more bool, err error) {
	q := url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page)}}
	maps.Copy(q, query)
	address := fmt.Sprintf("repos/%s/%s?%s", repo.FullName(), path, q.Encode())
	err = c.on(ctx, repo, request{method: http.MethodGet, route: route, urgency: u, send: func(ctx context.Context, gh *github.Client) error {
		list, more = nil, false
		req, err := gh.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		resp, err := gh.Do(ctx, req, &list)
		if err == nil {
			more = resp.NextPage > page
		}
		return err
	}})
	return list, more, err
}
