package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/solver/thread"
)

// Push handles what is pushed. It asks for no work, whoever pushed. It is kept in the log of the thread whose
// branch it was, so that /pawl why can tell. On the default branch it may take back what Pawl did.
type Push struct{ handler }

func push(p *payload) []Activity {
	branch, isBranch := strings.CutPrefix(p.Ref, "refs/heads/")
	if isBranch && !p.Deleted && branch == p.Repo.DefaultBranch {
		return revertingPush(p)
	}
	n, ok := issueOfBranch(branch)
	if !ok || p.Deleted {
		return nil
	}
	it := Activity{Repo: p.repo(), Number: n, URL: p.Compare}
	it.Change = &thread.Change{What: "head_moved", By: p.Sender.Login, Detail: p.After}
	return []Activity{it}
}
