package solver

import (
	"context"
	"errors"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// trialBranch is where a trial would work: no such branch exists, so that it begins with the default branch.
const trialBranch = "pawl/trial"

// trial is a Host whose repository is tried: what begins an attempt is done, and nothing more.
type trial struct{ Host }

func (trial) branch(thread.State, thread.ID) string { return trialBranch }

// Try does for a repository what comes before a first attempt: it is fetched, its configuration read, its image pulled,
// its setup run and its verify commands run on the default branch. What they came to is in the result. Refused is why
// no attempt could begin, and the result is what was known by then. No agent is asked and nothing is written at the
// Host. The solver should be one of its own, with an empty store and data directory: nothing that is kept is used.
func (s *Solver) Try(given context.Context, repo forge.Repo) (_ *attempt.Ground, refused *thread.Decided, err error) {
	t := thread.ID{Owner: repo.Owner, Name: repo.Name, Number: 1}
	asked := time.Now()
	l, err := s.Store.Acquire(given, t, s.Node, s.Now())
	if err != nil {
		return nil, nil, err
	}
	ctx, holder := lease.Hold(given, s.Store, l, asked, s.Now)
	defer holder.Release(nil)
	st := &step{publisher: &publisher{Solver: s, Config: s.Current(), thread: t, lease: holder, log: s.Log, plain: s.Log}}
	st.state.Snapshot = thread.Details{RepoID: repo.ID, Installation: repo.Installation}
	s.Host = trial{s.Host}
	if err := s.Host.reach(ctx, st.publisher); err != nil {
		return nil, nil, err
	}
	g := st.ground()
	if refused, err = s.Host.fetch(ctx, st.publisher, g); refused != nil || err != nil {
		return g, refused, err
	}
	a := &attempt.Attempt{
		Env: &s.Env, Config: s.Current(), Thread: t, Started: thread.Started{N: 1}, State: st.state, Lease: holder, Log: s.Log, Ground: g, Span: st.span,
		Attend: func(context.Context) {},
	}
	refused, err = s.Host.verifyBase(ctx, a)
	return g, refused, errors.Join(err, ctx.Err())
}
