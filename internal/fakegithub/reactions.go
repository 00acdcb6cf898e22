package fakegithub

import (
	"slices"
	"strings"
)

func (s *Server) listIssueReactions(c *call) *reply {
	if t := c.thread(); t != nil {
		return page(s, c, t.reactions, s.renderReaction, array)
	}
	return notFound()
}

func (s *Server) listCommentReactions(c *call) *reply {
	if _, m := c.repo.comment(c.id()); m != nil {
		return page(s, c, m.reactions, s.renderReaction, array)
	}
	return notFound()
}

func (s *Server) reactToIssue(c *call) *reply {
	t := c.thread()
	if t == nil {
		return notFound()
	}
	if refused := c.mayTouch(t); refused != nil {
		return refused
	}
	return s.react(c, &t.reactions)
}

func (s *Server) reactToComment(c *call) *reply {
	t, m := c.repo.comment(c.id())
	if m == nil {
		return notFound()
	}
	if refused := c.mayTouch(t); refused != nil {
		return refused
	}
	return s.react(c, &m.reactions)
}

func (s *Server) reactToReviewComment(c *call) *reply {
	for _, t := range c.repo.threads {
		if t.pull == nil {
			continue
		}
		for _, m := range t.pull.comments {
			if m.id == c.id() {
				return s.react(c, &m.reactions)
			}
		}
	}
	return notFound()
}

// react adds a reaction: 201 for a new one, 200 for one that was there. GitHub
// sends no webhook for reactions.
func (s *Server) react(c *call, list *[]reaction) *reply {
	var want struct {
		Content string `json:"content"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if !slices.Contains(strings.Fields(reactionKinds), want.Content) {
		return failed("Reaction", "content", "invalid", "")
	}
	user := c.who.account()
	for _, known := range *list {
		if known.user.id == user.id && known.content == want.Content {
			return ok(s.renderReaction(known))
		}
	}
	fresh := reaction{id: s.world.newID(), user: user, content: want.Content, created: s.now()}
	*list = append(*list, fresh)
	return created(s.renderReaction(fresh))
}
