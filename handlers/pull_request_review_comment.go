package handlers

import (
	"context"
	"fmt"

	"github.com/pawlbot/pawl/policy"
)

// PullRequestReviewComment handles a remark on a line of a pull request.
type PullRequestReviewComment struct{ *Handlers }

func (PullRequestReviewComment) Handles() []string { return []string{"pull_request_review_comment"} }

func (h PullRequestReviewComment) Handle(ctx context.Context, event, guid string, payload []byte) error {
	return h.take(ctx, event, guid, payload, pullRequestReviewComment)
}

// pullRequestReviewComment reads a remark on a line of a pull request. The agent
// is told the place.
func pullRequestReviewComment(p *payload) []Activity {
	it := p.about(p.Pull, true)
	p.comment(&it, "review_comment", policy.FromReviewComment)
	if it.Remark == nil {
		it.note = "a review comment was " + p.Action
		return []Activity{it}
	}
	it.Remark.SHA, it.Remark.Name = p.Comment.SHA, fmt.Sprintf("%s:%d", p.Comment.Path, p.Comment.Line)
	return []Activity{it}
}
