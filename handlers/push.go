package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/solver"
)

// push asks for no work, whoever pushed. It is kept in the log of the thread
// whose branch it was, so that /pawl why can tell. On the default branch it may
// take back what Pawl did.
func push(p *payload) []happening {
	branch, isBranch := strings.CutPrefix(p.Ref, "refs/heads/")
	if isBranch && !p.Deleted && branch == p.Repo.DefaultBranch {
		return revertingPush(p)
	}
	n, ok := issueOfBranch(branch)
	if !ok || p.Deleted {
		return nil
	}
	hp := happening{repo: p.repo(), number: n, url: p.Compare}
	hp.change = &solver.Change{What: "head_moved", By: p.Sender.Login, Detail: p.After}
	return []happening{hp}
}
