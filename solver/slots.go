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

// A step acquires two things for an attempt and releases them after it: one of the node's Slots, and, where the account
// was limited, the account's probe, which one attempt of all nodes holds.

// maxWaiting is how many steps of this process may wait in memory for a slot, and acquireTime how long each. The next
// attempt then starts as soon as one ends. Other steps wait in the log: a node with a free slot may claim their threads,
// and they keep none of this node's 32 workers from other threads.
const (
	maxWaiting  = 16
	acquireTime = 3 * time.Second
)

// releaseSpread is the time over which threads look again whether they may start: a provider that has just
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
	// crowdedLook is the least for a thread that only wants a slot: an eighth of what it has waited.
	crowdedLook = 2 * time.Second
	// roomLook is for a thread that waits until a day's bound above it has room
	// again: half of the longest time that an operator who raised it has to wait.
	roomLook = 5 * time.Minute
)

// mayAcquire asks whether an attempt on an account could start now, before anything is prepared for it. If not, it
// returns the wait to store instead, of which only the time of the next look is known. Where the account was limited,
// the step holds its probe when mayAcquire returns nil.
func (s *step) mayAcquire(ctx context.Context, account string, most int) (*thread.Decided, error) {
	if s.pub.solver.full() {
		if s.waited || s.pub.solver.waiting.Load() >= maxWaiting {
			return s.later(policy.RuleCrowded, "as many attempts run as may run at the same time, and others wait for a place already"), nil
		}
		return nil, nil // acquire takes the probe when a slot is free
	}
	if most == 0 {
		return nil, nil
	}
	acquired, err := s.pub.env.Store.AcquireProbe(ctx, s.pub.lease.Current(), account, most)
	if err != nil || acquired {
		return nil, err
	}
	return s.later(policy.RuleProbe, "account "+account+" was limited; one attempt tries it first, and the others follow when that one was answered"), nil
}

// full reports whether every slot is acquired.
func (s *Solver) full() bool { return s.Slots != nil && len(s.Slots) == cap(s.Slots) }

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
	now, look, share, spread := s.pub.env.Now(), minLook, 2, releaseSpread
	if rule == policy.RuleCrowded {
		// Another node may have a free slot, and which one looks is chance.
		look, share, spread = crowdedLook, 8, crowdedLook
	}
	if s.awaits(rule) {
		look = min(max(now.Sub(s.pub.state.DecidedAt)/time.Duration(share), look), maxLook)
	}
	s.next = now.Add(look + time.Duration(seed(s.pub.thread, 0)%uint64(spread)))
	return &thread.Decided{Decision: policy.Decision{Action: policy.DoWait, Rule: rule, Reasons: policy.Because(rule, reason)}}
}

// wakeAt is when the thread is looked at again after a decision; zero for never.
func (s *step) wakeAt(d thread.Decided) time.Time {
	if d.Action != policy.DoWait || !d.Until.IsZero() {
		return d.Until
	}
	if s.next.IsZero() {
		s.next = s.pub.env.Now().Add(roomLook + time.Duration(seed(s.pub.thread, 0)%uint64(roomLook)))
	}
	return s.next
}

// awaits reports whether the last that happened was a decision to wait by this rule.
func (s *step) awaits(rule policy.Rule) bool {
	d, n := s.pub.state.Decision, len(s.pub.state.Attempts)
	if d == nil || d.Action != policy.DoWait || d.Rule != rule {
		return false
	}
	return n == 0 || s.pub.state.Attempts[n-1].At.Before(s.pub.state.DecidedAt)
}

// acquire takes a slot for an attempt, and the account's probe where most, which the breaker leaves, bounds the attempts
// on it. Nil without an error means that the decision has to be taken again: the breaker changed meanwhile, or another
// step was first.
func (s *step) acquire(ctx context.Context, account string, most int) (release func(), err error) {
	waits := s.pub.solver.waiting.Add(1) <= maxWaiting
	defer s.pub.solver.waiting.Add(-1)
	if waits && s.awaits(policy.RuleProbe) {
		if err := wait.For(ctx, startOf(s.pub.thread)); err != nil {
			return nil, err
		}
	}
	releaseSlot, err := s.acquireSlot(ctx, account, waits)
	if releaseSlot == nil || err != nil {
		return nil, err
	}
	acquired, err := s.acquireProbe(ctx, account, most)
	if err != nil || !acquired {
		releaseSlot()
		return nil, err
	}
	crash.Point("probe_acquired")
	s.probes = most > 0
	return sync.OnceFunc(func() {
		s.releaseProbe(ctx, account)
		releaseSlot()
	}), nil
}

// acquireProbe marks the thread as one that runs on the account. It is false where the breaker has changed since most was
// read, or as many run there already.
func (s *step) acquireProbe(ctx context.Context, account string, most int) (bool, error) {
	breakers, err := s.pub.env.Store.Breakers(ctx)
	if err != nil || bound(breakers[account]) != most {
		return false, err
	}
	return s.pub.env.Store.AcquireProbe(ctx, s.pub.lease.Current(), account, most)
}

// startOf is when a thread starts that was released with others, after them all were woken.
func startOf(t thread.ID) time.Duration { return time.Duration(seed(t, 1) % uint64(startSpread)) }

// acquireSlot takes one of the Slots, and may wait for it. Where none is free, the probe is released: another step may
// hold a slot and try the account. Nil without an error means that the wait was in vain.
func (s *step) acquireSlot(ctx context.Context, account string, waits bool) (release func(), err error) {
	if s.pub.solver.Slots == nil {
		return func() {}, nil
	}
	release = func() { <-s.pub.solver.Slots }
	select {
	case s.pub.solver.Slots <- struct{}{}:
		return release, nil
	default:
		s.releaseProbe(ctx, account)
	}
	if waits {
		select {
		case s.pub.solver.Slots <- struct{}{}:
			return release, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(acquireTime):
		}
	}
	s.waited = true
	return nil, nil
}

// releaseProbe gives the probe back, also while the process stops. One that is not given back ends with the lease.
func (s *step) releaseProbe(ctx context.Context, account string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.StopTime)
	defer cancel()
	if err := s.pub.env.Store.ReleaseProbe(ctx, s.pub.lease.Current(), account); err != nil {
		s.pub.log.Warn().Err(err).Str("account", account).Msg("the account is free when the lease ends")
	}
}
