package handlers

import (
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// issues reads what happens to an issue itself.
func issues(p *github.IssuesEvent, v via) []happening {
	i := p.GetIssue()
	hp := happening{
		repo: repo(p.GetRepo(), p.GetInstallation()), number: i.GetNumber(),
		snapshot: issueSnapshot(i, p.GetRepo(), p.GetInstallation()),
		target:   solver.Target{Kind: "issue", ID: int64(i.GetNumber())},
		url:      i.GetHTMLURL(), madeAt: i.GetUpdatedAt().Time,
	}
	who := actor(p.GetSender())
	switch p.GetAction() {
	case "opened":
		hp.remark = &policy.Remark{Source: policy.FromComment, Actor: who, Author: actor(i.GetUser()), App: v.Issue.id(), Text: i.GetBody()}
	case "edited":
		hp.once = once("edited", "description", int64(i.GetNumber()), hp.madeAt, i.GetBody())
		was, hasWas := v.was()
		hp.remark = &policy.Remark{Source: policy.FromDescription, Edited: true, Actor: who, Author: who,
			Text: i.GetBody(), Was: was, HasWas: hasWas}
	case "labeled":
		hp.remark = &policy.Remark{Source: policy.FromLabel, Actor: who, Name: p.GetLabel().GetName()}
	case "closed", "reopened":
		hp.change = &solver.Change{What: p.GetAction(), By: who.Login}
		if p.GetAction() == "closed" {
			hp.once = closedKey(i.GetNumber(), i.GetClosedAt().Time, false)
		}
	case "deleted", "transferred":
		hp.change = &solver.Change{What: "closed", By: who.Login, Detail: p.GetAction()}
	default:
		hp.note = "the issue was " + p.GetAction()
	}
	return []happening{hp}
}
