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

// A step acquires a slot of this node and, on a limited account, the account's probe.

// maxWaiting limits the steps of this process that wait in memory for a slot, and acquireTime how long each waits. They
// start their attempt as soon as another ends. Other steps wait in the log: they occupy none of this node's 32 workers,
// and a node with a free slot may claim their threads.
const (
	maxWaiting  = 16
	acquireTime = 3 * time.Second
)

// releaseSpread spreads the next looks of waiting threads, so that they do not all reach a recovered provider at once.
// startSpread spreads threads that the queue starts together.
const (
	releaseSpread = 10 * time.Second
	startSpread   = 5 * time.Second
)

// A thread that got no slot or probe looks again after half of its wait so far, within these bounds.
const (
	minLook = 5 * time.Second
	maxLook = 30 * time.Second
	// crowdedLook is the minimum for threads that wait for a slot. They look again after an eighth of their wait.
	crowdedLook = 2 * time.Second
	// roomLook is for a thread that waits for a global daily limit. It looks again after roomLook to twice roomLook, so
	// that it notices a raised limit.
	roomLook = 5 * time.Minute
)

// mayAcquire checks whether an attempt on an account could start now, before anything is prepared. If not, it returns
// the wait to store (see later). If it returns nil, the step holds the probe of a limited account, unless all slots are
// taken.
func (s *step) mayAcquire(ctx context.Context, account string, most int) (*thread.Decided, error) {
	if s.pub.solver.full() {
		if policy.LeftToNode(s.pub.lease.Current().Place) {
			d := s.later(policy.RuleCrowded, "all slots of the server with the caches are taken")
			s.next = s.pub.env.Now() // another node need not wait
			return d, nil
		}
		if s.waited || s.pub.solver.waiting.Load() >= maxWaiting {
			return s.later(policy.RuleCrowded, "all slots are taken, and enough other attempts wait already"), nil
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
	return s.later(policy.RuleProbe, "account "+account+" was limited; one attempt tries it first, and the others follow once it gets an answer"), nil
}

func (s *Solver) full() bool { return s.Slots != nil && len(s.Slots) == cap(s.Slots) }

// mostOnAccount returns the limit of concurrent attempts on a decision's account; 0 means no limit.
func mostOnAccount(f policy.Facts, d policy.Decision) int {
	for _, b := range f.Backends {
		if b.Account == d.Account {
			return mostAfterLimit(b.Breaker)
		}
	}
	return 0
}

// mostAfterLimit returns the limit of concurrent attempts on an account with this breaker: one after a limit or damage,
// 0 for no limit.
func mostAfterLimit(b policy.Breaker) int {
	if b.Damage != "" {
		return 1
	}
	return min(1, b.Consecutive+b.Claim.Consecutive)
}

// later returns a wait without an end and sets the time of the next look. The decision omits that time, so that the
// same result appends nothing.
func (s *step) later(rule policy.Rule, reason string) *thread.Decided {
	now, look, share, spread := s.pub.env.Now(), minLook, 2, releaseSpread
	if rule == policy.RuleCrowded {
		look, share, spread = crowdedLook, 8, crowdedLook
	}
	if s.awaits(rule) {
		look = min(max(now.Sub(s.pub.state.DecidedAt)/time.Duration(share), look), maxLook)
	}
	s.next = now.Add(look + dispersed(s.pub.thread, 0, spread))
	return &thread.Decided{Decision: policy.Decision{Action: policy.DoWait, Rule: rule, Reasons: policy.Because(rule, reason)}}
}

func (s *step) wakeAt(d thread.Decided) time.Time {
	if d.Action != policy.DoWait || !d.Until.IsZero() {
		return d.Until
	}
	if s.next.IsZero() {
		s.next = s.pub.env.Now().Add(roomLook + dispersed(s.pub.thread, 0, roomLook))
	}
	return s.next
}

func (s *step) awaits(rule policy.Rule) bool {
	d, n := s.pub.state.Decision, len(s.pub.state.Attempts)
	if d == nil || d.Action != policy.DoWait || d.Rule != rule {
		return false
	}
	return n == 0 || s.pub.state.Attempts[n-1].At.Before(s.pub.state.DecidedAt)
}

// acquire takes a slot for an attempt, and the account's probe if the breaker allows only `most` attempts. Nil
// without an error means to decide again: the breaker changed, or another step was first.
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

// acquireProbe marks the thread as running on the account. It returns false if the breaker has changed or `most`
// attempts run.
func (s *step) acquireProbe(ctx context.Context, account string, most int) (bool, error) {
	breakers, err := s.pub.env.Store.Breakers(ctx)
	if err != nil || mostAfterLimit(breakers[account]) != most {
		return false, err
	}
	return s.pub.env.Store.AcquireProbe(ctx, s.pub.lease.Current(), account, most)
}

// startOf returns the pause that spreads the starts of threads that were woken together.
func startOf(t thread.ID) time.Duration { return dispersed(t, 1, startSpread) }

// dispersed returns a thread's offset within a span of time. The seeds of threads with similar names are similar, so
// the finalizer of SplitMix64 mixes their bits (Steele, Lea and Flood, 2014).
func dispersed(t thread.ID, n int, span time.Duration) time.Duration {
	h := seed(t, n)
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return time.Duration((h ^ h>>31) % uint64(span))
}

// acquireSlot takes one of the Slots, and may wait for it. If none is free it releases the probe, so that another step
// with a slot can try the account. Nil without an error means that no slot became free.
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

// releaseProbe releases the probe even while the process stops.
func (s *step) releaseProbe(ctx context.Context, account string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.StopTime)
	defer cancel()
	if err := s.pub.env.Store.ReleaseProbe(ctx, s.pub.lease.Current(), account); err != nil {
		s.pub.log.Warn().Err(err).Str("account", account).Msg("the account's probe was not released; it ends with the lease")
	}
}
