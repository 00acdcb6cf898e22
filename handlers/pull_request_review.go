package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// pullRequestReview reads a review as a whole; its remarks on lines come as
// pull_request_review_comment.
func pullRequestReview(p *payload) []happening {
	rv := p.Review
	hp := happening{
		repo: p.repo(), number: p.Pull.Number,
		snapshot: pullSnapshot(p),
		url:      rv.HTMLURL, madeAt: rv.SubmittedAt,
	}
	switch p.Action {
	case "submitted", "edited":
		if p.Action == "submitted" { // an edit moves no time
			hp.once = once("created", "review", rv.ID, hp.madeAt, "")
		}
		was, hasWas := p.was()
		hp.remark = &policy.Remark{
			Source: policy.FromReview, Edited: p.Action == "edited",
			Actor: p.Sender.actor(), Author: rv.User.actor(), App: rv.App.ID,
			Text: rv.Body, Was: was, HasWas: hasWas,
			State: strings.ToLower(rv.State), SHA: rv.CommitID,
		}
	default:
		hp.note = "a review was " + p.Action
	}
	if p.Action != "submitted" {
		return []happening{hp}
	}
	return append([]happening{hp}, reviewSignal(hp, rv.ID, rv.State, rv.CommitID, p.Sender.actor())...)
}
