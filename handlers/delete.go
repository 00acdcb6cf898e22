package handlers

import (
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/solver"
)

// branchDeleted ends the work on the issue whose branch was deleted.
func branchDeleted(p *github.DeleteEvent) []happening {
	n, ok := issueOfBranch(p.GetRef())
	if p.GetRefType() != "branch" || !ok {
		return nil
	}
	return []happening{{
		repo: repo(p.GetRepo(), p.GetInstallation()), number: n,
		change: &solver.Change{What: "branch_deleted", By: p.GetSender().GetLogin(), Detail: p.GetRef()},
	}}
}
