package handlers

import (
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// pullRequest reads what happens to a pull request itself.
func pullRequest(p *github.PullRequestEvent, v via) []happening {
	pr := p.GetPullRequest()
	hp := happening{
		repo: repo(p.GetRepo(), p.GetInstallation()), number: p.GetNumber(),
		snapshot: pullSnapshot(pr, p.GetRepo(), p.GetInstallation()),
		target:   solver.Target{Kind: "issue", ID: int64(p.GetNumber())},
		url:      pr.GetHTMLURL(), madeAt: pr.GetUpdatedAt().Time,
	}
	who := actor(p.GetSender())
	switch p.GetAction() {
	case "opened":
		hp.remark = &policy.Remark{Source: policy.FromComment, Actor: who, Author: actor(pr.GetUser()), App: v.PullRequest.id(), Text: pr.GetBody()}
	case "edited":
		hp.once = once("edited", "description", int64(p.GetNumber()), hp.madeAt, pr.GetBody())
		was, hasWas := v.was()
		// The bot may have opened the pull request, but the edit is the editor's.
		hp.remark = &policy.Remark{Source: policy.FromDescription, Edited: true, Actor: who, Author: who,
			Text: pr.GetBody(), Was: was, HasWas: hasWas}
	case "labeled":
		hp.remark = &policy.Remark{Source: policy.FromLabel, Actor: who, Name: p.GetLabel().GetName()}
	case "closed":
		hp.change = &solver.Change{What: "closed", By: who.Login}
		hp.once = closedKey(p.GetNumber(), pr.GetClosedAt().Time, pr.GetMerged())
		if pr.GetMerged() {
			hp.change.What = "merged"
			return append([]happening{hp}, revertingPull(hp, pr, who)...)
		}
	case "reopened":
		hp.change = &solver.Change{What: "reopened", By: who.Login}
	case "synchronize":
		hp.change = &solver.Change{What: "head_moved", By: who.Login, Detail: pr.GetHead().GetSHA()}
	default:
		hp.note = "the pull request was " + p.GetAction()
	}
	return []happening{hp}
}

func pullSnapshot(pr *github.PullRequest, r *github.Repository, in *github.Installation) solver.Snapshot {
	if pr == nil {
		pr = &github.PullRequest{}
	}
	return solver.Snapshot{
		Installation: in.GetID(), RepoID: r.GetID(), DefaultBranch: r.GetDefaultBranch(),
		Title: pr.GetTitle(), Body: pr.GetBody(), Author: pr.GetUser().GetLogin(), URL: pr.GetHTMLURL(), Pull: true,
		Labels:  labels(pr.Labels),
		HeadRef: pr.GetHead().GetRef(), HeadSHA: pr.GetHead().GetSHA(), HeadRepoID: pr.GetHead().GetRepo().GetID(),
		BaseRef: pr.GetBase().GetRef(),
	}
}
