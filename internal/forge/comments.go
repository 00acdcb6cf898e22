package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// pageSize is the largest page GitHub gives.
const pageSize = 100

// maxPages bounds the search for a comment. GitHub takes no more than 2,500
// comments on an issue.
const maxPages = 25

// Comment is a comment on an issue or in a pull request's conversation.
type Comment struct {
	ID     int64
	Author Actor
	// AppID is the App through which it was written; zero for none.
	AppID   int64
	Body    string
	HTMLURL string
	Created time.Time
	Updated time.Time
}

// wireComment is GitHub's comment with the field that go-github v60 leaves
// out.
type wireComment struct {
	github.IssueComment
	Via *github.App `json:"performed_via_github_app"`
}

func (w wireComment) comment() Comment {
	return Comment{
		ID: w.GetID(), Author: actor(w.User), AppID: w.Via.GetID(), Body: w.GetBody(), HTMLURL: w.GetHTMLURL(),
		Created: w.GetCreatedAt().Time, Updated: w.GetUpdatedAt().Time,
	}
}

// CreateComment writes a comment that holds the marker, which is added at the
// end where the body lacks it. When GitHub's answer is lost, the marker tells
// whether the comment is there, so that it is not written twice.
func (c *Client) CreateComment(ctx context.Context, repo Repo, number int, body, marker string) (Comment, error) {
	if marker == "" {
		return Comment{}, errors.New("create a comment: without a marker it could not be found again")
	}
	var made Comment
	path := fmt.Sprintf("repos/%s/issues/%d/comments", repo.FullName(), number)
	err := c.on(ctx, repo, request{
		method: http.MethodPost, route: "/repos/{owner}/{repo}/issues/{number}/comments", urgency: acknowledges,
		send: writeComment(http.MethodPost, path, withMarker(body, marker), &made),
		done: func(ctx context.Context) (found bool, err error) {
			made, found, err = c.FindComment(ctx, repo, number, marker, 0)
			return found, err
		},
	})
	return made, err
}

// EditComment replaces a comment's body; the marker stays in it. ErrNotFound
// when somebody deleted the comment.
func (c *Client) EditComment(ctx context.Context, repo Repo, id int64, body, marker string) (Comment, error) {
	var edited Comment
	path := fmt.Sprintf("repos/%s/issues/comments/%d", repo.FullName(), id)
	err := c.on(ctx, repo, request{
		method: http.MethodPatch, route: "/repos/{owner}/{repo}/issues/comments/{id}", urgency: cosmetic,
		send: writeComment(http.MethodPatch, path, withMarker(body, marker), &edited),
	})
	return edited, err
}

func writeComment(method, path, body string, into *Comment) func(context.Context, *github.Client) error {
	return func(ctx context.Context, gh *github.Client) error {
		req, err := gh.NewRequest(method, path, map[string]string{"body": body})
		if err != nil {
			return err
		}
		var got wireComment
		if _, err := gh.Do(ctx, req, &got); err != nil {
			return err
		}
		if got.GetID() == 0 {
			return errEmptyAnswer
		}
		*into = got.comment()
		return nil
	}
}

// Comments returns the last comments, at most limit, oldest first.
func (c *Client) Comments(ctx context.Context, repo Repo, number, limit int) ([]Comment, error) {
	first, last, err := c.commentPage(ctx, repo, number, 1)
	if err != nil {
		return nil, err
	}
	var tail []Comment
	for page := last; page > 1 && page > last-maxPages && len(tail) < limit; page-- {
		got, _, err := c.commentPage(ctx, repo, number, page)
		if err != nil {
			return nil, err
		}
		tail = append(got, tail...)
	}
	if len(tail) < limit {
		tail = append(first, tail...)
	}
	return tail[max(0, len(tail)-max(0, limit)):], nil
}

// FindComment returns the oldest comment that holds the marker and was written
// by the given author. With authorID 0 that is the App itself. A marker alone
// proves nothing: anybody can copy it, and a quoting reply does.
func (c *Client) FindComment(ctx context.Context, repo Repo, number int, marker string, authorID int64) (Comment, bool, error) {
	last := 1
	for page := 1; page <= min(last, maxPages); page++ {
		comments, end, err := c.commentPage(ctx, repo, number, page)
		if err != nil {
			return Comment{}, false, err
		}
		last = max(last, end)
		for _, one := range comments {
			if !strings.Contains(one.Body, marker) {
				continue
			}
			wanted, err := c.wroteIt(ctx, one, authorID)
			if err != nil || wanted {
				return one, wanted, err
			}
		}
	}
	return Comment{}, false, nil
}

// wroteIt says whether a comment is by the author, or by the App when
// authorID is 0. Only for a bot's comment that does not name its App is the
// App's own user looked up.
func (c *Client) wroteIt(ctx context.Context, one Comment, authorID int64) (bool, error) {
	switch {
	case authorID != 0:
		return one.Author.ID == authorID, nil
	case one.AppID != 0 || !one.Author.Bot:
		return one.AppID == c.appID, nil
	}
	app, err := c.App(ctx)
	if err == nil && app.BotID == 0 {
		return one.Author.Login == app.BotLogin, nil
	}
	return err == nil && one.Author.ID == app.BotID, err
}

// commentPage reads one page, oldest first, and returns the number of the last
// page that GitHub names.
func (c *Client) commentPage(ctx context.Context, repo Repo, number, page int) (comments []Comment, last int, err error) {
	path := fmt.Sprintf("repos/%s/issues/%d/comments?per_page=%d&page=%d", repo.FullName(), number, pageSize, page)
	err = c.on(ctx, repo, request{
		method: http.MethodGet, route: "/repos/{owner}/{repo}/issues/{number}/comments",
		send: func(ctx context.Context, gh *github.Client) error {
			req, err := gh.NewRequest(http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			var got []wireComment
			resp, err := gh.Do(ctx, req, &got)
			if err != nil {
				return err
			}
			comments, last = make([]Comment, 0, len(got)), max(page, resp.LastPage, resp.NextPage)
			for _, one := range got {
				comments = append(comments, one.comment())
			}
			slices.SortFunc(comments, func(a, b Comment) int { return cmp.Compare(a.ID, b.ID) })
			return nil
		},
	})
	return comments, last, err
}
