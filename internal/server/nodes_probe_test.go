package server_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// overtaken is a store in which the probe of another thread meets a new limit, and
// leaves the account, right before this thread enters it. Before that it frees the
// place that the thread waits for, once its turn was asked about.
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

func TestALimitThatTheProbeMetAMomentAgoHoldsTheNextThread(t *testing.T) {
	t.Parallel()
	c := newCrashRig(t)
	ctx, now := t.Context(), c.clock.Now()
	c.cfg.Policy.UsageLimit.AutoContinue = true
	account := c.cfg.Backends[0].Account
	probe, err := c.store.Acquire(ctx, thread.ID{Owner: "acme", Name: "widgets", Number: 99}, "other")
	c.Must(err)
	limit := func(resets, at time.Time) {
		c.Must(c.store.AppendLeased(ctx, probe, thread.Batch{Account: account, Breaker: func(b policy.Breaker) policy.Breaker {
			return b.After(policy.UsageLimit, resets, at.Add(-time.Second), at)
		}}))
	}
	limit(now.Add(-time.Hour), now.Add(-2*time.Hour)) // whose reset has come
	entered, err := c.store.AcquireProbe(ctx, probe, account, 1)
	c.Must(err)
	if !entered {
		t.Fatal("the probe did not enter its account")
	}
	o := &overtaken{Store: c.store, slots: make(chan struct{}, 1), before: func() {
		limit(now.Add(time.Hour), now)
		c.Must(c.store.ReleaseProbe(ctx, probe, account))
	}}
	o.slots <- struct{}{}
	box, err := sandbox.New(ctx, sandbox.None)
	c.Must(err)
	s := &solver.Solver{Host: solver.GitHub{Forge: c.forge}, Slots: o.slots, Env: attempt.Env{Store: o, Config: c.cfg, Sandbox: box, Node: "node", Now: c.clock.Now,
		Log: zerolog.New(c.Log), Lookup: os.LookupEnv}}
	s.Env.UseLayers(attempt.LayersIn(c.cfg.DataDir))
	c.Must(s.Step(ctx, c.thread))
	if v := c.view(); c.Calls() != 0 || v.Rule != "usage_limit" || o.before != nil {
		t.Errorf("the agent was called %d times, then %s (%q); want none, and a wait for the new reset\n%s", c.Calls(), v.Rule, v.Reasons, c.Log)
	}
	if entered, err = c.store.AcquireProbe(ctx, probe, account, 1); err != nil || !entered || len(o.slots) != 0 {
		t.Errorf("the account or the place is still taken: %t, %v, %d places", entered, err, len(o.slots))
	}
}
