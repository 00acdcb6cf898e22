package handlers

import (
	"github.com/pawlbot/pawl/solver/thread"
)

// PullRequest handles events of a pull request.
type PullRequest struct{ handler }

func pullRequest(p *payload) []Activity {
	it := p.about(p.Pull, true)
	if p.Action == "synchronize" {
		it.What = Changed{Change: &thread.Change{What: "head_moved", By: p.Sender.Login, Detail: p.Pull.Head.SHA}}
		return append(p.forkConfig(), it)
	}
	p.itself(&it, p.Pull, "pull request")
	if p.Action == "closed" && p.Pull.Merged {
		return append([]Activity{it}, revertingPull(it, p.Pull, p.Sender)...)
	}
	return append(p.forkConfig(), it)
}
