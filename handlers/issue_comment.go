package handlers

import (
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// IssueComment handles comments on issues and pull requests.
type IssueComment struct{ handler }

func issueComment(p *payload) []Activity {
	it := p.about(p.Issue, p.Issue.IsPull())
	p.comment(&it, "issue_comment", policy.FromComment)
	return []Activity{it}
}

func (p *payload) comment(it *Activity, kind string, source policy.Source) {
	c := p.Comment
	it.Target, it.URL, it.MadeAt = thread.Target{Kind: kind, ID: c.ID}, c.HTMLURL, c.Updated
	switch p.Action {
	case "created":
		it.Key = MadeKey(kind, c.ID)
	case "edited":
	default:
		it.What = noted("a comment was " + p.Action)
		return
	}
	it.What = Remarked{Remark: p.text(source, c.Comment)}
}
