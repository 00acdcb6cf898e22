package handlers

import "github.com/pawlbot/pawl/solver/thread"

// Delete ends the work on an issue if its branch is deleted.
type Delete struct{ handler }

func branchDeleted(p *payload) []Activity {
	n, ok := issueOfBranch(p.Ref)
	if p.RefType != "branch" || !ok {
		return nil
	}
	gone := &thread.Change{What: "branch_deleted", By: p.Sender.Login, Detail: p.Ref}
	return []Activity{{Repo: p.repo(), Number: n, What: Changed{Change: gone}}}
}
