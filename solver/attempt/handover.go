package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// handsOver reports whether the attempt ends because the server stops, so that another process continues it.
func (a *Attempt) handsOver(ctx context.Context, cause error) bool {
	if stopped(cause) || !a.Env.Closing() {
		return false
	}
	return !errors.Is(context.Cause(ctx), thread.ErrLeaseLost)
}

// handOver keeps the attempt's work for its continuation, with its receipt if the agent had ended.
func (a *Attempt) handOver(ctx context.Context, ended bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTime)
	defer cancel()
	u := a.unfinished(ctx)
	u.Orderly, u.Times, u.Used = true, 1, spentIn(a.Receipt).Plus(a.used())
	if before := a.State.Unfinished; before != nil {
		u.Times += before.Times
	}
	if ended {
		u.Receipt = &a.Receipt
	}
	a.handed = u
}

// handOverTime limits a stopping server's time to keep an attempt's work. It has 30 s to exit, and needs some to
// end the agent and to write the log.
const handOverTime = 12 * time.Second

// unfinished keeps the work of a cut-off attempt, and says where the next one continues. Work that cannot be kept
// is redone.
func (a *Attempt) unfinished(ctx context.Context) *thread.Unfinished {
	r := &a.Receipt
	u := &thread.Unfinished{N: a.N, Backend: a.Backend, Base: a.Ground.Start, Session: r.Session, Place: a.Place}
	if a.Decision.Purpose != policy.ToChange {
		u.Session = ""
		if before := a.State.Unfinished; before.Changed() { // for the next attempt that changes files
			u.Base, u.Commit, u.Place = before.Base, before.Commit, before.Place
		}
		return u
	}
	if a.Kind == config.Command {
		u.Session = "" // plain commands continue none
	}
	if err := a.commitUnfinished(ctx); err != nil {
		a.Log.Warn().Err(err).Msg("the attempt's work could not be kept")
		u.Session = "" // it knows other files
		if a.Ground.Unfinished != nil {
			*u = *a.Ground.Unfinished
			u.N, u.Orderly, u.Times, u.Used = a.N, false, 0, policy.Spent{}
		}
		return u
	}
	u.Commit = r.Commit
	if u.Commit == "" {
		return u
	}
	if err := a.executor.PushUnfinished(ctx); err != nil {
		a.Log.Warn().Err(err).Msg("the attempt's work is kept on this machine only")
	}
	return u
}

// commitUnfinished commits the attempt's work so far. The error says why it cannot be continued.
func (a *Attempt) commitUnfinished(ctx context.Context) error {
	r := &a.Receipt
	if r.Commit == "" {
		ending := r.Ending
		if err := a.executor.Commit(ctx); err != nil {
			return err
		}
		if r.Ending != ending {
			return errors.New(r.Detail) // the files cannot be used
		}
	}
	if len(r.Conflicts)+len(r.Leaks) > 0 {
		return errors.New("it holds conflict markers or what looks like a secret")
	}
	return nil
}

// used is the attempt's use before it was handed over to this server.
func (a *Attempt) used() policy.Spent {
	if u := a.State.Unfinished; u != nil {
		return u.Used
	}
	return policy.Spent{}
}

// keep ends an attempt that was cut off as a loop. Its work goes to a separate branch for users; if that fails, the
// receipt says so.
func (a *Attempt) keep(ctx context.Context, loop LoopCut) {
	r := &a.Receipt
	r.Ending, r.Outcome = policy.Killed, policy.EditLoop
	r.Detail = tail(oneLine(loop.Error()), maxDetail)
	r.Reasons = append(r.Reasons, loop.Error())
	err := a.executor.Commit(ctx)
	if err == nil && r.Commit != "" {
		err = a.executor.PushKept(ctx, a.keptBranch())
	}
	switch {
	case err != nil:
		a.Log.Warn().Err(err).Msg("the work of an edit loop could not be kept")
		r.Reasons = append(r.Reasons, "its work could not be kept: "+err.Error())
	case r.Commit != "":
		r.Kept = a.keptBranch()
		r.Reasons = append(r.Reasons, "its work is kept on branch "+r.Kept)
	case len(r.LeftOut) == 0:
		r.Reasons = append(r.Reasons, "it left the files as they were")
	}
}

// keptBranch is the branch for work that does not reach the thread's branch.
func (a *Attempt) keptBranch() string { return fmt.Sprintf("pawl/kept-%d-%d", a.Thread.Number, a.N) }
