package handlers

import (
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver/thread"
)

// Installation handles the App's installation and removal on an account. A suspension and its end concern the whole
// account.
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
	owner := p.Installation.Account.Login
	if owner != "" && len(p.Repos) == 0 {
		return []Activity{everywhere(forge.Repo{Owner: owner, Installation: p.Installation.ID}, c)}
	}
	return forAll(p, p.Repos, c)
}

// forAll returns a change per repository. It skips empty names, which would mean the whole owner.
func forAll(p *payload, repos []repository, c thread.Change) []Activity {
	var activities []Activity
	for _, r := range repos {
		owner, name, _ := strings.Cut(r.FullName, "/")
		if name == "" {
			continue
		}
		repo := forge.Repo{Owner: owner, Name: name, ID: r.ID, Installation: p.Installation.ID}
		activities = append(activities, everywhere(repo, c))
	}
	return activities
}

// everywhere changes all threads of a repository or owner. A new installation, or a re-created repository, has a new
// id.
func everywhere(repo forge.Repo, c thread.Change) Activity {
	if c.What == "installed" {
		c.Snapshot = &thread.Details{Installation: repo.Installation, RepoID: repo.ID}
	}
	return Activity{Repo: repo, What: changedAll{c}}
}
