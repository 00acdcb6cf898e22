package handlers

import (
	"fmt"
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// PullRequestReview handles a review as a whole; its remarks on lines come as pull_request_review_comment.
type PullRequestReview struct{ handler }

func pullRequestReview(p *payload) []Activity {
	rv := p.Review
	it := p.about(p.Pull, true)
	if p.Action != "submitted" && p.Action != "edited" {
		it.note = "a review was " + p.Action
		return []Activity{it}
	}
	return Reviewed(it, rv, p.text(policy.FromReview, rv.Comment))
}

// Reviewed is what a review says and what it makes of the work; r is its text.
func Reviewed(it Activity, rv forge.Review, r *feedback.Remark) []Activity {
	state := strings.ToLower(rv.State)
	r.State, r.SHA = state, rv.SHA
	it.URL, it.MadeAt, it.Remark, it.Target = rv.HTMLURL, rv.Submitted, r, thread.Target{}
	if rv.Node != "" { // else nobody can react to it
		it.Target = thread.Target{Kind: "review", ID: rv.ID, Node: rv.Node}
	}
	if r.Edited { // which moves no time
		return []Activity{it}
	}
	it.Key = MadeKey("review", rv.ID)
	if state != "approved" && state != "changes_requested" {
		return []Activity{it}
	}
	return []Activity{it, {
		Repo: it.Repo, Number: it.Number, URL: it.URL, signal: &signal{by: r.Actor}, Key: fmt.Sprintf("signal:review:%d", rv.ID),
		Change: &thread.Change{What: state, By: r.Actor.Login, Detail: rv.SHA, Number: it.Number, URL: it.URL}, // Detail is the commit that was reviewed
	}}
}
