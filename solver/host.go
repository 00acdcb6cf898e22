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

// Host is where a thread's repository lives and where results appear: GitHub, or a Folder on this machine.
type Host interface {
	// github is the client for all reads and writes; nil for a folder, which shows nothing.
	github() *forge.Client
	branch(s thread.State, t thread.ID) string
	// commit returns the committer and the end of the commit message.
	commit(t thread.ID, app forge.App) (name, email, trailer string)
	// remote returns the remote to fetch from and push to. renew replaces a refused credential.
	remote(ctx context.Context, p *publisher, renew bool) (git.Remote, error)

	// Tests replace the methods below, which use git and agents.

	// fetch fetches the branches and the repository's configuration, or returns a decision if no attempt can run.
	fetch(ctx context.Context, p *publisher, g *attempt.Ground) (*thread.Decided, error)
	// reconcile merges a conflicting base into the attempt's start.
	reconcile(ctx context.Context, g *attempt.Ground) error
	pushed(ctx context.Context, p *publisher, g *attempt.Ground, commit string) (bool, error)
	// verifyBase builds the layer and runs the verify commands on the base, or returns a decision if no attempt can run.
	verifyBase(ctx context.Context, a *attempt.Attempt) (*thread.Decided, error)
	executor(a *attempt.Attempt) attempt.Executor
}

// checkouts implements the methods that tests replace.
type checkouts struct{}

func (checkouts) fetch(ctx context.Context, p *publisher, g *attempt.Ground) (*thread.Decided, error) {
	return g.Fetch(ctx, p.env, p.Config, p.thread, p.state.Snapshot, p.solver.Verify)
}

func (checkouts) reconcile(ctx context.Context, g *attempt.Ground) error { return g.Reconcile(ctx) }

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

// reach sets the client, whose writes confirm the lease, and looks up Pawl's identity on GitHub.
func (p *publisher) reach(ctx context.Context) (err error) {
	if c := p.solver.Host.github(); c != nil {
		p.Forge = c.Fenced(p.lease.Confirm)
		p.app, err = p.Forge.Apps.Get(ctx)
	}
	return err
}

// complete looks up a pull request's branches if no payload named them: payloads of comments do not.
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
			// GitHub names no head repository after the fork is deleted.
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

// commit names the App's bot user, so that GitHub links the commit to it.
func (GitHub) commit(t thread.ID, app forge.App) (name, email, trailer string) {
	email = app.BotLogin + "@users.noreply.github.com"
	if app.BotID != 0 {
		email = fmt.Sprintf("%d+%s", app.BotID, email)
	}
	return app.BotLogin, email, fmt.Sprintf("\nRefs: #%d\n", t.Number)
}

// remote returns a remote whose token is valid for this repository only. GitHub may revoke the token at any time.
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
		return thread.Refuse(policy.RuleRepositoryGone, "Check whether the App still has access to it; then comment /pawl retry.",
			"GitHub does not show the repository to the App any more"), nil
	}
	return refused, err
}

// Folder is a local git repository, for work without GitHub.
type Folder struct {
	checkouts
	Dir    string
	Branch string // the branch to work on; it must not exist yet
}

func (Folder) github() *forge.Client                   { return nil }
func (f Folder) branch(thread.State, thread.ID) string { return f.Branch }

func (Folder) commit(thread.ID, forge.App) (name, email, trailer string) {
	return "pawl", "pawl@localhost", ""
}

func (f Folder) remote(context.Context, *publisher, bool) (git.Remote, error) {
	return git.Remote{URL: f.Dir}, nil
}

// fresh is how long a permission that was checked with a request stays valid.
const fresh = 5 * time.Minute

// askedLongAgo reports whether all requests for a purpose are older than fresh, as after a wait or a retry.
func (s *step) askedLongAgo(p policy.Purpose) bool {
	return !slices.ContainsFunc(s.pub.state.Work(p), func(r thread.Request) bool { return s.pub.env.Now().Sub(r.At) < fresh })
}

// stillAllowed checks again whether a requester may still write, if the decision's requests are old.
func (s *step) stillAllowed(ctx context.Context, d policy.Decision) error {
	old := s.askedLongAgo(d.Purpose)
	if d.Round > 0 {
		old = s.pub.env.Now().Sub(s.pub.state.Watch.At) >= fresh
	}
	if !old {
		return nil
	}
	return s.pub.allowedFor(ctx, d)
}

// allowedFor checks whether a requester of an attempt may still write. For a round, that is the user who asked for the
// watch. Without the permission, the watch ends.
func (p *publisher) allowedFor(ctx context.Context, d policy.Decision) error {
	if d.Round == 0 {
		return p.allowed(ctx, p.state.Work(d.Purpose))
	}
	asker := thread.Request{Feedback: p.state.Watch.Feedback}
	if p.Forge == nil || fromMachine(asker) {
		return nil
	}
	allowed, err := p.anyWrites(ctx, []thread.Request{asker})
	if allowed || err != nil {
		return err
	}
	ended := thread.Watched{Refused: asker.By.Login + " may not write to the repository any more"}
	return errors.Join(p.lease.Record(ctx, thread.KindWatched, ended), attempt.ErrRevoked)
}

// allowed checks again whether a requester may still write: before a delayed attempt, before its push, and before each
// later act (may). The requesters are the users who asked for the work. If only machines did, it is the last user who
// asked for a change. If no requester may write, the error is ErrRevoked and their requests are withdrawn. Work that no
// user ever asked for is not checked.
func (p *publisher) allowed(ctx context.Context, work []thread.Request) error {
	if p.Forge == nil { // a folder belongs to its user
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

// fromMachine reports whether no user made the request.
func fromMachine(r thread.Request) bool { return r.By.Login == "" || r.By.Bot() }

// lastAsked returns the last user's request for a change, even if it was withdrawn for this reason; nil for none.
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

func ended(s thread.State) bool { return s.Stopped != "" || s.Closed != "" }

// may checks the permission before Pawl opens the pull request, marks it ready, requests a review or resolves remarks.
// It returns false without an error if the log already says that no requester may write.
func (p *publisher) may(ctx context.Context) (bool, error) {
	s := p.state
	revoked := s.Decision != nil && s.Decision.Rule == policy.RuleRevoked
	if revoked && !s.Open() {
		return false, nil
	}
	last := s.LastChange().N
	s.Attempts = slices.DeleteFunc(slices.Clone(s.Attempts), func(a thread.Attempt) bool { return a.N >= last })
	err := p.allowed(ctx, s.Work(policy.ToChange)) // the last attempt's requests, and newer ones
	return err == nil, err
}

// Try does everything that precedes a repository's first attempt. It fetches, reads the configuration, pulls the image,
// runs the setup, and verifies the default branch. refused says why no attempt could begin; the Ground is then
// incomplete. Try runs no agent and writes nothing to the Host. The solver should have an empty store and data
// directory, so that nothing cached is used.
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
	g.Branch = "pawl/trial" // does not exist, so it starts from the default branch
	refused, err = s.Host.fetch(ctx, st.pub, g)
	if refused != nil || err != nil {
		return g, refused, err
	}
	a := st.newAttempt(thread.Started{N: 1}, g)
	a.Attend = func(context.Context) {}
	refused, err = s.Host.verifyBase(ctx, a)
	return g, refused, errors.Join(err, ctx.Err())
}
