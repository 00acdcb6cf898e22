package handlers

import (
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// issues reads what happens to an issue itself.
func issues(p *payload) []happening {
	i := p.Issue
	hp := happening{
		repo: p.repo(), number: i.Number,
		snapshot: issueSnapshot(p),
		target:   solver.Target{Kind: "issue", ID: int64(i.Number)},
		url:      i.HTMLURL, madeAt: i.UpdatedAt,
	}
	who := p.Sender.actor()
	switch p.Action {
	case "opened":
		hp.remark = &policy.Remark{Source: policy.FromComment, Actor: who, Author: i.User.actor(), App: i.App.ID, Text: i.Body}
	case "edited":
		hp.once = once("edited", "description", int64(i.Number), hp.madeAt, i.Body)
		was, hasWas := p.was()
		hp.remark = &policy.Remark{Source: policy.FromDescription, Edited: true, Actor: who, Author: who,
			Text: i.Body, Was: was, HasWas: hasWas}
	case "labeled":
		hp.remark = &policy.Remark{Source: policy.FromLabel, Actor: who, Name: p.Label.Name}
	case "closed", "reopened":
		hp.change = &solver.Change{What: p.Action, By: who.Login}
		if p.Action == "closed" {
			hp.change.MadeAt, hp.once = i.ClosedAt, closedKey(i.Number, i.ClosedAt, false)
		}
	case "deleted", "transferred":
		hp.change = &solver.Change{What: "closed", By: who.Login, Detail: p.Action}
	default:
		hp.note = "the issue was " + p.Action
	}
	return []happening{hp}
}
