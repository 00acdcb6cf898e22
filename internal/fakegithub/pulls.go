package fakegithub

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

func (s *Server) listPulls(c *call) *reply {
	state, head, base := c.query("state", "open"), c.query("head", ""), c.query("base", "")
	var list []*thread
	for _, t := range c.repo.threads {
		if t.pull == nil || (state != "all" && t.state != state) || (base != "" && t.pull.baseRef != base) {
			continue
		}
		if head != "" && !strings.EqualFold(head, t.pull.from.owner.login+":"+t.pull.headRef) {
			continue
		}
		list = append(list, t)
	}
	if c.query("direction", "desc") == "desc" {
		slices.Reverse(list)
	}
	return page(s, c, list, func(t *thread) obj { return s.renderPullSimple(c.repo, t) }, array)
}

// pullWish is what POST /pulls asks for.
type pullWish struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Head  string `json:"head"`
	Base  string `json:"base"`
	Draft bool   `json:"draft"`
}

func (s *Server) createPull(c *call) *reply {
	var want pullWish
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if !c.has("contents:read") {
		return c.forbidden("contents:read")
	}
	t, bad := s.openPull(c.context(), c.repo, c.who.account(), c.who.via(), want)
	if bad != nil {
		return bad
	}
	rep := created(s.renderPull(c.repo, t))
	rep.header.Set("Location", rep.body.(obj)["url"].(string))
	return rep
}

// openPull validates as GitHub does and sends the opened event.
func (s *Server) openPull(ctx context.Context, r *repository, by *account, via *app, want pullWish) (*thread, *reply) {
	if bad := checkThread("PullRequest", &want.Title, &want.Body); bad != nil {
		return nil, bad
	}
	from, head := s.world.headOf(r, want.Head)
	if from == nil || from.branches[head] == "" {
		return nil, failed("PullRequest", "head", "invalid", "")
	}
	headSHA, baseSHA := from.branches[head], r.branches[want.Base]
	if baseSHA == "" {
		return nil, failed("PullRequest", "base", "invalid", "")
	}
	for _, t := range r.threads {
		if t.pull != nil && t.state == "open" && t.pull.from == from && t.pull.headRef == head && t.pull.baseRef == want.Base {
			return nil, failed("PullRequest", "", "custom", "A pull request already exists for "+from.owner.login+":"+head+".")
		}
	}
	if err := r.bring(ctx, from, headSHA); err != nil {
		return nil, problem(http.StatusInternalServerError, err.Error())
	}
	diff, err := r.compare(ctx, baseSHA, headSHA)
	switch {
	case err != nil:
		return nil, failed("PullRequest", "", "custom", "The "+head+" branch has no history in common with "+want.Base)
	case diff.commits == 0:
		return nil, failed("PullRequest", "", "custom", "No commits between "+want.Base+" and "+head)
	}
	t := s.addThread(r, by, via, want.Title, want.Body)
	t.pull = &pull{id: s.world.newID(), draft: want.Draft, from: from, headRef: head, headSHA: headSHA, baseRef: want.Base, baseSHA: baseSHA}
	if err := s.measure(ctx, r, t); err != nil {
		return nil, problem(http.StatusInternalServerError, err.Error())
	}
	s.emitThread(r, t, "opened", by, nil)
	return t, nil
}

// pullOf finds the pull request of the call, nil if there is none.
func (c *call) pullOf() *thread {
	if t := c.thread(); t != nil && t.pull != nil {
		return t
	}
	return nil
}

func (s *Server) getPull(c *call) *reply {
	if t := c.pullOf(); t != nil {
		return ok(s.renderPull(c.repo, t))
	}
	return notFound()
}

func (s *Server) updatePull(c *call) *reply {
	t := c.pullOf()
	if t == nil {
		return notFound()
	}
	if refused := s.editThread(c, t, "PullRequest"); refused != nil {
		return refused
	}
	return ok(s.renderPull(c.repo, t))
}

func (s *Server) listReviews(c *call) *reply {
	t := c.pullOf()
	if t == nil {
		return notFound()
	}
	return page(s, c, t.pull.reviews, func(v *review) obj { return s.renderReview(c.repo, t, v) }, array)
}

func (s *Server) listReviewComments(c *call) *reply {
	t := c.pullOf()
	if t == nil {
		return notFound()
	}
	return page(s, c, t.pull.comments, func(m *reviewComment) obj { return s.renderReviewComment(c.repo, t, m) }, array)
}

// addReview records a review and sends it; GitHub writes the state in lower
// case in webhooks.
func (s *Server) addReview(r *repository, t *thread, by *account, state, body string) *review {
	v := &review{id: s.world.newID(), author: by, body: body, state: state, commit: t.pull.headSHA, submitted: s.now()}
	t.pull.reviews = append(t.pull.reviews, v)
	t.updated = v.submitted
	rendered := s.renderReview(r, t, v)
	rendered["state"], rendered["body"] = strings.ToLower(state), textOrNull(body)
	s.emit("pull_request_review", r, by, obj{"action": "submitted", "review": rendered, "pull_request": s.renderPullSimple(r, t)})
	return v
}

// addReviewComment records a remark on one line of the new side.
func (s *Server) addReviewComment(ctx context.Context, r *repository, t *thread, v *review, file string, line int, body string) (*reviewComment, error) {
	hunk, err := r.hunk(ctx, t.pull.baseSHA, t.pull.headSHA, file)
	if err != nil {
		return nil, err
	}
	now := s.now()
	m := &reviewComment{comment: comment{id: s.world.newID(), author: v.author, body: body, created: now, updated: now},
		review: v.id, path: file, line: line, hunk: hunk, commit: t.pull.headSHA}
	t.pull.comments = append(t.pull.comments, m)
	t.updated = now
	s.emit("pull_request_review_comment", r, v.author, obj{"action": "created", "comment": s.renderReviewComment(r, t, m),
		"pull_request": s.renderPullSimple(r, t)})
	return m, nil
}
