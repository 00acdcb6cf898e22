package solver

import (
	"context"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/policy"
)

// slotInterval is how often a step that waits for a slot looks whether it is
// still wanted.
const slotInterval = 250 * time.Millisecond

// releaseSpread is the time over which attempts start that waited for somebody
// else's probe of their account: a provider that has just begun to answer again
// is not met by all of them at once.
const releaseSpread = 10 * time.Second

// place waits until the attempt may start: there is room among those that may run
// at the same time, and its account is not being tried already by as many as its
// breaker has left. Nil without an error means that something changed meanwhile,
// the log, a breaker or a cooldown, so that the decision has to be taken again.
func (s *step) place(ctx context.Context, d policy.Decision, p *prepared) (free func(), err error) {
	seen := s.state.Seq
	next := time.NewTimer(0)
	defer next.Stop()
	turn := turn{}
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-next.C:
		}
		free, again, err := s.tryPlace(ctx, d, p, &turn)
		if free != nil || again || err != nil {
			return free, err
		}
		next.Reset(slotInterval + turn.pause)
		events, err := s.Store.Events(ctx, s.thread, seen)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Kind != KindIgnored && e.Kind != KindActStarted && e.Kind != KindActDone {
				return nil, nil
			}
			seen = e.Seq
		}
	}
}

// turn is how an attempt waits for its turn on an account.
type turn struct {
	held  bool          // another one's probe was waited for
	pause time.Duration // before the next try, beside the interval
}

// tryPlace takes a place if there is one now. What other threads did since the
// decision is looked at again: their limits count for this one, too. An account
// that was limited is tried by one attempt at a time over all nodes, and those
// that waited for it start one after another.
func (s *step) tryPlace(ctx context.Context, d policy.Decision, p *prepared, t *turn) (free func(), again bool, err error) {
	if s.Slots != nil {
		select {
		case s.Slots <- struct{}{}:
		default:
			return nil, false, nil
		}
	}
	leave := func() {
		if s.Slots != nil {
			<-s.Slots
		}
	}
	f, err := s.facts(ctx, p.effective)
	if err != nil {
		leave()
		return nil, false, err
	}
	f.Fresh = heard(f.Fresh, s.state, p.effective.Triggers)
	if now := policy.Next(f); now.Action != policy.DoAttempt || now.Backend != d.Backend {
		leave()
		return nil, true, nil
	}
	account, most := "", 0
	for _, b := range f.Backends {
		if b.Name == d.Backend {
			account = b.Account
			if b.Breaker.Consecutive > 0 {
				most = 1
			}
		}
	}
	if most == 0 && t.held {
		leave()
		t.held, t.pause = false, time.Duration(seed(s.thread, 0)%uint64(releaseSpread))
		return nil, false, nil
	}
	t.pause = 0
	entered, err := s.Store.EnterAccount(ctx, s.lease.current(), account, most, s.Now())
	if err != nil || !entered {
		leave()
		t.held = t.held || !entered
		return nil, false, err
	}
	crash.Point("account_entered")
	return func() { s.leaveAccount(ctx, account); leave() }, false, nil
}

// leaveAccount takes the mark back, also while the process stops. One that stays
// ends with the lease.
func (s *step) leaveAccount(ctx context.Context, account string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeoutAfterStop)
	defer cancel()
	if err := s.Store.LeaveAccount(ctx, s.lease.current(), account); err != nil {
		s.log.Warn().Err(err).Str("account", account).Msg("the account is free when the lease ends")
	}
}

// attend answers and acknowledges what came while an attempt runs, in the
// attempt's own lease. What it cannot do now is done after the attempt. The step
// must be a copy of the attempt's.
func (s *step) attend(ctx context.Context) {
	if err := s.load(ctx); err != nil {
		s.log.Warn().Err(err).Msg("read the log beside an attempt")
		return
	}
	if err := s.acknowledge(ctx); err != nil {
		s.log.Warn().Err(err).Msg("acknowledge beside an attempt")
	}
	for _, q := range s.state.Questions {
		if err := s.answer(ctx, q); err != nil {
			s.log.Warn().Err(err).Msg("answer beside an attempt")
			return
		}
	}
}

// asks reports whether an event wants an acknowledgement or an answer.
func asks(e Event) bool {
	return e.Kind == KindFeedback || e.Kind == KindControl || e.Kind == KindQuestion
}
