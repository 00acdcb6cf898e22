package handlers

import (
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// pullRequest reads what happens to a pull request itself.
func pullRequest(p *payload) []happening {
	pr := p.Pull
	hp := happening{
		repo: p.repo(), number: p.Number,
		snapshot: pullSnapshot(p),
		target:   solver.Target{Kind: "issue", ID: int64(p.Number)},
		url:      pr.HTMLURL, madeAt: pr.UpdatedAt,
	}
	who := p.Sender.actor()
	switch p.Action {
	case "opened":
		hp.remark = &policy.Remark{Source: policy.FromComment, Actor: who, Author: pr.User.actor(), App: pr.App.ID, Text: pr.Body}
	case "edited":
		hp.once = once("edited", "description", int64(p.Number), hp.madeAt, pr.Body)
		was, hasWas := p.was()
		// The bot may have opened the pull request, but the edit is the editor's.
		hp.remark = &policy.Remark{Source: policy.FromDescription, Edited: true, Actor: who, Author: who,
			Text: pr.Body, Was: was, HasWas: hasWas}
	case "labeled":
		hp.remark = &policy.Remark{Source: policy.FromLabel, Actor: who, Name: p.Label.Name}
	case "closed":
		hp.change = &solver.Change{What: "closed", By: who.Login, MadeAt: pr.ClosedAt}
		hp.once = closedKey(p.Number, pr.ClosedAt, pr.Merged)
		if pr.Merged {
			hp.change.What = "merged"
			return append([]happening{hp}, revertingPull(hp, pr, who)...)
		}
	case "reopened":
		hp.change = &solver.Change{What: "reopened", By: who.Login}
	case "synchronize":
		hp.change = &solver.Change{What: "head_moved", By: who.Login, Detail: pr.Head.SHA}
	default:
		hp.note = "the pull request was " + p.Action
	}
	return []happening{hp}
}

func pullSnapshot(p *payload) solver.Snapshot {
	pr := p.Pull
	return solver.Snapshot{
		Installation: p.Installation.ID, RepoID: p.Repo.ID, DefaultBranch: p.Repo.DefaultBranch,
		Title: pr.Title, Body: pr.Body, Author: pr.User.Login, URL: pr.HTMLURL, Pull: true,
		Labels:  labels(pr.Labels),
		HeadRef: pr.Head.Ref, HeadSHA: pr.Head.SHA, HeadRepoID: pr.Head.Repo.ID,
		BaseRef: pr.Base.Ref,
	}
}
