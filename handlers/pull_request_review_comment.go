package handlers

import (
	"fmt"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// pullRequestReviewComment reads a remark on a line of a pull request. The agent
// is told the place.
func pullRequestReviewComment(p *payload) []happening {
	c := p.Comment
	hp := happening{
		repo: p.repo(), number: p.Pull.Number,
		snapshot: pullSnapshot(p),
		target:   solver.Target{Kind: "review_comment", ID: c.ID},
		url:      c.HTMLURL, madeAt: c.UpdatedAt,
	}
	switch p.Action {
	case "created", "edited":
		hp.once = once(p.Action, "review_comment", c.ID, hp.madeAt, c.Body)
		was, hasWas := p.was()
		hp.remark = &policy.Remark{
			Source: policy.FromReviewComment, Edited: p.Action == "edited",
			Actor: p.Sender.actor(), Author: c.User.actor(), App: c.App.ID,
			Text: c.Body, Was: was, HasWas: hasWas, SHA: c.CommitID,
			Name: fmt.Sprintf("%s:%d", c.Path, c.Line),
		}
	default:
		hp.note = "a review comment was " + p.Action
	}
	return []happening{hp}
}
