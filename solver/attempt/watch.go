package attempt

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// watchInterval is how often a running attempt looks for a reason to end: a stop takes effect within 5 s, on
// whichever node it arrives.
const watchInterval = 500 * time.Millisecond

// Watch is the context of a running attempt. It ends with the cause when a user asks to stop or the thread closes.
// It attends to other events after the attempt's last seen one. The caller must call end, which ends the context
// and waits for its goroutines.
func (a *Attempt) Watch(ctx context.Context) (run context.Context, end func()) {
	run, cancel := context.WithCancelCause(ctx)
	seen := a.Seen
	if _, _, why := a.look(run, seen); why != nil {
		// It came while GitHub was updated, which may take minutes.
		cancel(why)
		return run, func() {}
	}
	var work sync.WaitGroup
	// GitHub may be slow to take an answer, and a stop must not wait for that.
	var attending sync.Mutex
	work.Go(func() {
		wanted := false
		for wait.For(run, watchInterval) == nil {
			last, asked, why := a.look(run, seen)
			if why != nil {
				cancel(why)
				return
			}
			seen, wanted = last, wanted || asked
			if wanted && attending.TryLock() {
				wanted = false
				work.Go(func() { defer attending.Unlock(); a.Attend(run) })
			}
		}
	})
	return run, func() { cancel(nil); work.Wait() }
}

// look reads the events after one. It returns the last event, whether something wants an answer, and why the
// attempt must end, if it must.
func (a *Attempt) look(ctx context.Context, seen int64) (last int64, wanted bool, why error) {
	ctx, cancel := context.WithTimeout(ctx, lease.RenewTime)
	defer cancel()
	events, err := a.Env.Store.Events(ctx, a.Thread, seen)
	if err != nil {
		// The next look asks again; a lost store ends the lease first.
		return seen, false, nil
	}
	return a.scan(events, seen)
}

func (a *Attempt) scan(events []thread.Event, seen int64) (last int64, wanted bool, why error) {
	for _, e := range events {
		seen = e.Seq
		switch e.Kind {
		case thread.KindFeedback, thread.KindControl, thread.KindQuestion:
			wanted = true
		}
	}
	switch probe := a.meanwhile(events); {
	case probe.Stopped != "":
		why = errStopped
	case probe.Closed != "":
		why = errClosed
	}
	return seen, wanted, why
}

// meanwhile folds the events during the attempt alone.
func (a *Attempt) meanwhile(events []thread.Event) (s thread.State) {
	for _, e := range events {
		if err := s.Apply([]thread.Event{e}); err != nil {
			a.Log.Error().Err(err).Int64("seq", e.Seq).Msg("event cannot be read")
		}
	}
	return s
}

// Unasked is an error after a user asked to stop or the thread was closed: a push may come long after its agent
// ended, if the store or GitHub was away.
func (a *Attempt) Unasked(ctx context.Context) (why error) {
	err := a.Lease.Outlast(ctx, func(ctx context.Context) error {
		events, err := a.Env.Store.Events(ctx, a.Thread, a.State.Seq)
		_, _, why = a.scan(events, a.State.Seq)
		return err
	})
	return errors.Join(why, err)
}

// How long a push waits for GitHub: outageFirst, doubled after each try up to outageMost, outageWait in all,
// several times a typical outage of GitHub.
const (
	outageFirst = 2 * time.Second
	outageMost  = 2 * time.Minute
	outageWait  = 6 * time.Hour
)

// deliver pushes an attempt's work. While GitHub does not answer, the commit is kept and the push retried: redoing
// it would cost an agent's run. The attempt keeps its lease and releases what other attempts need; a stopping
// server hands the commit over. errStopped and errClosed say that a user ended the wait.
func (a *Attempt) deliver(ctx context.Context) error {
	began := a.Env.Now()
	for try := 1; ; try++ {
		err := a.Allowed(ctx)
		if err == nil {
			err = a.executor.Push(ctx)
		}
		again, away := comesBack(err, a.Env.Now().Add(policy.Retry(try, outageFirst, outageMost, 1)))
		if !away || again.After(began.Add(outageWait)) {
			return err
		}
		a.Log.Warn().Err(err).Str("commit", a.Receipt.Commit).Time("until", again).Msg("GitHub is away: the attempt's commit is kept and pushed later")
		a.Release()              // the rest needs no account, and others may have repositories that answer
		run, end := a.Watch(ctx) // for a stop or a closing; other events are attended to
		err = wait.For(run, again.Sub(a.Env.Now()))
		if end(); err != nil {
			return err
		}
	}
}

// comesBack reports whether a call failed because GitHub was away, throttled Pawl, or refused the App's tokens, as
// it does while the machine's clock is wrong; and when to retry: then, unless GitHub said more.
func comesBack(err error, then time.Time) (again time.Time, away bool) {
	if limited, ok := errors.AsType[*forge.RateLimited](err); ok {
		return limited.Until, true
	}
	for _, kind := range []error{forge.ErrUnavailable, forge.ErrUnauthorized, git.ErrUnavailable} {
		if errors.Is(err, kind) {
			return then, true
		}
	}
	return time.Time{}, false
}
