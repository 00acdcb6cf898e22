package handlers

import (
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/solver"
)

// push asks for no work, whoever pushed. It is kept in the log of the thread
// whose branch it was, so that /pawl why can tell.
func push(p *github.PushEvent) []happening {
	n, ok := issueOfBranch(strings.TrimPrefix(p.GetRef(), "refs/heads/"))
	if !ok || p.GetDeleted() {
		return nil
	}
	r := p.GetRepo()
	hp := happening{number: n, url: p.GetCompare()}
	hp.repo.Owner, hp.repo.Name, hp.repo.ID, hp.repo.Installation = r.GetOwner().GetLogin(), r.GetName(), r.GetID(), p.GetInstallation().GetID()
	hp.change = &solver.Change{What: "head_moved", By: p.GetSender().GetLogin(), Detail: p.GetAfter()}
	return []happening{hp}
}
