package handlers

import (
	"fmt"
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// PullRequestReview handles a review. Its line comments arrive as pull_request_review_comment.
type PullRequestReview struct{ handler }

func pullRequestReview(p *payload) []Activity {
	rv := p.Review
	it := p.about(p.Pull, true)
	switch p.Action {
	case "submitted", "edited":
		return Reviewed(it, rv, p.text(policy.FromReview, rv.Comment))
	case "dismissed":
		it.What = dismissed{rv.ID, p.Sender.Login}
		return []Activity{it}
	}
	it.What = noted("a review was " + p.Action)
	return []Activity{it}
}

// Reviewed returns a review's remark r, and its verdict on the work.
func Reviewed(it Activity, rv forge.Review, r *feedback.Remark) []Activity {
	state := strings.ToLower(rv.State)
	r.State, r.SHA = state, rv.SHA
	it.URL, it.MadeAt, it.Target = rv.HTMLURL, rv.Submitted, thread.Target{}
	it.What = Remarked{Remark: r}
	if rv.Node != "" { // GitHub needs the node ID for a reaction
		it.Target = thread.Target{Kind: "review", ID: rv.ID, Node: rv.Node}
	}
	if r.Edited { // an edit is keyed by its delivery and has no new verdict
		return []Activity{it}
	}
	it.Key = MadeKey("review", rv.ID)
	switch state {
	case "approved", "changes_requested":
	default:
		return []Activity{it}
	}
	verdict := Activity{Repo: it.Repo, Number: it.Number, URL: it.URL, Key: fmt.Sprintf("signal:review:%d", rv.ID)}
	verdict.What = Changed{
		signal: &signal{by: r.Actor},
		Change: &thread.Change{
			What:   state,
			By:     r.Actor.Login,
			Detail: rv.SHA, // the reviewed commit
			Number: it.Number,
			URL:    it.URL,
		},
	}
	return []Activity{it, verdict}
}
