package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
)

// installation reads the App's own comings and goings on an account.
func installation(p *payload) []happening {
	switch p.Action {
	case "deleted", "suspend":
		return forAll(p, p.Repos, solver.Change{What: "uninstalled", By: p.Sender.Login, Detail: p.Action})
	case "created", "unsuspend":
		return forAll(p, p.Repos, solver.Change{What: "installed", By: p.Sender.Login, Detail: p.Action})
	}
	return nil
}

// installationRepositories reads which repositories an installation gained or
// lost.
func installationRepositories(p *payload) []happening {
	who := p.Sender.Login
	return append(
		forAll(p, p.ReposRemoved, solver.Change{What: "uninstalled", By: who, Detail: "removed"}),
		forAll(p, p.ReposAdded, solver.Change{What: "installed", By: who, Detail: "added"})...)
}

func forAll(p *payload, repos []repository, c solver.Change) []happening {
	var hs []happening
	for _, r := range repos {
		owner, name, _ := strings.Cut(r.FullName, "/")
		hs = append(hs, happening{repo: forge.Repo{Owner: owner, Name: name, ID: r.ID, Installation: p.Installation.ID}, change: &c, everyone: true})
	}
	return hs
}
