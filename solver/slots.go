package solver

import (
	"context"
	"sync"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// slotInterval is how often a step that waits for a slot looks whether it is
// still wanted.
const slotInterval = 250 * time.Millisecond

// gate counts the attempts that run on each backend account in this process. The
// zero value is ready.
type gate struct {
	mu      sync.Mutex
	running map[string]int
}

// enter counts an attempt in, unless `most` of the account run already; 0 means
// that there is no bound.
func (g *gate) enter(account string, most int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if most > 0 && g.running[account] >= most {
		return false
	}
	if g.running == nil {
		g.running = map[string]int{}
	}
	g.running[account]++
	return true
}

func (g *gate) leave(account string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[account]--
}

// place waits until the attempt may start: there is room among those that may run
// at the same time, and its account is not being tried already by as many as its
// breaker has left. Nil without an error means that something changed meanwhile,
// the log, a breaker or a cooldown, so that the decision has to be taken again.
func (s *step) place(ctx context.Context, d policy.Decision, p *prepared) (free func(), err error) {
	seen := s.state.Seq
	tick := time.NewTicker(slotInterval)
	defer tick.Stop()
	for {
		free, again, err := s.tryPlace(ctx, d, p)
		if free != nil || again || err != nil {
			return free, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
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

// tryPlace takes a place if there is one now. What other threads did since the
// decision is looked at again: their limits count for this one, too.
func (s *step) tryPlace(ctx context.Context, d policy.Decision, p *prepared) (free func(), again bool, err error) {
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
				most = max(1, f.Limits.MaxConsecutiveLimits-b.Breaker.Consecutive)
			}
		}
	}
	if !s.gate.enter(account, most) {
		leave()
		return nil, false, nil
	}
	return func() { s.gate.leave(account); leave() }, false, nil
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
