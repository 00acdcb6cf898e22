package handlers

import (
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// issueComment reads comments on issues and on pull requests: GitHub sends both
// as issue_comment.
func issueComment(p *github.IssueCommentEvent, v via) []happening {
	issue, c := p.GetIssue(), p.GetComment()
	hp := happening{
		repo: repo(p.GetRepo(), p.GetInstallation()), number: issue.GetNumber(),
		snapshot: issueSnapshot(issue, p.GetRepo(), p.GetInstallation()),
		target:   solver.Target{Kind: "issue_comment", ID: c.GetID()},
		url:      c.GetHTMLURL(), madeAt: c.GetUpdatedAt().Time,
	}
	switch p.GetAction() {
	case "created", "edited":
		hp.once = once(p.GetAction(), "issue_comment", c.GetID(), hp.madeAt, c.GetBody())
		was, hasWas := v.was()
		hp.remark = &policy.Remark{
			Source: policy.FromComment, Edited: p.GetAction() == "edited",
			Actor: actor(p.GetSender()), Author: actor(c.GetUser()), App: v.Comment.id(),
			Text: c.GetBody(), Was: was, HasWas: hasWas,
		}
	default:
		hp.note = "a comment was " + p.GetAction()
	}
	return []happening{hp}
}

func issueSnapshot(i *github.Issue, r *github.Repository, in *github.Installation) solver.Snapshot {
	if i == nil {
		i = &github.Issue{}
	}
	return solver.Snapshot{
		Installation: in.GetID(), RepoID: r.GetID(), DefaultBranch: r.GetDefaultBranch(),
		Title: i.GetTitle(), Body: i.GetBody(), Author: i.GetUser().GetLogin(), URL: i.GetHTMLURL(), Pull: i.GetPullRequestLinks() != nil,
		Labels: labels(i.Labels),
	}
}

// labels are the names of labels, one a line.
func labels(all []*github.Label) string {
	var names []string
	for _, l := range all {
		names = append(names, l.GetName())
	}
	return strings.Join(names, "\n")
}
