package handlers

import (
	"context"
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// PullRequestReview handles a review as a whole.
type PullRequestReview struct{ *Handlers }

func (PullRequestReview) Handles() []string { return []string{"pull_request_review"} }

func (h PullRequestReview) Handle(ctx context.Context, event, guid string, payload []byte) error {
	return h.take(ctx, event, guid, payload, pullRequestReview)
}

// pullRequestReview reads a review as a whole; its remarks on lines come as
// pull_request_review_comment.
func pullRequestReview(p *payload) []Activity {
	rv := p.Review
	it := p.about(p.Pull, true)
	it.Target, it.URL, it.MadeAt = thread.Target{}, rv.HTMLURL, rv.Submitted
	if p.Action != "submitted" && p.Action != "edited" {
		it.note = "a review was " + p.Action
		return []Activity{it}
	}
	it.Remark = p.text(policy.FromReview, forge.Comment{Author: rv.Author, App: rv.App, Body: rv.Body})
	it.Remark.State, it.Remark.SHA = strings.ToLower(rv.State), rv.SHA
	if p.Action == "edited" { // which moves no time
		return []Activity{it}
	}
	it.Key = TextKey("created", "review", rv.ID, it.MadeAt, "")
	return append([]Activity{it}, ReviewSignal(it, rv.ID, rv.State, rv.SHA, p.Sender)...)
}
