package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/panics"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// watchInterval is how often a running attempt looks for stops. A stop takes effect within 5 s on any node.
const watchInterval = 500 * time.Millisecond

// Watch returns the context of a running attempt, which ends when a user stops it or the thread closes. Watch also
// attends to new events. The caller must call end, which waits for Watch's goroutines.
func (a *Attempt) Watch(ctx context.Context) (run context.Context, end func()) {
	return a.watch(ctx, nil)
}

// watch is Watch for a running agent: it calls steer when a user's text waits for the agent.
func (a *Attempt) watch(ctx context.Context, steer func()) (run context.Context, end func()) {
	run, cancel := context.WithCancelCause(ctx)
	seen := a.Seen
	if _, _, why := a.look(run, seen); why != nil {
		cancel(why)
		return run, func() {}
	}
	var work sync.WaitGroup
	// A stop must not wait for GitHub.
	var attending sync.Mutex
	work.Go(a.guarded(cancel, func() {
		wanted, unread := false, false
		for wait.For(run, watchInterval) == nil {
			last, asked, why := a.look(run, seen)
			if why != nil {
				cancel(why)
				return
			}
			seen, wanted, unread = last, wanted || asked, unread || asked
			if unread && steer != nil {
				unread = !a.noticeSteers(run, steer)
			}
			if wanted && attending.TryLock() {
				wanted = false
				work.Go(a.guarded(cancel, func() { defer attending.Unlock(); a.Attend(run) }))
			}
		}
	}))
	return run, func() { cancel(nil); work.Wait() }
}

// guarded ends the attempt after a panic in the background; its work so far counts.
func (a *Attempt) guarded(end context.CancelCauseFunc, do func()) func() {
	return func() {
		err := panics.Try(func() error { do(); return nil })
		if err != nil {
			a.Log.Error().Err(err).Str("stack", panics.Stack(err)).Msg("the attempt's background work panicked")
			end(cut{ending: policy.Crashed, why: err.Error()})
		}
	}
}

// look reads the events after seen. It returns the last one, whether events need an answer, and why the attempt must
// end.
func (a *Attempt) look(ctx context.Context, seen int64) (last int64, wanted bool, why error) {
	ctx, cancel := context.WithTimeout(ctx, lease.RenewTime)
	defer cancel()
	events, err := a.Env.Store.Events(ctx, a.Thread, seen)
	if err != nil {
		// The next look retries. A lost store ends the lease first.
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
	case a.Decision.Round > 0 && slices.ContainsFunc(events, a.moves):
		why = errMoved
	}
	return seen, wanted, why
}

// moves reports whether the event says that anyone but Pawl moved the branch.
func (a *Attempt) moves(e thread.Event) bool {
	var c thread.Change
	if e.Kind != thread.KindThread || json.Unmarshal(e.Data, &c) != nil {
		return false // a.meanwhile logs unreadable events
	}
	return c.What == "head_moved" && !strings.EqualFold(c.By, a.Author)
}

// meanwhile folds only the events during the attempt.
func (a *Attempt) meanwhile(events []thread.Event) (s thread.State) {
	for _, e := range events {
		if err := s.Apply([]thread.Event{e}); err != nil {
			a.Log.Error().Err(err).Int64("seq", e.Seq).Msg("event cannot be read")
		}
	}
	return s
}

// CheckEnded returns an error after a stop or a closing. It is called before a push, which may come long after the
// agent ended.
func (a *Attempt) CheckEnded(ctx context.Context) (why error) {
	err := a.Lease.Outlast(ctx, func(ctx context.Context) error {
		events, err := a.Env.Store.Events(ctx, a.Thread, a.State.Seq)
		_, _, why = a.scan(events, a.State.Seq)
		return err
	})
	return errors.Join(why, err)
}

// While GitHub is down, a push waits outageFirst, then doubles the wait. outageMost limits one wait, outageWait all.
const (
	outageFirst = 2 * time.Second
	outageMost  = 2 * time.Minute
	outageWait  = 6 * time.Hour
)

// deliver pushes the work and retries during an outage of GitHub. It keeps the lease but releases the slot; a
// stopping server hands the commit over. errStopped and errClosed mean that a user ended the wait.
func (a *Attempt) deliver(ctx context.Context) error {
	began := a.Env.Now()
	for try := 1; ; try++ {
		err := a.Allowed(ctx)
		if err == nil {
			err = a.executor.Push(ctx)
		}
		again, away := temporary(err, a.Env.Now().Add(policy.Retry(try, outageFirst, outageMost, 1)))
		if !away || again.After(began.Add(outageWait)) {
			return err
		}
		a.Log.Warn().Err(err).Str("commit", a.Receipt.Commit).Time("until", again).Msg("GitHub is unreachable: the attempt's commit is kept and pushed later")
		a.Release()              // other attempts may use the account
		run, end := a.Watch(ctx) // only a stop or a closing ends the wait
		err = wait.For(run, again.Sub(a.Env.Now()))
		if end(); err != nil {
			return err
		}
	}
}

// temporary reports whether a call failed for a temporary reason: GitHub was unreachable, throttled the call, or
// refused the token. It also refuses tokens if a clock is wrong. again is the time to retry.
func temporary(err error, then time.Time) (again time.Time, away bool) {
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
