package solver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/gateway"
)

// spentInterval is how often it is noted what an attempt used, besides before each
// call.
const spentInterval = 2 * time.Second

// spent is what an attempt used, and the limit that it met.
type spent struct {
	N       int      `json:"n"` // of the attempt
	Tokens  Tokens   `json:"tokens"`
	CostUSD *float64 `json:"cost_usd,omitempty"`
	Limit   *Limit   `json:"limit,omitempty"`
	// Told says that the account's breaker has heard of the limit.
	Told bool `json:"told,omitempty"`
}

func spentOf(u gateway.Usage) spent {
	w := spent{Tokens: Tokens{Input: u.Input, CachedInput: u.CachedInput, Output: u.Output}}
	if u.CostKnown {
		w.CostUSD = &u.CostUSD
	}
	if l := u.Limit; l != nil {
		w.Limit = &Limit{Kind: l.Kind, Message: tail(l.Message, 2000), ResetsAt: l.ResetsAt, Source: agent.SourceStructured}
	}
	return w
}

// spentIn is what the receipt of an agent that has ended tells, which is more where
// the agent signs in by itself. What the breaker said it knows.
func spentIn(r Ended) spent {
	w := spent{Tokens: r.Tokens, CostUSD: r.CostUSD, Limit: r.Limit}
	if r.Limit != nil && r.Limit.Source == fromBreaker {
		w.Limit = nil
	}
	return w
}

// steps adds up what an agent tells of its steps while it runs, as opencode does.
// The others tell it once, at their end. The zero value is ready.
type steps struct {
	mu   sync.Mutex
	used spent
}

// event takes one event of the stream into account.
func (t *steps) event(e agent.Event) {
	if !e.Step {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Tokens != nil {
		t.used.Tokens = Tokens(agent.Tokens(t.used.Tokens).Plus(*e.Tokens))
	}
	if e.Cost != nil {
		sum := *e.Cost
		if t.used.CostUSD != nil {
			sum += *t.used.CostUSD
		}
		t.used.CostUSD = &sum
	}
}

func (t *steps) sum() spent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used
}

// ledger notes in the store, under the lease, what an attempt uses: budgets and
// breakers bind also where the process that counted was killed and another node
// goes on. What is lost with a process are the calls in flight.
type ledger struct {
	n int // of the attempt

	mu      sync.Mutex
	written []byte
}

// note writes down what was used so far, unless that was done or is nothing.
func (s *step) note(ctx context.Context, l *ledger, w spent) {
	if w.Tokens == (Tokens{}) && w.Limit == nil && (w.CostUSD == nil || *w.CostUSD == 0) {
		return
	}
	w.N = l.n
	l.mu.Lock()
	defer l.mu.Unlock()
	note, err := json.Marshal(w)
	if err == nil && !bytes.Equal(note, l.written) {
		err = within(ctx, renewTime, func(ctx context.Context) error { return s.Store.Note(ctx, s.lease.current(), note) })
	}
	switch {
	case err == nil:
		l.written = note
	case ctx.Err() == nil && !errors.Is(err, ErrLeaseLost): // of which the heartbeat hears
		s.log.Warn().Err(err).Msg("what the attempt uses was not noted")
	}
}

// used is what an attempt used so far: as the gateway counts it, and without one as
// the agent tells.
func (d door) used() spent {
	if d.session == nil {
		return d.steps.sum()
	}
	return spentOf(d.session.Usage())
}

// keepNoting notes what is used behind a door until ctx ends or end is called, which
// waits until nothing is noted any more.
func (s *step) keepNoting(ctx context.Context, d door) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(spentInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.note(ctx, d.ledger, d.used())
			}
		}
	})
	return func() { stop(); work.Wait() }
}

// spentBefore is what an attempt had used when the process that ran it was killed.
func (s *step) spentBefore(ctx context.Context, n int) (spent, error) {
	note, err := s.Store.Noted(ctx, s.thread)
	if err != nil || note == nil {
		return spent{}, err
	}
	var w spent
	if err := json.Unmarshal(note, &w); err != nil {
		return spent{}, fmt.Errorf("read what attempt %d used: %w", n, err)
	}
	if w.N != n {
		return spent{}, nil // it never reached its model
	}
	return w, nil
}
