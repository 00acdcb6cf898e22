package attempt

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// noted is a journal that takes a note.
type noted struct {
	journal
	note policy.Spent
}

func (n *noted) Note(_ context.Context, _ thread.Lease, note policy.Spent) error {
	n.note = note
	return nil
}

func TestAnAttemptThatYieldsItsPlaceTellsItsLimitOnce(t *testing.T) {
	store := &noted{}
	a := &Attempt{Config: &config.Server{}, Env: &Env{Store: store, Now: time.Now}, Log: zerolog.Nop(), Lease: &lease.Holder{}, Free: func() {}, Started: thread.Started{N: 1, Account: "main", Began: time.Now()},
		Receipt: policy.Receipt{N: 1, Ending: policy.UsageLimit, Limit: &policy.Limit{Kind: "usage_limit"}}}
	a.yieldPlace(t.Context())()
	if store.breaker.Claim.Consecutive != 1 || !store.note.Counted || store.note.Limit == nil {
		t.Errorf("breaker %+v, note %+v; want that the next holder knows of the limit, and that it was told", store.breaker, store.note)
	}
	if err := a.Finish(t.Context()); err != nil || store.breaker.Claim.Consecutive != 1 {
		t.Errorf("%v, breaker %+v; want the limit counted once", err, store.breaker)
	}
}

func TestOnlySoManyAttemptsYieldTheirPlaces(t *testing.T) {
	freed := 0
	e := &Env{Store: &noted{}, Now: time.Now}
	var last func()
	for range maxYielded + 3 {
		last = (&Attempt{Config: &config.Server{}, Env: e, Lease: &lease.Holder{}, Free: func() { freed++ }, Started: thread.Started{N: 1}, Receipt: policy.Receipt{N: 1}}).yieldPlace(t.Context())
	}
	last() // which kept its place, and has nothing to give back
	if waiting := e.yielded.Load(); freed != maxYielded || waiting != maxYielded {
		t.Errorf("%d gave their places back and %d wait, want %d", freed, waiting, maxYielded)
	}
}
