package handlers

import (
	"fmt"

	"github.com/pawlbot/pawl/policy"
)

// PullRequestReviewComment handles a comment on a line of a pull request.
type PullRequestReviewComment struct{ handler }

func pullRequestReviewComment(p *payload) []Activity {
	it := p.about(p.Pull, true)
	p.comment(&it, "review_comment", policy.FromReviewComment)
	r, is := it.What.(Remarked)
	if !is {
		it.What = noted("a review comment was " + p.Action)
		return []Activity{it}
	}
	r.Remark.SHA, r.Remark.Name = p.Comment.SHA, fmt.Sprintf("%s:%d", p.Comment.Path, p.Comment.Line)
	return []Activity{it}
}
