package fakegithub

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

func (s *Server) listComments(c *call) *reply {
	t := c.thread()
	if t == nil {
		return notFound()
	}
	list := t.comments
	if since, err := time.Parse(time.RFC3339, c.query("since", "")); err == nil {
		list = slices.DeleteFunc(slices.Clone(list), func(m *comment) bool { return m.updated.Before(since) })
	}
	return page(s, c, list, func(m *comment) obj { return s.renderComment(c.repo, t, m) }, array)
}

// text reads and validates the body of a comment.
func (c *call) text() (string, *reply) {
	var want struct {
		Body *string `json:"body"`
	}
	if bad := c.decode(&want); bad != nil {
		return "", bad
	}
	switch {
	case want.Body == nil:
		return "", invalid(`"body" wasn't supplied.`)
	case strings.TrimSpace(*want.Body) == "":
		return "", failed("IssueComment", "data", "unprocessable", "Body cannot be blank")
	case utf8.RuneCountInString(*want.Body) > maxText:
		return "", failed("IssueComment", "body", "custom", "body is too long (maximum is 65536 characters)")
	}
	return *want.Body, nil
}

func (s *Server) createComment(c *call) *reply {
	t := c.thread()
	if t == nil {
		return notFound()
	}
	if refused := c.mayTouch(t); refused != nil {
		return refused
	}
	body, bad := c.text()
	if bad != nil {
		return bad
	}
	m := s.addComment(c.repo, t, c.who.account(), c.who.via(), body)
	rep := created(s.renderComment(c.repo, t, m))
	rep.header.Set("Location", rep.body.(obj)["url"].(string))
	return rep
}

func (s *Server) addComment(r *repository, t *thread, by *account, via *app, body string) *comment {
	m := &comment{id: s.world.newID(), author: by, via: via, body: body, created: s.now(), updated: s.now()}
	t.comments = append(t.comments, m)
	t.updated = m.created
	s.emitComment(r, t, m, "created", by, nil)
	return m
}

// comment finds a comment by id over all threads of the repository.
func (r *repository) comment(id int64) (*thread, *comment) {
	for _, t := range r.threads {
		for _, m := range t.comments {
			if m.id == id {
				return t, m
			}
		}
	}
	return nil, nil
}

func (s *Server) getComment(c *call) *reply {
	t, m := c.repo.comment(c.id())
	if m == nil {
		return notFound()
	}
	return ok(s.renderComment(c.repo, t, m))
}

// ownComment finds the comment of the call and checks that the caller may
// change it.
func (c *call) ownComment() (*thread, *comment, *reply) {
	t, m := c.repo.comment(c.id())
	if m == nil {
		return nil, nil, notFound()
	}
	if refused := c.mayTouch(t); refused != nil {
		return nil, nil, refused
	}
	return t, m, c.mayChange(m.author)
}

func (s *Server) updateComment(c *call) *reply {
	t, m, refused := c.ownComment()
	if refused != nil {
		return refused
	}
	body, bad := c.text()
	if bad != nil {
		return bad
	}
	if body != m.body {
		s.editComment(c.repo, t, m, c.who.account(), body)
	}
	return ok(s.renderComment(c.repo, t, m))
}

func (s *Server) editComment(r *repository, t *thread, m *comment, by *account, body string) {
	from := m.body
	m.body, m.updated = body, s.now()
	s.emitComment(r, t, m, "edited", by, obj{"changes": obj{"body": obj{"from": from}}})
}

func (s *Server) deleteComment(c *call) *reply {
	t, m, refused := c.ownComment()
	if refused != nil {
		return refused
	}
	s.dropComment(c.repo, t, m, c.who.account())
	return noContent()
}

func (s *Server) dropComment(r *repository, t *thread, m *comment, by *account) {
	t.comments = slices.DeleteFunc(t.comments, func(other *comment) bool { return other == m })
	t.updated = s.now()
	s.emitComment(r, t, m, "deleted", by, nil)
}
