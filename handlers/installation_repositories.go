package handlers

import "github.com/pawlbot/pawl/solver/thread"

// InstallationRepositories handles repositories added to or removed from an installation.
type InstallationRepositories struct{ handler }

func installationRepositories(p *payload) []Activity {
	who := p.Sender.Login
	return append(
		forAll(p, p.ReposRemoved, thread.Change{What: "uninstalled", By: who, Detail: "removed"}),
		forAll(p, p.ReposAdded, thread.Change{What: "installed", By: who, Detail: "added"})...)
}
