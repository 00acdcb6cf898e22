package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
)

// installation reads the App's own comings and goings on an account. Of a suspension
// and its end GitHub names no repositories: they concern all of the account.
func installation(p *payload) []happening {
	what := ""
	switch p.Action {
	case "deleted", "suspend":
		what = "uninstalled"
	case "created", "unsuspend":
		what = "installed"
	default:
		return nil
	}
	c := solver.Change{What: what, By: p.Sender.Login, Detail: p.Action}
	if owner := p.Installation.Account.Login; owner != "" && len(p.Repos) == 0 {
		return []happening{everywhere(forge.Repo{Owner: owner, Installation: p.Installation.ID}, c)}
	}
	return forAll(p, p.Repos, c)
}

// installationRepositories reads which repositories an installation gained or
// lost.
func installationRepositories(p *payload) []happening {
	who := p.Sender.Login
	return append(
		forAll(p, p.ReposRemoved, solver.Change{What: "uninstalled", By: who, Detail: "removed"}),
		forAll(p, p.ReposAdded, solver.Change{What: "installed", By: who, Detail: "added"})...)
}

// forAll makes a change of each repository. One without a name would be of its whole
// owner.
func forAll(p *payload, repos []repository, c solver.Change) []happening {
	var hs []happening
	for _, r := range repos {
		if owner, name, ok := strings.Cut(r.FullName, "/"); ok && name != "" {
			hs = append(hs, everywhere(forge.Repo{Owner: owner, Name: name, ID: r.ID, Installation: p.Installation.ID}, c))
		}
	}
	return hs
}

// everywhere is a change of all threads there. Where the App is installed its id is
// another one than before, and so is that of a repository that was made anew.
func everywhere(repo forge.Repo, c solver.Change) happening {
	if c.What == "installed" {
		c.Snapshot = &solver.Snapshot{Installation: repo.Installation, RepoID: repo.ID}
	}
	return happening{repo: repo, change: &c, everyone: true}
}
