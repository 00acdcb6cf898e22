package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// maxCalls bounds the calls of one attempt at the same time; more wait. Agents
// with helpers of their own make about ten.
const maxCalls = 16

// maxWaiting bounds the calls of one attempt that are served or wait. One agent
// must not take all connections from the others.
const maxWaiting = 64

// Grant is what one attempt may do.
type Grant struct {
	// Attempt names it in the log: owner/repo#n/attempt.
	Attempt  string
	Provider Provider
	// MaxTokens bounds input and output together, MaxCostUSD the cost; 0 is no
	// bound. The call that crosses a bound is finished, the next is refused.
	MaxTokens  int64
	MaxCostUSD float64
	NoAnswer   NoAnswer
	// Limited is the breaker's word, asked before each call; nil means never.
	Limited func(context.Context) (Limit, bool)
	// OnLimit is told each limit as soon as it is seen. It must not block.
	OnLimit func(Limit)
}

// NoAnswer sets rung 1. The zero value turns it off.
type NoAnswer struct {
	// MaxBytes is how much prose and reasoning a streamed answer may have
	// without a tool call before it is halted and tried once more; with it on,
	// an empty answer is tried once more, too.
	MaxBytes int
}

// Usage is what the calls of an attempt came to.
type Usage struct {
	// Requests counts calls that were sent to the provider, Refused those that
	// were answered here, Turns those that the model answered to the end.
	Requests, Refused, Turns int
	// Input includes CachedInput and what was written to a cache; Output
	// includes reasoning.
	Input, CachedInput, Output int64
	// Estimated is the part of Input and Output that no provider told, because
	// the answer ended before it: four bytes are counted as a token.
	Estimated int64
	CostUSD   float64
	// CostKnown is false where a model has no price; CostUSD leaves it out.
	CostKnown bool
	// Limit is the last one that no answer followed; nil where there is none.
	Limit *Limit
	// BudgetStopped says why calls are refused; empty while they are not.
	BudgetStopped string
	NoAnswer      Fired
	// MaxContext is the largest input of one call.
	MaxContext int64
}

// Fired tells what rung 1 did.
type Fired struct {
	// Times counts second tries, Recovered those that led to a tool call or to a
	// visible answer that is not too long again, Tokens what second tries used.
	Times, Recovered int
	Tokens           int64
}

// Session is the access of one attempt. It ends with Close.
type Session struct {
	gateway *Gateway
	grant   Grant
	token   string
	hash    [sha256.Size]byte
	done    chan struct{}
	slots   chan struct{}
	calls   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	inside int // calls that have begun and not ended
	usage  Usage
	atMost float64 // cost in USD with models without a price at the dearest price
}

// Token is what the agent sends in the place of a key.
func (s *Session) Token() string { return s.token }

// Usage is what was used so far.
func (s *Session) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copied()
}

// Close revokes the token, ends the calls in flight, waits for their last
// figures, and gives the totals. Further calls give the same.
func (s *Session) Close() Usage {
	s.gateway.forget(s)
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	s.mu.Unlock()
	s.calls.Wait()
	return s.Usage()
}

func (s *Session) copied() Usage {
	u := s.usage
	if u.Limit != nil {
		limit := *u.Limit
		u.Limit = &limit
	}
	return u
}

// begin counts a call in; false when the session is closed. crowded is true when
// too many calls are there already. The caller must call end.
func (s *Session) begin() (crowded, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, false
	}
	s.inside++
	s.calls.Add(1)
	return s.inside > maxWaiting, true
}

func (s *Session) end() {
	s.change(func(*Usage) { s.inside-- })
	s.calls.Done()
}

// exhausted says why the budget allows no further call, "" while it does.
// pending is what was used and is not booked yet.
func (s *Session) exhausted(model string, pending tokens) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, u := s.grant, &s.usage
	used := u.Input + u.Output + pending.input + pending.output
	price, priced := g.Provider.price(model)
	if !priced {
		price, _ = g.Provider.dearest()
	}
	cost := s.atMost + price.of(pending)
	switch {
	case g.MaxTokens > 0 && used >= g.MaxTokens:
		u.BudgetStopped = fmt.Sprintf("the attempt used %d tokens of its budget of %d", used, g.MaxTokens)
	case g.MaxCostUSD > 0 && cost >= g.MaxCostUSD:
		u.BudgetStopped = fmt.Sprintf("the attempt cost $%.2f of its budget of $%.2f", cost, g.MaxCostUSD)
	case g.MaxCostUSD > 0 && !priced && len(g.Provider.Prices) == 0:
		u.BudgetStopped = fmt.Sprintf("the budget of $%.2f cannot be kept because %s has no prices; add them or set a budget of tokens", g.MaxCostUSD, g.Provider.Name)
	default:
		return ""
	}
	return u.BudgetStopped
}

// spend adds the tokens of one answer.
func (s *Session) spend(model string, t tokens) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &s.usage
	u.Input += t.input
	u.CachedInput += t.cached
	u.Output += t.output
	u.Estimated += t.estimated
	u.MaxContext = max(u.MaxContext, t.input)
	price, known := s.grant.Provider.price(model)
	if known {
		u.CostUSD += price.of(t)
	} else {
		u.CostKnown = u.CostKnown && t.input+t.output == 0
		price, _ = s.grant.Provider.dearest()
	}
	s.atMost += price.of(t)
}

// limited records a limit and tells it to whoever waits for it.
func (s *Session) limited(l Limit) {
	s.mu.Lock()
	s.usage.Limit = &l
	s.mu.Unlock()
	if s.grant.OnLimit != nil {
		s.grant.OnLimit(l)
	}
}

func (s *Session) change(f func(*Usage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.usage)
}

// wait is how long to tell an agent to wait for a limit, in whole seconds, 0
// where nobody knows.
func (l Limit) wait(now time.Time) int64 {
	if l.ResetsAt.IsZero() {
		return 0
	}
	return max(int64(l.ResetsAt.Sub(now)+time.Second-1)/int64(time.Second), 1)
}
