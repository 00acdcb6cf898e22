package handlers

import (
	"github.com/pawlbot/pawl/solver"
)

// branchDeleted ends the work on the issue whose branch was deleted.
func branchDeleted(p *payload) []happening {
	n, ok := issueOfBranch(p.Ref)
	if p.RefType != "branch" || !ok {
		return nil
	}
	return []happening{{
		repo: p.repo(), number: n,
		change: &solver.Change{What: "branch_deleted", By: p.Sender.Login, Detail: p.Ref},
	}}
}
