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

// handsOver reports whether a stopping server leaves the attempt to another process.
func (a *Attempt) handsOver(ctx context.Context, cause error) bool {
	if stopped(cause) || !a.Env.Closing() {
		return false
	}
	return !errors.Is(context.Cause(ctx), thread.ErrLeaseLost)
}

// saveHandover saves the attempt's work, and its receipt if the agent had ended.
func (a *Attempt) saveHandover(ctx context.Context, ended bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handoverTime)
	defer cancel()
	u := a.unfinished(ctx)
	u.Orderly, u.Times, u.Used = true, 1, spentIn(a.Receipt).Plus(a.used())
	if before := a.State.Unfinished; before != nil {
		u.Times += before.Times
	}
	if ended {
		u.Receipt = &a.Receipt
	}
	a.handover = u
}

// handoverTime limits how long a stopping server saves work. Within 30 s it must also end agents and write the log.
const handoverTime = 12 * time.Second

// unfinished saves the work of a cut-off attempt. If saving fails, the next attempt repeats the work.
func (a *Attempt) unfinished(ctx context.Context) *thread.Unfinished {
	r := &a.Receipt
	u := &thread.Unfinished{N: a.N, Backend: a.Backend, Account: a.Account, Base: a.Ground.Start, Session: r.Session, Place: a.Place}
	if a.Decision.Purpose != policy.ToChange {
		u.Session = ""
		if before := a.State.Unfinished; before.Changed() { // for the next attempt that changes files
			u.Base, u.Commit, u.Place = before.Base, before.Commit, before.Place
		}
		return u
	}
	if a.Kind == config.Command {
		u.Session = "" // plain commands have no sessions
	}
	if err := a.commitUnfinished(ctx); err != nil {
		a.Log.Warn().Err(err).Msg("the attempt's work could not be kept")
		u.Session = "" // the session would expect other files
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

// commitUnfinished commits the work. An error says why the work cannot be continued.
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

// used returns the use before the handover to this server.
func (a *Attempt) used() policy.Spent {
	if u := a.State.Unfinished; u != nil {
		return u.Used
	}
	return policy.Spent{}
}

// keep pushes a looping attempt's work to a separate branch, or records why that failed.
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
		a.Log.Warn().Err(err).Msg("the work of an edit loop could not be saved")
		r.Reasons = append(r.Reasons, "its work could not be kept: "+err.Error())
	case r.Commit != "":
		r.Kept = a.keptBranch()
		r.Reasons = append(r.Reasons, "its work is kept on branch "+r.Kept)
	case len(r.LeftOut) == 0:
		r.Reasons = append(r.Reasons, "it left the files as they were")
	}
}

func (a *Attempt) keptBranch() string { return fmt.Sprintf("pawl/kept-%d-%d", a.Thread.Number, a.N) }
