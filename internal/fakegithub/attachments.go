package fakegithub

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"

	graphql "github.com/graph-gophers/graphql-go"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	markup "github.com/yuin/goldmark/renderer/html"
)

const attachments = "/user-attachments/assets/"

// Attach stores a file like GitHub's comment box, and returns its address.
func (w repositories) Attach(data []byte) string {
	defer w.act()()
	w.attached = append(w.attached, data)
	return fmt.Sprintf("%s%s%d", w.base, attachments, len(w.attached))
}

// serveAttachment serves a file only with the signature from a rendered text. Like GitHub, it refuses credentials.
func (s *Server) serveAttachment(w http.ResponseWriter, r *http.Request) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, attachments))
	if r.Header.Get("Authorization") != "" || r.URL.Query().Get("jwt") != "secret" || err != nil || n < 1 || n > len(s.world.attached) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(s.world.attached[n-1])
}

// bodyHTML renders a text. Attachments get signed addresses, and other pictures addresses of GitHub's proxy.
func (w *world) bodyHTML(text string) plain {
	var b bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(markup.WithUnsafe())).Convert([]byte(text), &b); err != nil {
		return plain("<pre>" + html.EscapeString(text) + "</pre>")
	}
	before, rest, found := strings.Cut(b.String(), `src="`)
	for shown := before; ; shown += before {
		if !found {
			return plain(shown)
		}
		var address string
		address, rest, _ = strings.Cut(rest, `"`)
		if strings.HasPrefix(address, w.base+attachments) {
			address += "?jwt=secret"
		} else {
			address = "https://camo.githubusercontent.com/0/" + fmt.Sprintf("%x", address)
		}
		shown += `src="` + address + `"`
		before, rest, found = strings.Cut(rest, `src="`)
	}
}

func (t *graphThread) BodyHTML() plain { return t.repo.world.bodyHTML(t.of.body) }
func (s *graphSaid) BodyHTML() plain   { return s.world.bodyHTML(s.Body) }

// graphNode is a node with a global id and a text.
type graphNode struct {
	kind    string
	thread  *graphThread
	comment *graphSaid
}

func (n *graphNode) ID() graphql.ID {
	if n.comment != nil {
		return n.comment.ID
	}
	return n.thread.ID()
}

func (n *graphNode) ToIssue() (*graphThread, bool)       { return n.thread, n.kind == "Issue" }
func (n *graphNode) ToPullRequest() (*graphThread, bool) { return n.thread, n.kind == "PullRequest" }
func (n *graphNode) ToIssueComment() (*graphSaid, bool)  { return n.comment, n.kind == "IssueComment" }
func (n *graphNode) ToReaction() (*graphReaction, bool)  { return nil, false }
func (n *graphNode) ToPullRequestReview() (*graphSaid, bool) {
	return n.comment, n.kind == "PullRequestReview"
}
func (n *graphNode) ToPullRequestReviewComment() (*graphSaid, bool) {
	return n.comment, n.kind == "PullRequestReviewComment"
}

// Nodes returns null for ids that are unknown or invisible to the caller.
func (q *graphQuery) Nodes(args struct{ IDs []graphql.ID }) ([]*graphNode, error) {
	found := map[graphql.ID]*graphNode{}
	for _, r := range q.world.repos {
		if r.deleted || !q.call.sees(r) {
			continue
		}
		in := &graphRepo{r.fullName(), r, q.call, q.world}
		for _, of := range r.threads {
			t := in.thread(of)
			for _, said := range t.everything() {
				found[said.comment.ID] = said
			}
			kind := "Issue"
			if of.pull != nil {
				kind = "PullRequest"
			}
			found[t.ID()] = &graphNode{kind: kind, thread: t}
		}
	}
	var nodes []*graphNode
	for _, id := range args.IDs {
		nodes = append(nodes, found[id])
	}
	return nodes, nil
}

func (t *graphThread) everything() (all []*graphNode) {
	add := func(kind string, c *comment) {
		all = append(all, &graphNode{kind: kind, comment: t.commentOf(kind, c)})
	}
	for _, c := range t.of.comments {
		add("IssueComment", c)
	}
	if t.of.pull == nil {
		return all
	}
	for _, v := range t.of.pull.reviews {
		add("PullRequestReview", &comment{id: v.id, author: v.author, body: v.body, created: v.submitted})
	}
	for _, c := range t.of.pull.comments {
		add("PullRequestReviewComment", &c.comment)
	}
	return all
}
