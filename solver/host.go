package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// Host is where a thread's repository is, and where people see what came of its
// attempts: GitHub, or a Folder of this machine.
type Host interface {
	// github is the client by which all is shown and asked; nil for a folder, on which nothing is.
	github() *forge.Client
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
	return g.Fetch(ctx, p.env, p.Config, p.thread, p.state.Snapshot, p.solver.Verify)
}

func (checkouts) pushed(ctx context.Context, p *publisher, g *attempt.Ground, commit string) (bool, error) {
	return g.Pushed(ctx, p.env, p.thread, commit)
}

func (checkouts) verifyBase(ctx context.Context, a *attempt.Attempt) (*thread.Decided, error) {
	return a.VerifyBase(ctx)
}

func (checkouts) executor(a *attempt.Attempt) attempt.Executor { return attempt.NewCheckout(a) }

type GitHub struct {
	checkouts
	Forge *forge.Client
}

func (h GitHub) github() *forge.Client { return h.Forge }

// reach tells a publisher who Pawl is at GitHub, and how to show something there.
func (p *publisher) reach(ctx context.Context) (err error) {
	if c := p.solver.Host.github(); c != nil {
		p.Forge = c.Fenced(p.lease.Confirm)
		p.app, err = p.Forge.Apps.Get(ctx)
	}
	return err
}

// complete asks GitHub for a pull request's branches where no payload told them: a comment's does not.
func (p *publisher) complete(ctx context.Context) error {
	n := p.state.Snapshot
	if !n.Pull {
		return nil
	}
	if n.HeadRef != "" && n.HeadRepoID != 0 {
		return nil
	}
	pull, err := p.Forge.PullRequests.Get(ctx, p.repo(), p.thread.Number)
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
		p.Forge.Apps.Forget(p.repo())
	}
	token, err := p.Forge.Apps.Token(ctx, p.repo())
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

func (Folder) github() *forge.Client                   { return nil }
func (f Folder) branch(thread.State, thread.ID) string { return f.Branch }

func (Folder) commit(thread.ID, forge.App) (name, email, trailer string) {
	return "pawl", "pawl@localhost", ""
}

func (f Folder) remote(context.Context, *publisher, bool) (git.Remote, error) {
	return git.Remote{URL: f.Dir}, nil
}

// fresh is how long after a person asked for something their permission is not asked for again.
const fresh = 5 * time.Minute

// askedLongAgo reports whether everything that an attempt is to do was asked for long before it begins: it waited, or
// was tried.
func (s *step) askedLongAgo(p policy.Purpose) bool {
	return !slices.ContainsFunc(s.pub.state.Work(p), func(r thread.Request) bool { return s.pub.env.Now().Sub(r.At) < fresh })
}

// allowed asks again whether somebody for whom the work is done may still write to the repository: before an attempt
// that waited begins, before its work is pushed, and before each later act for them (may). Those are the people among who
// asked for it, else whoever asked last for a change: machines only go on with it. Where nobody of them may, it is
// ErrRevoked, and what they asked for is withdrawn. What no person ever asked for is not asked about.
func (p *publisher) allowed(ctx context.Context, work []thread.Request) error {
	if p.Forge == nil { // a folder is worked on by whoever owns it
		return nil
	}
	lost := thread.Withdrawn{Reason: attempt.ErrRevoked.Error()}
	people := slices.DeleteFunc(slices.Clone(work), fromMachine)
	for _, r := range people {
		lost.Seqs = append(lost.Seqs, r.Seq)
	}
	if len(people) == 0 {
		people = p.lastAsked(lost.Reason)
	}
	if len(people) == 0 {
		return nil
	}
	allowed, err := p.anyWrites(ctx, people)
	if allowed || err != nil {
		return err
	}
	if len(lost.Seqs) == 0 {
		return attempt.ErrRevoked
	}
	return errors.Join(p.lease.Record(ctx, thread.KindWithdrawn, lost), attempt.ErrRevoked)
}

// fromMachine reports whether no person asked for something.
func fromMachine(r thread.Request) bool { return r.By.Login == "" || r.By.Bot() }

// lastAsked is the last request of a person for a change, also one that was withdrawn for this reason; none: nobody asked.
func (p *publisher) lastAsked(reason string) []thread.Request {
	for _, r := range slices.Backward(p.state.Feedback) {
		if fromMachine(r) || r.Purpose != policy.ToChange {
			continue
		}
		if r.Withdrawn == "" || r.Withdrawn == reason {
			return []thread.Request{r}
		}
	}
	return nil
}

// anyWrites reports whether one of those who asked may write to the repository.
func (p *publisher) anyWrites(ctx context.Context, asked []thread.Request) (bool, error) {
	byLogin := func(a, b thread.Request) bool { return a.By.Login == b.By.Login }
	for _, r := range slices.CompactFunc(asked, byLogin) {
		permission, err := p.Forge.Repositories.Permission(ctx, p.repo(), r.By.Login)
		if err != nil {
			return false, err
		}
		if feedback.Writes(permission) {
			return true, nil
		}
	}
	return false, nil
}

func (p *publisher) ended() bool { return ended(p.state) }

// ended reports whether the work was stopped, or its thread closed.
func ended(s thread.State) bool { return s.Stopped != "" || s.Closed != "" }

// may asks before Pawl does with the pushed work what it was asked for: opens the pull request, marks it as ready, asks
// for a review, resolves remarks. It is false without an error where the log says already that nobody may.
func (p *publisher) may(ctx context.Context) (bool, error) {
	s := p.state
	revoked := s.Decision != nil && s.Decision.Rule == policy.RuleRevoked
	if revoked && !s.Open() {
		return false, nil
	}
	last := s.LastChange().N
	s.Attempts = slices.DeleteFunc(slices.Clone(s.Attempts), func(a thread.Attempt) bool { return a.N >= last })
	err := p.allowed(ctx, s.Work(policy.ToChange)) // what the last attempt had to do, and what came since
	return err == nil, err
}

// Try does for a repository what comes before a first attempt: it is fetched, its configuration read, its image pulled,
// its setup run and its verify commands run on the default branch. What they came to is in the result. Refused is why
// no attempt could begin, and the result is what was known by then. No agent is asked and nothing is written at the
// Host. The solver should be one of its own, with an empty store and data directory: nothing that is kept is used.
func (s *Solver) Try(given context.Context, repo forge.Repo) (_ *attempt.Ground, refused *thread.Decided, err error) {
	t := thread.ID{Owner: repo.Owner, Name: repo.Name, Number: 1}
	asked := time.Now()
	l, err := s.Env.Store.Acquire(given, t, s.Env.Node)
	if err != nil {
		return nil, nil, err
	}
	ctx, holder := lease.Hold(given, s.Env.Store, l, asked, s.Env.Now)
	defer holder.Release(nil)
	st := s.newStep(t, holder, s.Env.Log)
	st.pub.state.Snapshot = thread.Details{RepoID: repo.ID, Installation: repo.Installation}
	if err := st.pub.reach(ctx); err != nil {
		return nil, nil, err
	}
	g := st.ground()
	g.Branch = "pawl/trial" // no such branch exists, so that it begins with the default branch
	refused, err = s.Host.fetch(ctx, st.pub, g)
	if refused != nil || err != nil {
		return g, refused, err
	}
	a := st.newAttempt(thread.Started{N: 1}, g)
	a.Attend = func(context.Context) {}
	refused, err = s.Host.verifyBase(ctx, a)
	return g, refused, errors.Join(err, ctx.Err())
}
