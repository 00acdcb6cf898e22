package handlers

import (
	"context"
	"errors"

	"github.com/pawlbot/pawl/internal/commands"
	"github.com/pawlbot/pawl/solver/thread"
)

// Repository handles changes of a repository. Work on a removed repository ends.
type Repository struct{ handler }

func repositoryChanged(p *payload) []Activity {
	it := Activity{Repo: p.repo()}
	c := thread.Change{By: p.Sender.Login, Detail: p.Repo.FullName}
	switch p.Action {
	case "renamed":
		it.Repo.Name = p.Changes.Repo.Name.From
		c.What = "renamed"
	case "transferred":
		it.Repo.Owner = p.formerOwner()
		c.What = "renamed"
	case "deleted", "archived":
		c.What, c.Detail = "repository_deleted", p.Action
	case "unarchived":
		c.What = "installed"
	default:
		return nil
	}
	if it.Repo.Name == "" || it.Repo.Owner == "" { // an empty name would mean all of the owner's repositories
		return nil
	}
	it.What = changedAll{c}
	return []Activity{it}
}

// pause pauses or unpauses the repository before the command is logged. So a crash in between only repeats the command.
// If nothing changed, the answer explains why.
func (h *Handlers) pause(ctx context.Context, t thread.ID, f thread.Feedback) (thread.NewEvent, error) {
	by := commands.Actor{Login: f.By.Login, ID: f.By.ID, Where: "in a comment", At: h.Now()}
	err := commands.OnRepository(ctx, h.Store, f.Command, t.Owner, t.Name, by)
	cannot, _ := errors.AsType[commands.CannotError](err)
	if cannot != "" {
		err = nil
	}
	f.Word = cannot.Error()
	return thread.NewEvent{Kind: thread.KindQuestion, At: h.Now(), Data: f}, err
}
