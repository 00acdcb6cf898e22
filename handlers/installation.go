package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver/thread"
)

// Installation handles the App's own comings and goings on an account. Of a suspension
// and its end GitHub names no repositories: they concern all of the account.
type Installation struct{ handler }

func installation(p *payload) []Activity {
	var what string
	switch p.Action {
	case "deleted", "suspend":
		what = "uninstalled"
	case "created", "unsuspend":
		what = "installed"
	default:
		return nil
	}
	c := thread.Change{What: what, By: p.Sender.Login, Detail: p.Action}
	if owner := p.Installation.Account.Login; owner != "" && len(p.Repos) == 0 {
		return []Activity{everywhere(forge.Repo{Owner: owner, Installation: p.Installation.ID}, c)}
	}
	return forAll(p, p.Repos, c)
}

// InstallationRepositories handles which repositories an installation gains and loses.
type InstallationRepositories struct{ handler }

func installationRepositories(p *payload) []Activity {
	who := p.Sender.Login
	return append(
		forAll(p, p.ReposRemoved, thread.Change{What: "uninstalled", By: who, Detail: "removed"}),
		forAll(p, p.ReposAdded, thread.Change{What: "installed", By: who, Detail: "added"})...)
}

// forAll makes a change of each repository. One without a name would be of its whole
// owner.
func forAll(p *payload, repos []repository, c thread.Change) []Activity {
	var activities []Activity
	for _, r := range repos {
		if owner, name, ok := strings.Cut(r.FullName, "/"); ok && name != "" {
			activities = append(activities, everywhere(forge.Repo{Owner: owner, Name: name, ID: r.ID, Installation: p.Installation.ID}, c))
		}
	}
	return activities
}

// everywhere is a change of all threads there. Where the App is installed its id is
// another one than before, and so is that of a repository that was made anew.
func everywhere(repo forge.Repo, c thread.Change) Activity {
	if c.What == "installed" {
		c.Snapshot = &thread.Snapshot{Installation: repo.Installation, RepoID: repo.ID}
	}
	return Activity{Repo: repo, Change: &c, everyone: true}
}

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
