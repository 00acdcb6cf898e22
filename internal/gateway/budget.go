package gateway

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// usualOutput is the output limit in tokens assumed for calls without one: Claude Code's and OpenCode's default.
const usualOutput = 32_000

// share is a part of a budget: tokens, and USD. Models without a price count at the highest price.
type share struct {
	tokens int64
	cost   float64
}

func (g Grant) shareOf(model string, t tokens) share {
	price, priced := config.PriceOf(model, g.Provider.Prices)
	if !priced {
		price = dearest(g.Provider.Prices)
	}
	return share{t.input + t.output, t.cost(price)}
}

func (a share) plus(b share) share { return share{a.tokens + b.tokens, a.cost + b.cost} }

func (a share) minus(b share) share { return share{a.tokens - b.tokens, a.cost - b.cost} }

func (g Grant) within(s share) bool {
	if g.MaxTokens != 0 && s.tokens >= g.MaxTokens {
		return false
	}
	return g.MaxCostUSD == 0 || s.cost < g.MaxCostUSD
}

// exhausted returns why the budget allows no further call, or an empty string.
func (g Grant) exhausted(used share) string {
	switch {
	case g.MaxTokens > 0 && used.tokens >= g.MaxTokens:
		return fmt.Sprintf("the attempt used %d tokens of its budget of %d", used.tokens, g.MaxTokens)
	case g.MaxCostUSD <= 0:
		return ""
	case used.cost >= g.MaxCostUSD:
		return fmt.Sprintf("the attempt cost $%.2f of its budget of $%.2f", used.cost, g.MaxCostUSD)
	case len(g.Provider.Prices) == 0:
		return fmt.Sprintf("the budget of $%.2f cannot be enforced because %s has no prices; add prices or set a token budget", g.MaxCostUSD, g.Provider.Name)
	}
	return ""
}

// used returns the usage booked so far. The caller holds the lock.
func (s *Session) used() share {
	return share{s.usage.Input + s.usage.Output, s.atMost}
}

// reserve sets aside a call's maximum, so that concurrent calls stay within the budget. It waits for calls in flight
// that may use up the budget. It returns and records a refusal; an empty reason with ok false means that ctx ended.
// After ok the caller must release the reservation.
func (s *Session) reserve(ctx context.Context, wanted share) (why string, ok bool) {
	for {
		s.mu.Lock()
		if why := s.grant.exhausted(s.used()); why != "" {
			s.usage.BudgetStopped = why
			s.mu.Unlock()
			return why, false
		}
		if s.reserved.tokens == 0 || s.grant.within(s.used().plus(s.reserved)) {
			s.reserved = s.reserved.plus(wanted)
			s.mu.Unlock()
			return "", true
		}
		if s.freed == nil {
			s.freed = make(chan struct{})
		}
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return "", false
		}
	}
}

func (s *Session) release(part share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserved = s.reserved.minus(part); s.reserved.tokens == 0 {
		s.reserved.cost = 0 // rounding may leave a remainder
	}
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// leaves reports whether the budget allows another call. pending is unbooked usage; own is the call's reservation.
func (s *Session) leaves(model string, pending tokens, own share) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used().plus(s.grant.shareOf(model, pending))
	return s.grant.exhausted(used) == "" && s.grant.within(used.plus(s.reserved).minus(own))
}

func (s *Session) spend(model string, t tokens) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &s.usage
	u.Tokens = u.Tokens.Plus(policy.Tokens{
		Input:       t.input,
		CachedInput: t.cached,
		Output:      t.output,
		Estimated:   t.estimated,
	})
	u.MaxContext = max(u.MaxContext, t.input)
	price, known := config.PriceOf(model, s.grant.Provider.Prices)
	switch {
	case known, t.costKnown:
		u.CostUSD += t.cost(price)
	case t.input+t.output > 0:
		u.CostKnown = false
	}
	s.atMost += s.grant.shareOf(model, t).cost
}

// Anthropic's price factors (2025): cache writes relative to input, and one-hour relative to five-minute cache writes.
const (
	writeFactor = 1.25
	hourFactor  = 1.6
)

func writePrice(p config.Price) float64 { return cmp.Or(p.CacheWrite, p.Input*writeFactor) }

func dearest(list []config.Price) (top config.Price) {
	for _, p := range list {
		top.Input = max(top.Input, p.Input, p.LongInput)
		top.CachedInput = max(top.CachedInput, p.CachedInput, p.LongCachedInput)
		top.CacheWrite = max(top.CacheWrite, writePrice(p))
		top.Output = max(top.Output, p.Output, p.LongOutput)
	}
	return top
}

// cost returns the provider's figure in USD, or computes it.
func (t tokens) cost(p config.Price) float64 {
	if t.costKnown {
		return t.usd
	}
	if p.LongOver > 0 && t.input > p.LongOver {
		if p.Input > 0 {
			p.CacheWrite *= p.LongInput / p.Input
		}
		p.Input, p.CachedInput, p.Output = p.LongInput, p.LongCachedInput, p.LongOutput
	}
	fresh := max(t.input-t.cached-t.written, 0)
	written := float64(t.written) + float64(t.forHour)*(hourFactor-1)
	return (float64(fresh)*p.Input + float64(t.cached)*p.CachedInput + written*writePrice(p) + float64(t.output)*p.Output) / 1e6
}
