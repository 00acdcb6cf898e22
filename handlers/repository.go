package handlers

import "github.com/pawlbot/pawl/solver/thread"

// Repository handles what becomes of a repository: the work on one that is gone, also
// under its old name, ends.
type Repository struct{ handler }

func repositoryChanged(p *payload) []Activity {
	it := Activity{Repo: p.repo(), everyone: true}
	c := thread.Change{By: p.Sender.Login, Detail: p.Repo.FullName}
	switch p.Action {
	case "renamed":
		it.Repo.Name = p.Changes.Repo.Name.From
		c.What = "renamed"
	case "deleted", "archived":
		c.What = "repository_deleted"
	case "unarchived":
		c.What = "installed"
	default:
		return nil
	}
	if it.Repo.Name == "" { // that would be all of the owner's
		return nil
	}
	it.Change = &c
	return []Activity{it}
}
