package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// PullRequestReview handles a review as a whole; its remarks on lines come as pull_request_review_comment.
type PullRequestReview struct{ handler }

func pullRequestReview(p *payload) []Activity {
	rv := p.Review
	it := p.about(p.Pull, true)
	it.Target, it.URL, it.MadeAt = ReviewTarget(rv), rv.HTMLURL, rv.Submitted
	if p.Action != "submitted" && p.Action != "edited" {
		it.note = "a review was " + p.Action
		return []Activity{it}
	}
	it.Remark = p.text(policy.FromReview, rv.Comment)
	it.Remark.State, it.Remark.SHA = strings.ToLower(rv.State), rv.SHA
	if p.Action == "edited" { // which moves no time
		return []Activity{it}
	}
	it.Key = TextKey("created", "review", rv.ID, it.MadeAt, "")
	return append([]Activity{it}, ReviewSignal(it, rv.ID, rv.State, rv.SHA, p.Sender)...)
}

// ReviewTarget is a review as what a reaction answers; zero where GitHub named no node.
func ReviewTarget(r forge.Review) thread.Target {
	if r.Node == "" {
		return thread.Target{}
	}
	return thread.Target{Kind: "review", ID: r.ID, Node: r.Node}
}
