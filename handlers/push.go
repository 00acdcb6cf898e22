package handlers

import (
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/solver"
)

// push asks for no work, whoever pushed. It is kept in the log of the thread
// whose branch it was, so that /pawl why can tell. On the default branch it may
// take back what Pawl did.
func push(p *github.PushEvent) []happening {
	r := p.GetRepo()
	branch, isBranch := strings.CutPrefix(p.GetRef(), "refs/heads/")
	if isBranch && !p.GetDeleted() && branch == r.GetDefaultBranch() {
		return revertingPush(p)
	}
	n, ok := issueOfBranch(branch)
	if !ok || p.GetDeleted() {
		return nil
	}
	hp := happening{number: n, url: p.GetCompare()}
	hp.repo = pushedRepo(p)
	hp.change = &solver.Change{What: "head_moved", By: p.GetSender().GetLogin(), Detail: p.GetAfter()}
	return []happening{hp}
}
