package solver

import (
	"context"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// maxWaiting is how many steps of this process may wait in memory for a place, and placeTime how long each.
// The next attempt then starts as soon as one ends. Everybody else waits in the log: there another node with
// room may take the thread up, and the steps of other threads find somebody here who takes them, which are 32
// beside the attempts.
const (
	maxWaiting = 16
	placeTime  = 3 * time.Second
)

// releaseSpread is the time over which threads look again whether it is their turn: a provider that has just
// begun to answer again is not met by all of them at once. What is due together the queue starts together;
// startSpread takes such a batch apart.
const (
	releaseSpread = 10 * time.Second
	startSpread   = 5 * time.Second
)

// How long a thread that is refused waits before it looks again: half as long as
// it has waited already, between these two.
const (
	minLook = 5 * time.Second
	maxLook = 30 * time.Second
	// crowdedLook is the least for a thread that only wants a place: an eighth of what it has waited.
	crowdedLook = 2 * time.Second
	// roomLook is for a thread that waits until a day's bound above it has room
	// again: half of the longest time that an operator who raised it has to wait.
	roomLook = 5 * time.Minute
)

// turn asks whether an attempt that policy wants on an account can have a place now, before anything is
// prepared for it. If not, it returns the wait to store instead: its end is not known, only when the thread
// looks again. An account that was limited is tried by one attempt at a time over all nodes; the one whose
// turn it is has entered it when turn returns.
func (s *step) turn(ctx context.Context, account string, most int) (*thread.Decided, error) {
	if s.Slots != nil && len(s.Slots) == cap(s.Slots) {
		if s.waited || s.waiting.Load() >= maxWaiting {
			return s.later(policy.RuleCrowded, "as many attempts run as may run at the same time, and others wait for a place already"), nil
		}
		return nil, nil // place enters the account when there is room
	}
	if most == 0 {
		return nil, nil
	}
	entered, err := s.Store.EnterAccount(ctx, s.lease.Current(), account, most, s.Now())
	if err != nil || entered {
		return nil, err
	}
	return s.later(policy.RuleProbe, "account "+account+" was limited; one attempt tries it first, and the others follow when that one was answered"), nil
}

// entry is the account of a decision's backend and how many attempts may run on it: 0 is no bound.
func entry(f policy.Facts, d policy.Decision) (account string, most int) {
	for _, b := range f.Backends {
		if b.Name == d.Backend {
			return b.Account, bound(b.Breaker)
		}
	}
	return "", 0
}

// bound is how many attempts may run on an account: one where it was limited, be it only by one agent's word.
func bound(b policy.Breaker) int { return min(1, b.Consecutive+b.Claim.Consecutive) }

// later is a wait of which only the time of the next look is known. The decision
// says nothing of that time, so that looking in vain appends nothing.
func (s *step) later(rule policy.Rule, reason string) *thread.Decided {
	now, look, share, spread := s.Now(), minLook, 2, releaseSpread
	if rule == policy.RuleCrowded {
		// Another node may have room, and which one looks is chance.
		look, share, spread = crowdedLook, 8, crowdedLook
	}
	if s.awaits(rule) {
		look = min(max(now.Sub(s.state.DecidedAt)/time.Duration(share), look), maxLook)
	}
	s.next = now.Add(look + time.Duration(seed(s.thread, 0)%uint64(spread)))
	return &thread.Decided{Decision: policy.Decision{Action: policy.DoWait, Rule: rule, Reasons: policy.Because(rule, reason)}}
}

// wakeAt is when the thread is looked at again after a decision; zero for never.
func (s *step) wakeAt(d thread.Decided) time.Time {
	if d.Action == policy.DoWait && d.Until.IsZero() {
		if s.next.IsZero() {
			s.next = s.Now().Add(roomLook + time.Duration(seed(s.thread, 0)%uint64(roomLook)))
		}
		return s.next
	}
	return d.Until
}

// awaits reports whether the last that happened was a decision to wait by this rule.
func (s *step) awaits(rule policy.Rule) bool {
	d, n := s.state.Decision, len(s.state.Attempts)
	return d != nil && d.Action == policy.DoWait && d.Rule == rule && (n == 0 || s.state.Attempts[n-1].At.Before(s.state.DecidedAt))
}

// place takes a place for an attempt among those that may run at the same time, and enters its account as far as other
// threads have left its breaker as it was: most is what the breaker has left. Nil without an error means that the
// decision has to be taken again: the breaker changed, or it is not this thread's turn here and now.
func (s *step) place(ctx context.Context, account string, most int) (free func(), err error) {
	waits := s.waiting.Add(1) <= maxWaiting
	defer s.waiting.Add(-1)
	if waits && s.awaits(policy.RuleProbe) {
		if err := wait.For(ctx, startOf(s.thread)); err != nil {
			return nil, err
		}
	}
	leave, err := s.slot(ctx, account, waits)
	if leave == nil || err != nil {
		return nil, err
	}
	breakers, err := s.Store.Breakers(ctx)
	entered := false
	if err == nil && bound(breakers[account]) == most {
		entered, err = s.Store.EnterAccount(ctx, s.lease.Current(), account, most, s.Now())
	}
	if err != nil || !entered {
		leave()
		return nil, err
	}
	crash.Point("account_entered")
	s.tries = most > 0
	return sync.OnceFunc(func() { s.leaveAccount(ctx, account); leave() }), nil
}

// startOf is when a thread starts that was released with others, after them all were woken.
func startOf(t thread.ID) time.Duration { return time.Duration(seed(t, 1) % uint64(startSpread)) }

// slot takes one of the Slots, and may wait for it. Where none is free, somebody else may have one and try the account,
// which is left. Nil without an error means that it was waited in vain.
func (s *step) slot(ctx context.Context, account string, waits bool) (leave func(), err error) {
	if s.Slots == nil {
		return func() {}, nil
	}
	leave = func() { <-s.Slots }
	select {
	case s.Slots <- struct{}{}:
		return leave, nil
	default:
		s.leaveAccount(ctx, account)
	}
	if waits {
		select {
		case s.Slots <- struct{}{}:
			return leave, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(placeTime):
		}
	}
	s.waited = true
	return nil, nil
}

// leaveAccount takes the mark back, also while the process stops. One that stays ends with the lease.
func (s *step) leaveAccount(ctx context.Context, account string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.StopTime)
	defer cancel()
	if err := s.Store.LeaveAccount(ctx, s.lease.Current(), account); err != nil {
		s.log.Warn().Err(err).Str("account", account).Msg("the account is free when the lease ends")
	}
}
