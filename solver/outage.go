package solver

import (
	"context"
	"errors"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
)

// How long a push waits for GitHub: outageFirst, twice as long after each try up
// to outageMost, outageWait in all, which is several times what an outage at
// GitHub mostly lasts.
const (
	outageFirst = 2 * time.Second
	outageMost  = 2 * time.Minute
	outageWait  = 6 * time.Hour
)

// maxAside is how many attempts of a process may wait for GitHub without a place.
// Each keeps one of the queue's workers, which are 32 beside the attempts and of
// which maxWaiting may wait already.
const maxAside = 8

// deliver pushes what an attempt made. While GitHub does not answer the commit
// is kept and its push is tried again: to make it anew would cost a whole
// run of the agent. The attempt keeps its lease meanwhile and gives back what other
// attempts need; a server that is stopped loses the commit. errStopped and errClosed
// say that a person ended the wait.
func (s *step) deliver(ctx context.Context, a Started, p *prepared, r *Ended) error {
	began, seen := s.Now(), a.Seen
	back := func() {}
	defer func() { back() }()
	for pause := outageFirst; ; pause = min(2*pause, outageMost) {
		err := s.push(ctx, p, r)
		again, away := comesBack(err, s.Now().Add(pause))
		if !away || again.After(began.Add(outageWait)) {
			return err
		}
		s.log.Warn().Err(err).Str("commit", r.Commit).Time("until", again).Msg("GitHub is away: the attempt's commit is kept and pushed later")
		if pause == outageFirst {
			back = s.stepAside(ctx, a, r)
		}
		if seen, err = s.waitUntil(ctx, again, seen); err != nil {
			return err
		}
	}
}

// stepAside gives the place of an attempt back whose agent has ended, and its
// account, whose breaker is told first how that was. Others may then work whose
// repositories answer. What is left of the attempt needs no account; its judge, if there
// is one, runs beside the attempts that have places.
func (s *step) stepAside(ctx context.Context, a Started, r *Ended) (back func()) {
	if s.rooms.aside.Add(1) > maxAside {
		s.rooms.aside.Add(-1)
		return func() {}
	}
	var said Batch
	s.tellBreaker(&said, a, *r, s.Now())
	if said.Breaker != nil {
		if err := s.Store.AppendLeased(ctx, s.lease.current(), said); err != nil {
			s.log.Warn().Err(err).Msg("the account's breaker hears of the attempt when that ends")
		} else {
			r.Told = true
			known := spentIn(*r)
			known.Told = true
			s.note(ctx, &ledger{n: a.N}, known)
		}
	}
	s.free()
	return func() { s.rooms.aside.Add(-1) }
}

// comesBack reports whether GitHub did not do a call because it was away, held
// Pawl back or took the App's tokens for invalid, as it does while the machine's
// clock is wrong; and when the call is worth repeating: then, unless GitHub said
// more.
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

// waitUntil waits within an attempt, and ends for a stop or a closing that comes
// after the event that was seen last. Questions are answered after the attempt.
func (s *step) waitUntil(ctx context.Context, t time.Time, seen int64) (last int64, why error) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for s.Now().Before(t) {
		select {
		case <-ctx.Done():
			return seen, context.Cause(ctx)
		case <-tick.C:
		}
		if seen, _, why = s.look(ctx, seen); why != nil {
			return seen, why
		}
	}
	return seen, nil
}
