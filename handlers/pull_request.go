package handlers

import (
	"slices"

	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// PullRequest handles events of a pull request.
type PullRequest struct{ handler }

func pullRequest(p *payload) []Activity {
	it := p.about(p.Pull, true)
	switch p.Action {
	case "synchronize":
		it.What = Changed{Change: &thread.Change{What: "head_moved", By: p.Sender.Login, Detail: p.Pull.Head.SHA}}
		return append(p.forkConfig(), it)
	case "edited":
		if p.Changes.Base != nil {
			it.What = Changed{Change: &thread.Change{What: "retargeted", By: p.Sender.Login, Detail: p.Pull.Base.Ref}}
			return []Activity{it}
		}
	case "converted_to_draft":
		it.What = Changed{Change: &thread.Change{What: "drafted", By: p.Sender.Login}}
		return []Activity{it}
	}
	p.itself(&it, p.Pull, "pull request")
	if p.Action == "closed" && p.Pull.Merged {
		return append([]Activity{it}, revertingPull(it, p.Pull, p.Sender)...)
	}
	return append(p.forkConfig(), append([]Activity{it}, p.labelled(it)...)...)
}

// labelled repeats the request of the label pawl:watch when its pull request is reopened or leaves draft.
func (p *payload) labelled(it Activity) []Activity {
	switch p.Action {
	case "reopened", "ready_for_review":
	default:
		return nil
	}
	if !slices.ContainsFunc(p.Pull.Labels, func(l label) bool { return thread.IsWatchLabel(l.Name) }) {
		return nil
	}
	it.Key = ""
	it.What = Remarked{Remark: watchLabel(p.Sender, feedback.Present)}
	return []Activity{it}
}
