package handlers

import (
	"github.com/pawlbot/pawl/solver"
)

// repositoryChanged ends the work on a repository that is gone, also under its old
// name.
func repositoryChanged(p *payload) []happening {
	hp := happening{repo: p.repo(), everyone: true}
	c := solver.Change{By: p.Sender.Login, Detail: p.Repo.FullName}
	switch p.Action {
	case "renamed":
		hp.repo.Name = p.Changes.Repo.Name.From
		c.What = "renamed"
	case "deleted", "archived":
		c.What = "repository_deleted"
	case "unarchived":
		c.What = "installed"
	default:
		return nil
	}
	if hp.repo.Name == "" { // that would be all of the owner's
		return nil
	}
	hp.change = &c
	return []happening{hp}
}
