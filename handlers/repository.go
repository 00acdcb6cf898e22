package handlers

import (
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/solver"
)

// repository ends the work on a repository that is gone, also under its old
// name.
func repository(p *github.RepositoryEvent) []happening {
	hp := happening{repo: repo(p.GetRepo(), p.GetInstallation()), everyone: true}
	c := solver.Change{By: p.GetSender().GetLogin(), Detail: p.GetRepo().GetFullName()}
	switch p.GetAction() {
	case "renamed":
		hp.repo.Name = p.GetChanges().GetRepo().GetName().GetFrom()
		c.What = "renamed"
	case "deleted", "archived":
		c.What = "repository_deleted"
	case "unarchived":
		c.What = "installed"
	default:
		return nil
	}
	hp.change = &c
	return []happening{hp}
}
