package handlers

import (
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/policy"
)

// pullRequestReview reads a review as a whole; its remarks on lines come as
// pull_request_review_comment.
func pullRequestReview(p *github.PullRequestReviewEvent, v via) []happening {
	pr, rv := p.GetPullRequest(), p.GetReview()
	hp := happening{
		repo: repo(p.GetRepo(), p.GetInstallation()), number: pr.GetNumber(),
		snapshot: pullSnapshot(pr, p.GetRepo(), p.GetInstallation()),
		url:      rv.GetHTMLURL(), madeAt: rv.GetSubmittedAt().Time,
	}
	switch p.GetAction() {
	case "submitted", "edited":
		if p.GetAction() == "submitted" { // an edit moves no time
			hp.once = once("created", "review", rv.GetID(), hp.madeAt, "")
		}
		was, hasWas := v.was()
		hp.remark = &policy.Remark{
			Source: policy.FromReview, Edited: p.GetAction() == "edited",
			Actor: actor(p.GetSender()), Author: actor(rv.GetUser()), App: v.Review.id(),
			Text: rv.GetBody(), Was: was, HasWas: hasWas,
			State: strings.ToLower(rv.GetState()), SHA: rv.GetCommitID(),
		}
	default:
		hp.note = "a review was " + p.GetAction()
	}
	if p.GetAction() != "submitted" {
		return []happening{hp}
	}
	return append([]happening{hp}, reviewSignal(hp, rv.GetID(), rv.GetState(), rv.GetCommitID(), actor(p.GetSender()))...)
}
