package fakegithub

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	graphql "github.com/graph-gophers/graphql-go"
)

// graphSchema is a part of GitHub's published schema, without directives and unserved fields.
//
//go:embed schema.graphql
var graphSchema string

// plain is a scalar sent as text. Some clients cannot parse a numeric BigInt.
type plain string

func (plain) ImplementsGraphQLType(name string) bool {
	return slices.Contains([]string{"BigInt", "DateTime", "GitObjectID", "HTML", "URI"}, name)
}

func (p *plain) UnmarshalGraphQL(in any) error {
	*p = plain(fmt.Sprint(in))
	return nil
}

// plainTime returns a time; null for zero.
func plainTime(t time.Time) *plain {
	if t.IsZero() {
		return nil
	}
	p := plain(t.UTC().Format(time.RFC3339))
	return &p
}

func plainID(id int64) *plain {
	p := plain(strconv.FormatInt(id, 10))
	return &p
}

// missing is GitHub's error for unknown or invisible nodes.
type missing string

func (m missing) Error() string              { return string(m) }
func (m missing) Extensions() map[string]any { return map[string]any{"type": "NOT_FOUND"} }

// graph answers a query. Like GitHub, it sends a query's errors with status 200.
func (w readers) graph(c *call) *reply {
	var ask struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	if bad := c.decode(&ask); bad != nil {
		return bad
	}
	schema := graphql.MustParseSchema(graphSchema, &graphQuery{w.world, c}, graphql.UseFieldResolvers(), graphql.MaxParallelism(1))
	got := schema.Exec(c.r.Context(), ask.Query, "", ask.Variables)
	body := obj{"data": nil}
	if len(got.Data) > 0 {
		body["data"] = got.Data
	}
	var problems []obj
	for _, e := range got.Errors {
		one := obj{"message": e.Message}
		if kind, ok := e.Extensions["type"]; ok {
			one["type"] = kind
		}
		if len(e.Path) > 0 {
			one["path"] = e.Path
		}
		problems = append(problems, one)
	}
	if problems != nil {
		body["errors"] = problems
	}
	return ok(body)
}

// graphQuery is the root of queries. The world is locked.
type graphQuery struct {
	world *world
	call  *call
}

func (q *graphQuery) Repository(args struct {
	Owner, Name   string
	FollowRenames bool
}) (*graphRepo, error) {
	r := q.world.repos[strings.ToLower(args.Owner+"/"+args.Name)]
	if r == nil || r.deleted || !q.call.sees(r) {
		return nil, missing(fmt.Sprintf("Could not resolve to a Repository with the name '%s/%s'.", args.Owner, args.Name))
	}
	return &graphRepo{r.fullName(), r, q.call, q.world}, nil
}

type graphRepo struct {
	NameWithOwner string
	repository    *repository
	call          *call
	world         *world
}

func (r *graphRepo) IssueOrPullRequest(args struct{ Number int32 }) (*graphThread, error) {
	t, err := r.repository.thread(int(args.Number))
	if err != nil {
		return nil, missing(fmt.Sprintf("Could not resolve to an issue or pull request with the number of %d.", args.Number))
	}
	return r.thread(t), nil
}

func (r *graphRepo) thread(t *thread) *graphThread {
	state := strings.ToUpper(t.state)
	if t.pull != nil && !t.pull.mergedAt.IsZero() {
		state = "MERGED"
	}
	return &graphThread{t, r, int32(t.number), t.title, t.body, state, state != "OPEN", actor(t.author), r.repository.association(t.author), *plainTime(t.created)}
}

type graphThread struct {
	of                *thread
	repo              *graphRepo
	Number            int32
	Title             string
	Body              string
	State             string
	Closed            bool
	Author            *graphActor
	AuthorAssociation string
	CreatedAt         plain
}

func (t *graphThread) ID() graphql.ID {
	if t.of.pull == nil {
		return graphql.ID(nodeID("Issue", t.of.id))
	}
	return graphql.ID(nodeID("PullRequest", t.of.pull.id))
}
func (t *graphThread) IsDraft() bool { return t.of.pull.draft }

func (t *graphThread) ToIssue() (*graphThread, bool)       { return t, t.of.pull == nil }
func (t *graphThread) ToPullRequest() (*graphThread, bool) { return t, t.of.pull != nil }

func (t *graphThread) LastEditedAt() *plain { return plainTime(t.of.edited) }

type graphActor struct {
	kind  string
	Login string
}

// actor returns an account; a bot's login has no "[bot]" here.
func actor(a *account) *graphActor {
	return &graphActor{a.kind, strings.TrimSuffix(a.login, "[bot]")}
}

func (a *graphActor) ToUser() (*graphActor, bool)         { return a, a.kind == "User" }
func (a *graphActor) ToBot() (*graphActor, bool)          { return a, a.kind == "Bot" }
func (a *graphActor) ToOrganization() (*graphActor, bool) { return a, a.kind == "Organization" }

// graphPage selects a part of a list.
type graphPage struct {
	After, Before *string
	First, Last   *int32
}

type graphInfo struct {
	HasPreviousPage, HasNextPage bool
	StartCursor, EndCursor       *string
}

type connection[T any] struct {
	Nodes      *[]*T
	PageInfo   graphInfo
	TotalCount int32
}

// connect returns a page of a list. GitHub requires first or last, at most 100.
func connect[T any](all []*T, p graphPage) (*connection[T], error) {
	n := cmp.Or(p.First, p.Last)
	if n == nil {
		return nil, errors.New("you must provide a `first` or `last` value to properly paginate the connection")
	}
	if *n < 0 || *n > 100 {
		return nil, fmt.Errorf("requesting %d records on the connection exceeds the `first` limit of 100 records", *n)
	}
	from, to := 0, len(all)
	if p.After != nil {
		from = cursor(*p.After) + 1
	}
	if p.Before != nil {
		to = cursor(*p.Before)
	}
	from, to = min(from, len(all)), min(max(to, 0), len(all))
	from = min(from, to)
	if p.First != nil {
		to = min(to, from+int(*n))
	} else {
		from = max(from, to-int(*n))
	}
	nodes := all[from:to]
	c := &connection[T]{Nodes: &nodes, TotalCount: int32(len(all)), PageInfo: graphInfo{HasPreviousPage: from > 0, HasNextPage: to < len(all)}}
	if len(nodes) > 0 {
		start, end := "c"+strconv.Itoa(from), "c"+strconv.Itoa(to-1)
		c.PageInfo.StartCursor, c.PageInfo.EndCursor = &start, &end
	}
	return c, nil
}

func cursor(s string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(s, "c"))
	return n
}

// graphSaid is a comment, a review or a review comment.
type graphSaid struct {
	ID                graphql.ID
	FullDatabaseID    *plain
	Author            *graphActor
	AuthorAssociation string
	Body              string
	CreatedAt         plain
	LastEditedAt      *plain
	Editor            *graphActor
	IsMinimized       bool
	State             string
	DiffHunk          string
	Commit            *graphCommitOf
	OriginalCommit    *graphCommitOf
	world             *world
}

func (t *graphThread) commentOf(kind string, c *comment) *graphSaid {
	s := &graphSaid{ID: graphql.ID(nodeID(kind, c.id)), FullDatabaseID: plainID(c.id), Author: actor(c.author), AuthorAssociation: t.repo.repository.association(c.author),
		Body: c.body, CreatedAt: *plainTime(c.created), world: t.repo.world}
	if c.updated.After(c.created) {
		s.LastEditedAt = plainTime(c.updated)
		if c.editor != nil {
			s.Editor = actor(c.editor)
		}
	}
	return s
}

func (t *graphThread) Comments(p graphPage) (*connection[graphSaid], error) {
	var all []*graphSaid
	for _, c := range t.of.comments {
		all = append(all, t.commentOf("IssueComment", c))
	}
	return connect(all, p)
}

func (t *graphThread) Reviews(p graphPage) (*connection[graphSaid], error) {
	var all []*graphSaid
	for _, v := range t.of.pull.reviews {
		s := t.commentOf("PullRequestReview", &comment{id: v.id, author: v.author, body: v.body, created: v.submitted})
		s.State, s.Commit = v.state, &graphCommitOf{OID: plain(v.commit)}
		all = append(all, s)
	}
	return connect(all, p)
}

type graphReview struct {
	ID                            graphql.ID
	Path                          string
	Line, StartLine, OriginalLine *int32
	OriginalStartLine             *int32
	DiffSide                      string
	IsResolved, IsOutdated        bool
	comments                      []*graphSaid
}

func (r *graphReview) Comments(p graphPage) (*connection[graphSaid], error) {
	return connect(r.comments, p)
}

// review returns a review thread. The thread is outdated if its line changed in the branch's head.
func (t *graphThread) review(first *reviewComment) *graphReview {
	line := int32(first.line)
	v := &graphReview{ID: graphql.ID(nodeID("PullRequestReviewThread", first.id)), Path: first.path, Line: &line, OriginalLine: &line, DiffSide: "RIGHT",
		IsOutdated: t.outdated(first), IsResolved: first.resolved}
	for _, c := range t.of.pull.comments {
		if c == first || c.answers == first.id {
			s := t.commentOf("PullRequestReviewComment", &c.comment)
			s.DiffHunk, s.OriginalCommit = c.hunk, &graphCommitOf{OID: plain(c.commit)}
			v.comments = append(v.comments, s)
		}
	}
	return v
}

// hunk matches the old side of a hunk header in a diff without context.
var hunk = regexp.MustCompile(`(?m)^@@ -(\d+)(?:,(\d+))? `)

func (t *graphThread) outdated(c *reviewComment) bool {
	out, err := t.repo.repository.git.run(t.repo.call.r.Context(), nil, "diff", "--unified=0", c.commit, t.of.pull.headSHA, "--", c.path)
	if err != nil {
		return true
	}
	for _, m := range hunk.FindAllStringSubmatch(string(out), -1) {
		from, _ := strconv.Atoi(m[1])
		n, err := strconv.Atoi(m[2])
		if err != nil {
			n = 1
		}
		if c.line >= from && c.line < from+n {
			return true
		}
	}
	return false
}

func (t *graphThread) ReviewThreads(p graphPage) (*connection[graphReview], error) {
	var all []*graphReview
	for _, c := range t.of.pull.comments {
		if c.answers == 0 {
			all = append(all, t.review(c))
		}
	}
	return connect(all, p)
}

type graphFile struct {
	Path                 string
	Additions, Deletions int32
	ChangeType           string
}

func (t *graphThread) Files(ctx context.Context, p graphPage) (*connection[graphFile], error) {
	between := t.of.pull.baseSHA + "..." + t.of.pull.headSHA
	out, err := t.repo.repository.git.run(ctx, nil, "diff", "--no-renames", "--raw", "--numstat", between)
	if err != nil {
		return nil, err
	}
	names := map[string]string{"A": "ADDED", "D": "DELETED", "M": "MODIFIED", "T": "CHANGED"}
	changes := map[string]string{} // by path
	var all []*graphFile
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch len(f) {
		case 2: // ":100644 100644 1234567 89abcde M", path; git prints these lines first
			changes[f[1]] = names[f[0][len(f[0])-1:]]
		case 3:
			added, _ := strconv.Atoi(f[0]) // "-" for binary files
			deleted, _ := strconv.Atoi(f[1])
			all = append(all, &graphFile{f[2], int32(added), int32(deleted), changes[f[2]]})
		}
	}
	return connect(all, p)
}

type graphCommit struct{ Commit graphCommitOf }

type graphCommitOf struct {
	OID             plain
	MessageHeadline string
	CommittedDate   plain
	Author          *struct{ Name *string }
}

func (t *graphThread) Commits(ctx context.Context, p graphPage) (*connection[graphCommit], error) {
	list, err := t.repo.repository.git.log(ctx, "--reverse", t.of.pull.baseSHA+".."+t.of.pull.headSHA)
	if err != nil {
		return nil, err
	}
	var all []*graphCommit
	for _, c := range list {
		all = append(all, &graphCommit{graphCommitOf{plain(c.sha), c.subject, plain(c.committed), &struct{ Name *string }{&c.name}}})
	}
	return connect(all, p)
}

// closing matches a description's reference to an issue that its pull request closes.
var closing = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?) #(\d+)`)

func (t *graphThread) ClosingIssuesReferences(p graphPage) (*connection[graphThread], error) {
	var all []*graphThread
	for _, m := range closing.FindAllStringSubmatch(t.of.body, -1) {
		n, _ := strconv.Atoi(m[1])
		if issue, err := t.repo.repository.thread(n); err == nil && issue.pull == nil {
			all = append(all, t.repo.thread(issue))
		}
	}
	return connect(all, p)
}
