package gateway

import (
	"context"
	"crypto/sha256"
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
	// Model is the one that the attempt was given, as the backend names it. Of
	// refusals of other models, which agents ask for titles and the like, only
	// those count that hold for the whole account. Empty means every model.
	Model string
	// MaxTokens bounds input and output together, MaxCostUSD the cost; 0 is no
	// bound. The call that crosses a bound is finished, the next is refused; calls
	// at the same time wait for each other where together they would cross it.
	MaxTokens  int64
	MaxCostUSD float64
	// HostedTools lets the provider search the web, run code or make pictures
	// for the agent, which costs beyond tokens and reaches past the sandbox.
	HostedTools bool
	NoAnswer    NoAnswer
	// Limited is the breaker's word, asked before each call; nil means never.
	Limited func(context.Context) (Limit, bool)
	// OnLimit is told each limit that counts as soon as it is seen. It must not block.
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
	// Limit is the last one that counts and that no later call's answer followed;
	// nil where there is none.
	Limit *Limit
	// BudgetStopped says why calls were refused; empty while none was.
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
	large   chan struct{} // taken by the one that sends a large body
	calls   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	inside   int // calls that have begun and not ended
	usage    Usage
	atMost   float64       // cost in USD with models without a price at the dearest price
	reserved share         // what the calls in flight may come to
	freed    chan struct{} // closed when some of it is given back; nil while nobody waits
	standing standing
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
	s.gateway.guests.leave(s)
	return s.Usage()
}

func (s *Session) copied() Usage {
	u := s.usage
	if s.standing.limit != nil {
		limit := *s.standing.limit
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

// limited takes a limit down that a call met and tells it to whoever waits for
// it, if it says something of this attempt.
func (s *Session) limited(l Limit, model string, call int64, ofAccount bool) bool {
	s.mu.Lock()
	counts := s.standing.refused(s.grant, model, call, l, ofAccount)
	s.mu.Unlock()
	if counts && s.grant.OnLimit != nil {
		s.grant.OnLimit(l)
	}
	return counts
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
