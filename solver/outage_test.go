package solver

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/policy"
)

// noted is a journal that takes a note.
type noted struct {
	journal
	note spent
}

func (n *noted) Note(_ context.Context, _ Lease, note []byte) error {
	return json.Unmarshal(note, &n.note)
}

func TestAnAttemptThatStepsAsideTellsItsLimitOnce(t *testing.T) {
	store := &noted{}
	s := &step{Solver: &Solver{Store: store, Now: time.Now}, log: zerolog.Nop(), free: func() {}, lease: &keeper{}}
	a := Started{N: 1, Account: "main", Began: time.Now()}
	r := Ended{N: 1, Ending: policy.UsageLimit, Limit: &Limit{Kind: "usage_limit"}}
	s.stepAside(t.Context(), a, &r)()
	if store.breaker.Consecutive != 1 || !store.note.Told || store.note.Limit == nil {
		t.Errorf("breaker %+v, note %+v; want that the next holder knows of the limit, and that it was told", store.breaker, store.note)
	}
	if err := s.finish(t.Context(), a, r); err != nil || store.breaker.Consecutive != 1 {
		t.Errorf("%v, breaker %+v; want the limit counted once", err, store.breaker)
	}
}

func TestOnlySoManyAttemptsStepAside(t *testing.T) {
	freed := 0
	s := &step{Solver: &Solver{Store: &noted{}, Now: time.Now}, log: zerolog.Nop(), free: func() { freed++ }, lease: &keeper{}}
	var last func()
	for range maxAside + 3 {
		last = s.stepAside(t.Context(), Started{N: 1}, &Ended{N: 1})
	}
	last() // which kept its place, and has nothing to give back
	if waiting := s.rooms.aside.Load(); freed != maxAside || waiting != maxAside {
		t.Errorf("%d gave their places back and %d wait, want %d", freed, waiting, maxAside)
	}
}
