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
	owner := p.Installation.Account.Login
	if owner != "" && len(p.Repos) == 0 {
		return []Activity{everywhere(forge.Repo{Owner: owner, Installation: p.Installation.ID}, c)}
	}
	return forAll(p, p.Repos, c)
}

// forAll makes a change of each repository. One without a name would be of its whole owner.
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

// everywhere is a change of all threads there. Where the App is installed its id is
// another one than before, and so is that of a repository that was made anew.
func everywhere(repo forge.Repo, c thread.Change) Activity {
	if c.What == "installed" {
		c.Snapshot = &thread.Details{Installation: repo.Installation, RepoID: repo.ID}
	}
	return Activity{Repo: repo, What: changedAll{c}}
}
