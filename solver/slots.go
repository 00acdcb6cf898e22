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

// maxWaiting is how many steps of this process may wait in memory for a place,
// and placeTime how long each. The next attempt then starts as soon as one ends.
// Everybody else waits in the log: there another node with room may take the
// thread up, and the steps of other threads find somebody here who takes them,
// which are 32 beside the attempts.
const (
	maxWaiting = 16
	placeTime  = 3 * time.Second
)

// releaseSpread is the time over which threads look again whether it is their
// turn: a provider that has just begun to answer again is not met by all of them
// at once. The queue starts what is due every 5 s; startSpread is what takes such
// a batch apart.
const (
	releaseSpread = 10 * time.Second
	startSpread   = 5 * time.Second
)

// How long a thread that is refused waits before it looks again: half as long as
// it has waited already, between these two.
const (
	minLook = 5 * time.Second
	maxLook = 30 * time.Second
	// crowdedLook is the least for a thread that only wants a place: an eighth of
	// what it has waited.
	crowdedLook = 2 * time.Second
)

// The rules of the two waits whose end nobody knows.
const (
	ruleProbe   = "probe"
	ruleCrowded = "crowded"
)

// turn asks whether an attempt that policy wants can have a place now, before
// anything is prepared for it. If not, it returns the wait to store instead: its
// end is not known, only when the thread looks again. An account that was limited
// is tried by one attempt at a time over all nodes; the one whose turn it is has
// entered it when turn returns.
func (s *step) turn(ctx context.Context, f policy.Facts, d policy.Decision) (*Decided, error) {
	if s.Slots != nil && len(s.Slots) == cap(s.Slots) {
		if s.waited || s.rooms.waiting.Load() >= maxWaiting {
			return s.later(ruleCrowded, "as many attempts run as may run at the same time, and others wait for a place already"), nil
		}
		return nil, nil // place enters the account when there is room
	}
	account, most := entry(f, d)
	if most == 0 {
		return nil, nil
	}
	entered, err := s.Store.EnterAccount(ctx, s.lease.current(), account, most, s.Now())
	if err != nil || entered {
		return nil, err
	}
	return s.later(ruleProbe, "account "+account+" was limited; one attempt tries it first, and the others follow when that one was answered"), nil
}

// entry is the account of a decision's backend and how many attempts may run on
// it: 0 is no bound.
func entry(f policy.Facts, d policy.Decision) (account string, most int) {
	for _, b := range f.Backends {
		if b.Name == d.Backend {
			account = b.Account
			if b.Breaker.Consecutive > 0 {
				most = 1
			}
		}
	}
	return account, most
}

// later is a wait of which only the time of the next look is known. The decision
// says nothing of that time, so that looking in vain appends nothing.
func (s *step) later(rule, reason string) *Decided {
	now, look, spread := s.Now(), minLook, releaseSpread
	if s.awaits(rule) {
		look = min(max(now.Sub(s.state.DecidedAt)/2, minLook), maxLook)
	}
	if rule == ruleCrowded {
		// Another node may have room, and which one looks is chance.
		look, spread = min(max(now.Sub(s.state.DecidedAt)/8, crowdedLook), maxLook), crowdedLook
		if !s.awaits(rule) {
			look = crowdedLook
		}
	}
	look += time.Duration(seed(s.thread, 0) % uint64(spread))
	s.next = now.Add(look)
	return &Decided{Seen: s.state.Seq, Decision: policy.Decision{
		Action: policy.DoWait, Rule: rule, Reasons: []string{reason},
	}}
}

// wakeAt is when the thread is looked at again after a decision; zero for never.
func (s *step) wakeAt(d Decided) time.Time {
	if d.Action == policy.DoWait && d.Until.IsZero() {
		return s.next
	}
	return d.Until
}

// awaits reports whether the last that happened was a decision to wait by this
// rule.
func (s *step) awaits(rule string) bool {
	d, n := s.state.Decision, len(s.state.Attempts)
	return d != nil && d.Action == policy.DoWait && d.Rule == rule && (n == 0 || s.state.Attempts[n-1].At.Before(s.state.DecidedAt))
}

// place waits until the attempt may start: there is room among those that may run
// at the same time, and its account is not being tried already by as many as its
// breaker has left. Nil without an error means that the decision has to be taken
// again: something changed meanwhile, the log, a breaker or a cooldown, or it is
// not this thread's turn here and now.
func (s *step) place(ctx context.Context, d policy.Decision, p *prepared) (free func(), err error) {
	if s.rooms.waiting.Add(1) > maxWaiting {
		s.rooms.waiting.Add(-1)
		free, _, err = s.tryPlace(ctx, d, p, new(bool))
		return free, err
	}
	defer s.rooms.waiting.Add(-1)
	seen := s.state.Seq
	first := time.Duration(0)
	if s.awaits(ruleProbe) {
		first = startOf(s.thread)
	}
	left, began := false, time.Now().Add(first)
	next := time.NewTimer(first)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-next.C:
		}
		free, again, err := s.tryPlace(ctx, d, p, &left)
		if free != nil || again || err != nil {
			return free, err
		}
		if time.Since(began) > placeTime {
			s.waited = true
			return nil, nil
		}
		next.Reset(slotInterval)
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

// startOf is when a thread starts that was released with others, after them all
// were woken.
func startOf(t Thread) time.Duration { return time.Duration(seed(t, 1) % uint64(startSpread)) }

// tryPlace takes a place if there is one now. What other threads did since the
// decision is looked at again: their limits count for this one, too. Where there
// is no place, somebody else may have one and try the account: it is left, once.
func (s *step) tryPlace(ctx context.Context, d policy.Decision, p *prepared, left *bool) (free func(), again bool, err error) {
	if s.Slots != nil {
		select {
		case s.Slots <- struct{}{}:
		default:
			if !*left {
				*left = true
				s.leaveAccount(ctx, backendNamed(p.effective.Backends, d.Backend).Account)
			}
			return nil, false, nil
		}
	}
	leave := func() {
		if s.Slots != nil {
			<-s.Slots
		}
	}
	still, most, err := s.still(ctx, d, p)
	if err != nil || !still {
		leave()
		return nil, true, err
	}
	account := backendNamed(p.effective.Backends, d.Backend).Account
	entered, err := s.Store.EnterAccount(ctx, s.lease.current(), account, most, s.Now())
	if err != nil || !entered {
		leave()
		return nil, true, err
	}
	crash.Point("account_entered")
	s.tries = most > 0
	free = func() { s.leaveAccount(ctx, account); leave() }
	// Who was in the account before may have met a limit after the first look and
	// left it before this thread came in.
	still, now, err := s.still(ctx, d, p)
	if err != nil || !still || now > 0 && now != most {
		free()
		return nil, true, err
	}
	return free, false, nil
}

// still reports whether policy decides as before, and how many attempts may run on
// the account of the backend, as entry says.
func (s *step) still(ctx context.Context, d policy.Decision, p *prepared) (still bool, most int, err error) {
	f, err := s.facts(ctx, p.effective)
	if err != nil {
		return false, 0, err
	}
	f.Fresh = heard(f.Fresh, s.state, p.effective.Triggers)
	now := policy.Next(f)
	_, most = entry(f, d)
	return now.Action == policy.DoAttempt && now.Backend == d.Backend, most, nil
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
