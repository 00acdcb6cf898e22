package solver

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// Host is where a thread's repository is, and where people see what came of its
// attempts: GitHub, or a Folder of this machine.
type Host interface {
	// reach tells a publisher who Pawl is there, and how to show something.
	reach(ctx context.Context, p *publisher) error
	// complete brings what no event told of the thread.
	complete(ctx context.Context, p *publisher) error
	// publish brings what people are shown into agreement with the log, and openPull
	// opens the pull request for what was pushed.
	publish(ctx context.Context, p *publisher) error
	openPull(ctx context.Context, p *publisher) error
	// context is what an attempt is told beside its task, which is this work.
	context(ctx context.Context, p *publisher, work []thread.Request) ([]attempt.Part, error)
	// permission is what a person may do there now.
	permission(ctx context.Context, p *publisher, login string) (string, error)
	// branch is the branch that is worked on.
	branch(s thread.State, t thread.ID) string
	// commit is who commits, and the end of the message.
	commit(t thread.ID, app forge.App) (name, email, trailer string)
	// remote is where the repository is fetched from and pushed to; with renew its
	// credential was refused, and another one is made.
	remote(ctx context.Context, p *publisher, renew bool) (git.Remote, error)

	// What follows is done with git and agents, which tests play.

	// fetch brings the branches and the repository's configuration, or says why nothing can run.
	fetch(ctx context.Context, p *publisher, g *attempt.Ground) (*thread.Decided, error)
	// pushed reports whether a commit reached the branch.
	pushed(ctx context.Context, p *publisher, g *attempt.Ground, commit string) (bool, error)
	// verifyBase makes what attempts begin with and runs the verify commands on it, or says
	// why nothing can run.
	verifyBase(ctx context.Context, a *attempt.Attempt) (*thread.Decided, error)
	// executor does an attempt.
	executor(a *attempt.Attempt) attempt.Executor
}

// checkouts does what tests play.
type checkouts struct{}

func (checkouts) fetch(ctx context.Context, p *publisher, g *attempt.Ground) (*thread.Decided, error) {
	return g.Fetch(ctx, &p.Env, p.Config, p.thread, p.state.Snapshot, p.Verify)
}

func (checkouts) pushed(ctx context.Context, p *publisher, g *attempt.Ground, commit string) (bool, error) {
	return g.Pushed(ctx, &p.Env, p.thread, commit)
}

func (checkouts) verifyBase(ctx context.Context, a *attempt.Attempt) (*thread.Decided, error) {
	return a.VerifyBase(ctx)
}

func (checkouts) executor(a *attempt.Attempt) attempt.Executor { return attempt.NewCheckout(a) }

type GitHub struct {
	checkouts
	Forge *forge.Client
}

func (h GitHub) reach(ctx context.Context, p *publisher) (err error) {
	p.Forge = h.Forge.Fenced(p.lease.Confirm)
	p.app, err = p.Forge.App(ctx)
	return err
}

// complete asks GitHub for a pull request's branches where no payload told them: a comment's does not.
func (GitHub) complete(ctx context.Context, p *publisher) error {
	n := p.state.Snapshot
	if !n.Pull || n.HeadRef != "" && n.HeadRepoID != 0 {
		return nil
	}
	pull, err := p.Forge.Pull(ctx, p.repo(), p.thread.Number)
	if err != nil {
		return err
	}
	change := thread.Change{What: "closed", By: "somebody"}
	if pull.State == "open" {
		seen := thread.Details{HeadRef: pull.Head.Ref, HeadSHA: pull.Head.SHA, HeadRepoID: pull.Head.Repo.ID, BaseRef: pull.Base.Ref}
		if seen.HeadRepoID == 0 {
			// GitHub names no head repository once the fork is deleted.
			seen.HeadRepoID = -1
		}
		change = thread.Change{What: "seen", Snapshot: &seen}
	}
	if err := p.lease.Record(ctx, thread.KindThread, change); err != nil {
		return err
	}
	return p.load(ctx)
}

func (GitHub) branch(s thread.State, t thread.ID) string { return s.Branch(t) }

// commit is by the App's bot user, the way GitHub links a commit to it.
func (GitHub) commit(t thread.ID, app forge.App) (name, email, trailer string) {
	email = app.BotLogin + "@users.noreply.github.com"
	if app.BotID != 0 {
		email = fmt.Sprintf("%d+%s", app.BotID, email)
	}
	return app.BotLogin, email, fmt.Sprintf("\nRefs: #%d\n", t.Number)
}

// remote has a token that reaches this repository only. GitHub may revoke one at any time.
func (GitHub) remote(ctx context.Context, p *publisher, renew bool) (git.Remote, error) {
	if renew {
		p.Forge.Forget(p.repo())
	}
	token, err := p.Forge.Token(ctx, p.repo())
	if err != nil {
		return git.Remote{}, err
	}
	return git.Remote{URL: p.Forge.CloneURL(p.repo()), Token: token}, nil
}

func (h GitHub) fetch(ctx context.Context, p *publisher, g *attempt.Ground) (*thread.Decided, error) {
	refused, err := h.checkouts.fetch(ctx, p, g)
	if errors.Is(err, git.ErrNotFound) {
		return thread.Refuse(policy.RuleRepositoryGone, "Look whether the App still has access to it; then comment /pawl retry.",
			"GitHub does not show the repository to the App any more"), nil
	}
	return refused, err
}

// Folder is a git repository in a folder, for work without GitHub.
type Folder struct {
	checkouts
	Dir    string
	Branch string // the branch that is worked on; it must not exist yet
}

func (Folder) reach(context.Context, *publisher) error    { return nil }
func (Folder) complete(context.Context, *publisher) error { return nil }
func (Folder) publish(context.Context, *publisher) error  { return nil }
func (Folder) openPull(context.Context, *publisher) error { return nil }
func (f Folder) branch(thread.State, thread.ID) string    { return f.Branch }

func (Folder) commit(thread.ID, forge.App) (name, email, trailer string) {
	return "pawl", "pawl@localhost", ""
}

func (f Folder) remote(context.Context, *publisher, bool) (git.Remote, error) {
	return git.Remote{URL: f.Dir}, nil
}
