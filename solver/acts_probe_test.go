package solver_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// overtaken is a store in which another thread first frees the slot that this thread waits for. Then that thread's probe
// hits a limit and ends, right before this thread acquires the probe.
type overtaken struct {
	thread.Store
	slots  chan struct{}
	looks  int
	before func()
}

func (o *overtaken) Breakers(ctx context.Context) (map[string]policy.Breaker, error) {
	if o.looks++; o.looks == 2 {
		<-o.slots
	}
	return o.Store.Breakers(ctx)
}

func (o *overtaken) AcquireProbe(ctx context.Context, l thread.Lease, account string, most int) (bool, error) {
	if o.before != nil {
		o.before()
		o.before = nil
	}
	return o.Store.AcquireProbe(ctx, l, account, most)
}

func TestLimitFoundByAProbeHoldsTheNextThread(t *testing.T) {
	t.Parallel()
	a := askedFor(t)
	ctx, now := t.Context(), a.Clock.Now()
	a.cfg.Policy.UsageLimit.AutoContinue = true
	account := a.cfg.Backends[0].Account
	probe, err := a.store.Acquire(ctx, thread.ID{Owner: "acme", Name: "widgets", Number: 99}, "other")
	a.Must(err)
	limit := func(resets, at time.Time) {
		a.Must(a.store.AppendLeased(ctx, probe, thread.Batch{Account: account, Breaker: func(b policy.Breaker) policy.Breaker {
			return b.After(policy.UsageLimit, resets, at.Add(-time.Second), at)
		}}))
	}
	limit(now.Add(-time.Hour), now.Add(-2*time.Hour)) // a limit whose reset has passed
	entered, err := a.store.AcquireProbe(ctx, probe, account, 1)
	a.Must(err)
	if !entered {
		t.Fatal("the probe did not enter its account")
	}
	o := &overtaken{Store: a.store, slots: make(chan struct{}, 1), before: func() {
		limit(now.Add(time.Hour), now)
		a.Must(a.store.ReleaseProbe(ctx, probe, account))
	}}
	o.slots <- struct{}{}
	s := a.process("node")
	s.Env.Store, s.Slots = o, o.slots
	a.Must(s.Step(ctx, widgets(1)))
	if d := a.state(1).Decision; a.Calls() != 0 || d.Rule != "usage_limit" || o.before != nil {
		t.Errorf("the agent was called %d times, then %+v; want none, and a wait for the new reset", a.Calls(), d)
	}
	if entered, err = a.store.AcquireProbe(ctx, probe, account, 1); err != nil || !entered || len(o.slots) != 0 {
		t.Errorf("the account or the slot is still taken: %t, %v, %d slots", entered, err, len(o.slots))
	}
}
