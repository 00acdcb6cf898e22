package handlers

import (
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
)

// installation reads the App's own comings and goings on an account.
func installation(p *github.InstallationEvent) []happening {
	switch p.GetAction() {
	case "deleted", "suspend":
		return forAll(p.Repositories, p.GetInstallation(), solver.Change{What: "uninstalled", By: p.GetSender().GetLogin(), Detail: p.GetAction()})
	case "created", "unsuspend":
		return forAll(p.Repositories, p.GetInstallation(), solver.Change{What: "installed", By: p.GetSender().GetLogin(), Detail: p.GetAction()})
	}
	return nil
}

// installationRepositories reads which repositories an installation gained or
// lost.
func installationRepositories(p *github.InstallationRepositoriesEvent) []happening {
	who := p.GetSender().GetLogin()
	return append(
		forAll(p.RepositoriesRemoved, p.GetInstallation(), solver.Change{What: "uninstalled", By: who, Detail: "removed"}),
		forAll(p.RepositoriesAdded, p.GetInstallation(), solver.Change{What: "installed", By: who, Detail: "added"})...)
}

func forAll(repos []*github.Repository, in *github.Installation, c solver.Change) []happening {
	var hs []happening
	for _, r := range repos {
		owner, name, _ := strings.Cut(r.GetFullName(), "/")
		hs = append(hs, happening{repo: forge.Repo{Owner: owner, Name: name, ID: r.GetID(), Installation: in.GetID()}, change: &c, everyone: true})
	}
	return hs
}
