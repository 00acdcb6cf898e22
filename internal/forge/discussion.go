package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/secret"
)

// Post is a comment, a review or a review comment.
type Post struct {
	ID   bigInt `json:"fullDatabaseId"`
	Node string `json:"id"`
	By   author `json:"author"`
	// Association is OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, NONE and so on. It grants no permission.
	Association string    `json:"authorAssociation"`
	Text        string    `json:"body"`
	At          time.Time `json:"createdAt"`
	Edited      time.Time `json:"lastEditedAt"` // zero if never edited
	Editor      author    `json:"editor"`       // zero if never edited
	// Hidden means minimised, for example as spam or outdated.
	Hidden bool   `json:"isMinimized"`
	State  string `json:"state"`    // a review's state: APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED, PENDING
	Hunk   string `json:"diffHunk"` // diff lines of a review comment
	// On is the commit of a review or review comment, or empty.
	On struct {
		SHA string `json:"oid"`
	} `json:"originalCommit"`
}

type author struct {
	Kind  string `json:"__typename"` // User, Bot or Mannequin
	Login string `json:"login"`
}

func (a author) Bot() bool { return a.Kind == "Bot" }

// Account returns the login as in the REST API, with "[bot]" for bots. It is empty for deleted accounts.
func (a author) Account() string {
	if a.Bot() {
		return a.Login + "[bot]"
	}
	return a.Login
}

// bigInt decodes an id that GraphQL sends as text.
type bigInt int64

func (b *bigInt) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*b = bigInt(n)
	return err
}

// listed holds one page of a list, usually the newest items.
type listed[T any] struct {
	Total int `json:"totalCount"`
	Nodes []T `json:"nodes"`
	Page  struct {
		More   bool   `json:"hasPreviousPage"`
		Cursor string `json:"startCursor"`
	} `json:"pageInfo"`
}

// ReviewThread holds a review comment and its answers.
type ReviewThread struct {
	ID        string       `json:"id"`
	Path      string       `json:"path"`
	Line      int          `json:"line"` // zero if the line is gone
	StartLine int          `json:"startLine"`
	Was       int          `json:"originalLine"`
	WasStart  int          `json:"originalStartLine"`
	Side      string       `json:"diffSide"` // LEFT is the base
	Resolved  bool         `json:"isResolved"`
	Outdated  bool         `json:"isOutdated"`
	Opening   listed[Post] `json:"opening"`  // first comment
	Comments  listed[Post] `json:"comments"` // newest comments
}

type ChangedFile struct {
	Path      string `json:"path"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Change    string `json:"changeType"` // ADDED, DELETED, MODIFIED or RENAMED
}

type PullCommit struct {
	Commit struct {
		OID      string    `json:"oid"`
		Headline string    `json:"messageHeadline"`
		At       time.Time `json:"committedDate"`
		Author   struct {
			Name string `json:"name"`
		} `json:"author"`
	} `json:"commit"`
}

// Discussion holds a thread's discussion and changes. Lists of comments and commits hold the newest, oldest first.
type Discussion struct {
	Node        string               `json:"id"`
	Title       string               `json:"title"`
	Body        string               `json:"body"`
	Closed      bool                 `json:"closed"`
	By          author               `json:"author"`
	Association string               `json:"authorAssociation"`
	At          time.Time            `json:"createdAt"`
	Edited      time.Time            `json:"lastEditedAt"`
	Comments    listed[Post]         `json:"comments"`
	Reviews     listed[Post]         `json:"reviews"`
	Threads     listed[ReviewThread] `json:"reviewThreads"`
	Files       listed[ChangedFile]  `json:"files"`
	Commits     listed[PullCommit]   `json:"commits"`
	Closes      listed[struct {
		Number int `json:"number"`
	}] `json:"closingIssuesReferences"`
}

// Parts of queries. Most lists are read from the newest item, at most 100 items at a time.
const (
	postFields  = "id fullDatabaseId author{__typename login} authorAssociation body createdAt lastEditedAt editor{__typename login} isMinimized"
	askHead     = "id title body closed author{__typename login} authorAssociation createdAt lastEditedAt "
	askComments = "comments(last:100,before:$before){totalCount pageInfo{hasPreviousPage startCursor} nodes{" + postFields + "}} "
	askPull     = "reviews(last:50){totalCount nodes{" + postFields + " state originalCommit:commit{oid}}} " +
		"reviewThreads(last:100){totalCount nodes{id path line startLine originalLine originalStartLine diffSide isResolved isOutdated opening:comments(first:1){nodes{" + postFields + "}} comments(last:50){totalCount nodes{" + postFields + " diffHunk originalCommit{oid}}}}} " +
		"files(first:100){totalCount nodes{path additions deletions changeType}} " +
		"commits(last:50){totalCount nodes{commit{oid messageHeadline committedDate author{name}}}} " +
		"closingIssuesReferences(first:5){totalCount nodes{number}} "
	askWhole = "query($owner:String!,$name:String!,$number:Int!,$before:String){repository(owner:$owner,name:$name){found:issueOrPullRequest(number:$number){" +
		"...on Issue{" + askHead + askComments + "} ...on PullRequest{" + askHead + askComments + askPull + "}}}}"
	askOlder = "query($owner:String!,$name:String!,$number:Int!,$before:String){repository(owner:$owner,name:$name){found:issueOrPullRequest(number:$number){" +
		"...on Issue{" + askComments + "} ...on PullRequest{" + askComments + "}}}}"
)

const maxDiscussion = 10

// Read reads a discussion, newest comments first, until it has `bytes` bytes of text or maxDiscussion pages.
func (s Discussions) Read(ctx context.Context, repo Repo, number, bytes int) (d Discussion, err error) {
	ask, before := askWhole, any(nil)
	for page := 1; ; page++ {
		var got struct {
			Repository struct {
				Found *Discussion `json:"found"`
			} `json:"repository"`
		}
		err := s.askLagging(ctx, repo, ask, map[string]any{"number": number, "before": before}, &got)
		found := got.Repository.Found
		if err == nil && found == nil {
			err = ErrNotFound
		}
		if err != nil {
			return d, fmt.Errorf("read the discussion of #%d: %w", number, err)
		}
		if ask == askWhole {
			d = *found
		} else {
			d.Comments.Nodes, d.Comments.Page = append(found.Comments.Nodes, d.Comments.Nodes...), found.Comments.Page
		}
		for _, post := range found.Comments.Nodes {
			bytes -= len(post.Text)
		}
		last := !d.Comments.Page.More || page == maxDiscussion
		if last || bytes <= 0 {
			return d, nil
		}
		ask, before = askOlder, d.Comments.Page.Cursor
	}
}

const maxLinked = 10

// Linked reads titles and descriptions of up to maxLinked other threads in the repository. It omits unknown numbers.
func (s Discussions) Linked(ctx context.Context, repo Repo, numbers []int) (map[int]Discussion, error) {
	numbers = numbers[:min(len(numbers), maxLinked)]
	if len(numbers) == 0 {
		return nil, nil
	}
	var ask strings.Builder
	ask.WriteString("query($owner:String!,$name:String!){repository(owner:$owner,name:$name){")
	for _, n := range numbers {
		fmt.Fprintf(&ask, "n%d:issueOrPullRequest(number:%d){...on Issue{%s} ...on PullRequest{%s}} ", n, n, askHead, askHead)
	}
	ask.WriteString("}}")
	var got struct {
		Repository map[string]*Discussion `json:"repository"`
	}
	err := s.ask(ctx, repo, ask.String(), map[string]any{}, &got)
	if errors.Is(err, ErrNotFound) && got.Repository != nil {
		err = nil // some numbers do not exist
	}
	if err != nil {
		return nil, fmt.Errorf("read the linked threads: %w", err)
	}
	all := map[int]Discussion{}
	for _, n := range numbers {
		if d := got.Repository["n"+strconv.Itoa(n)]; d != nil {
			all[n] = *d
		}
	}
	return all, nil
}

const graphRoute = "/graphql"

// Discussions reads discussions through the GraphQL API.
type Discussions struct{ client *Client }

// ask queries the GraphQL API with $owner and $name and decodes the data, even if GitHub adds an error.
func (s Discussions) ask(ctx context.Context, repo Repo, query string, variables map[string]any, into any) error {
	variables["owner"], variables["name"] = repo.Owner, repo.Name
	return s.client.graph(ctx, repo, request{reads: true}, query, variables, into)
}

// askLagging retries ask if a replica does not know the object yet.
func (s Discussions) askLagging(ctx context.Context, repo Repo, query string, variables map[string]any, into any) error {
	for try := 1; ; try++ {
		err := s.ask(ctx, repo, query, variables, into)
		if !errors.Is(err, ErrNotFound) || try >= maxTries {
			return err
		}
		if late := s.client.cfg.Sleep(ctx, settle); late != nil {
			return fmt.Errorf("%w (then %w)", err, late)
		}
	}
}

// graph sends a query, or a mutation that is safe to repeat.
func (c *Client) graph(ctx context.Context, repo Repo, r request, query string, variables map[string]any, into any) error {
	var got struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	r.method, r.route, r.repo, r.body = http.MethodPost, graphRoute, repo, map[string]any{"query": query, "variables": variables}
	resp, err := c.do(ctx, r, &got)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got.Data, into); err != nil && len(got.Errors) == 0 {
		return fmt.Errorf("POST %s: %w", graphRoute, err)
	}
	if len(got.Errors) == 0 {
		return nil
	}
	first := got.Errors[0]
	err = fmt.Errorf("POST %s: %s", graphRoute, secret.Redact(clip(first.Message, 1000)))
	switch first.Type {
	case "RATE_LIMITED":
		until, _ := resetTime(resp.Header)
		return &RateLimited{Method: r.method, Path: graphRoute, Until: until}
	case "NOT_FOUND":
		return errors.Join(err, ErrNotFound)
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return errors.Join(err, ErrForbidden)
	}
	return errors.Join(err, ErrInvalid)
}

// graphAddress derives the GraphQL URL: https://api.github.com/graphql, or https://HOST/api/graphql for
// https://HOST/api/v3.
func graphAddress(api string) string {
	api = strings.TrimSuffix(api, "/")
	return strings.TrimSuffix(api, "/v3") + graphRoute
}
