package handlers

import (
	"fmt"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// Issues handles events of an issue.
type Issues struct{ handler }

func issues(p *payload) []Activity {
	it := p.about(p.Issue, p.Issue.IsPull())
	if p.Action == "deleted" || p.Action == "transferred" {
		it.What = Changed{Change: &thread.Change{What: "closed", By: p.Sender.Login, Detail: p.Action}}
	} else {
		p.itself(&it, p.Issue, "issue")
	}
	return []Activity{it}
}

func watchLabel(who feedback.Actor, state string) *feedback.Remark {
	return &feedback.Remark{Source: policy.FromLabel, Actor: who, Name: thread.WatchLabel, State: state}
}

// itself parses events of issues and pull requests.
func (p *payload) itself(it *Activity, i issueOrPull, what string) {
	who := p.Sender
	switch p.Action {
	case "opened":
		it.What = Remarked{Remark: &feedback.Remark{
			Source: policy.FromComment,
			Actor:  who,
			Author: i.Author,
			App:    i.App.ID,
			Text:   i.Body,
		}}
	case "edited":
		was, hasWas := p.was()
		// The bot may have opened the pull request, but the editor made the edit.
		it.What = Remarked{Remark: &feedback.Remark{
			Source: policy.FromDescription,
			Edited: true,
			Actor:  who,
			Author: who,
			Text:   i.Body,
			Was:    was,
			HasWas: hasWas,
		}}
	case "labeled":
		it.What = Remarked{Remark: &feedback.Remark{Source: policy.FromLabel, Actor: who, Name: p.Label.Name}}
	case "unlabeled":
		if !thread.IsWatchLabel(p.Label.Name) {
			it.What = noted(fmt.Sprintf("the %s was %s", what, p.Action))
			return
		}
		it.What = Remarked{Remark: watchLabel(who, feedback.Removed)}
	case "assigned", "review_requested":
		r := feedback.Remark{Source: policy.FromAssignment, Actor: who, Name: "assigned"}
		to := p.Given
		if p.Action == "review_requested" {
			r.Name, to = "asked for a review", p.Asked
		}
		if to == nil { // a team was requested
			it.What = noted(fmt.Sprintf("the %s was %s, and the payload names no user", what, p.Action))
			return
		}
		r.To = *to
		it.What = Remarked{Remark: &r}
	case "closed":
		it.Key = ClosedKey(it.Number, i.Closed, i.Merged)
		c := &thread.Change{What: "closed", By: who.Login, MadeAt: i.Closed}
		if i.Merged {
			c.What = "merged"
		}
		it.What = Changed{Change: c}
	case "reopened":
		it.What = Changed{Change: &thread.Change{What: "reopened", By: who.Login}}
	default:
		it.What = noted(fmt.Sprintf("the %s was %s", what, p.Action))
	}
}
