package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// issueComment reads comments on issues and on pull requests: GitHub sends both
// as issue_comment.
func issueComment(p *payload) []happening {
	issue, c := p.Issue, p.Comment
	hp := happening{
		repo: p.repo(), number: issue.Number,
		snapshot: issueSnapshot(p),
		target:   solver.Target{Kind: "issue_comment", ID: c.ID},
		url:      c.HTMLURL, madeAt: c.UpdatedAt,
	}
	switch p.Action {
	case "created", "edited":
		hp.once = once(p.Action, "issue_comment", c.ID, hp.madeAt, c.Body)
		was, hasWas := p.was()
		hp.remark = &policy.Remark{
			Source: policy.FromComment, Edited: p.Action == "edited",
			Actor: p.Sender.actor(), Author: c.User.actor(), App: c.App.ID,
			Text: c.Body, Was: was, HasWas: hasWas,
		}
	default:
		hp.note = "a comment was " + p.Action
	}
	return []happening{hp}
}

func issueSnapshot(p *payload) solver.Snapshot {
	i := p.Issue
	return solver.Snapshot{
		Installation: p.Installation.ID, RepoID: p.Repo.ID, DefaultBranch: p.Repo.DefaultBranch,
		Title: i.Title, Body: i.Body, Author: i.User.Login, URL: i.HTMLURL, Pull: i.PullLinks != nil,
		Labels: labels(i.Labels),
	}
}

// labels are the names of labels, one a line.
func labels(all []label) string {
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
	}
	return strings.Join(names, "\n")
}
