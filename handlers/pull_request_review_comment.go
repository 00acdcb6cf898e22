package handlers

import (
	"fmt"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// pullRequestReviewComment reads a remark on a line of a pull request. The agent
// is told the place.
func pullRequestReviewComment(p *github.PullRequestReviewCommentEvent, v via) []happening {
	pr, c := p.GetPullRequest(), p.GetComment()
	hp := happening{
		repo: repo(p.GetRepo(), p.GetInstallation()), number: pr.GetNumber(),
		snapshot: pullSnapshot(pr, p.GetRepo(), p.GetInstallation()),
		target:   solver.Target{Kind: "review_comment", ID: c.GetID()},
		url:      c.GetHTMLURL(), madeAt: c.GetUpdatedAt().Time,
	}
	switch p.GetAction() {
	case "created", "edited":
		hp.once = once(p.GetAction(), "review_comment", c.GetID(), hp.madeAt, c.GetBody())
		was, hasWas := v.was()
		hp.remark = &policy.Remark{
			Source: policy.FromReviewComment, Edited: p.GetAction() == "edited",
			Actor: actor(p.GetSender()), Author: actor(c.GetUser()), App: v.Comment.id(),
			Text: c.GetBody(), Was: was, HasWas: hasWas, SHA: c.GetCommitID(),
			Name: fmt.Sprintf("%s:%d", c.GetPath(), c.GetLine()),
		}
	default:
		hp.note = "a review comment was " + p.GetAction()
	}
	return []happening{hp}
}
