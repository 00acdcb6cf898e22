package solver

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/policy"
)

// limitGrace is how long an agent may go on after its provider said that the
// account is used up: some end by themselves within seconds and say so, others
// sleep until the reset.
const limitGrace = 10 * time.Second

// limitCut is the cause for which an attempt is ended whose agent sleeps for a
// limit to pass.
type limitCut struct{ limit gateway.Limit }

// Error says what the provider said.
func (c limitCut) Error() string {
	return fmt.Sprintf("ended because it waited for a limit to pass (%s)", oneLine(c.limit.Message))
}

// fromBreaker is the source of a limit that Pawl itself told the agent: the
// account was known to be limited.
const fromBreaker = "breaker"

// door is an attempt's way to its model. It has no session for a backend that
// signs in by itself.
type door struct {
	session  *gateway.Session
	endpoint agent.Endpoint
	// refused is what the breaker said when it refused a call.
	refused *atomic.Pointer[gateway.Limit]
	ledger  *ledger
	steps   *steps
}

// open opens the door of an attempt. The limits that show there are told to end
// if the agent waits for them to pass; the caller must close the door.
func (s *step) open(ctx context.Context, a Started, b config.Backend, l config.Policy, end context.CancelCauseFunc) (door, error) {
	books := &ledger{n: a.N}
	if b.Provider == "" {
		return door{ledger: books, steps: &steps{}}, nil
	}
	p, ok := s.Config.Provider(b.Provider)
	if !ok || s.Gateway == nil {
		return door{}, fmt.Errorf("provider %q of backend %s is not configured", b.Provider, b.Name)
	}
	var session atomic.Pointer[gateway.Session]
	var refused atomic.Pointer[gateway.Limit]
	breaker := s.limited(a.Account, a.Began)
	tokens, usd := s.allowance(l, p)
	grant := gateway.Grant{
		Attempt:    fmt.Sprintf("%s/%d", s.thread, a.N),
		Provider:   provider(p),
		Model:      b.Model,
		MaxTokens:  tokens,
		MaxCostUSD: usd,
		Limited: func(ctx context.Context) (gateway.Limit, bool) {
			s.note(ctx, books, spentOf(session.Load().Usage()))
			l, limited := breaker(ctx)
			if limited && refused.CompareAndSwap(nil, &l) {
				// An agent that sleeps until then is not waited for, either.
				time.AfterFunc(limitGrace, func() { end(limitCut{l}) })
			}
			return l, limited
		},
		OnLimit: func(limit gateway.Limit) {
			time.AfterFunc(limitGrace, func() {
				if u := session.Load().Usage(); ctx.Err() == nil && u.Limit != nil && lasting(*u.Limit, s.Now()) {
					end(limitCut{*u.Limit})
				}
			})
		},
	}
	if l.Ladder.NoAnswerRetry {
		grant.NoAnswer.MaxBytes = p.NoAnswerBytes
	}
	opened := s.Gateway.Open(grant)
	session.Store(opened)
	return door{session: opened, refused: &refused, ledger: books, steps: &steps{}, endpoint: agent.Endpoint{Protocol: p.Protocol, URL: s.Gateway.URL(), Token: opened.Token()}}, nil
}

// allowance is what one attempt may use: its own budget, or what is left of the
// thread's budget of a day where that is less; 0 is no bound. Where the provider has
// no prices, money of a day is what agents themselves tell, and policy alone counts it.
func (s *step) allowance(l config.Policy, p config.Provider) (tokens int64, usd float64) {
	f := s.state.Facts(s.Now())
	f.Limits = Limits(l)
	tokens, usd = policy.Left(f)
	if own := l.Budget.TokensPerAttempt; tokens == 0 || own > 0 && own < tokens {
		tokens = own
	}
	if own := l.Budget.USDPerAttempt; usd == 0 || own > 0 && own < usd || len(p.Prices) == 0 {
		usd = own
	}
	return tokens, usd
}

func provider(p config.Provider) gateway.Provider {
	prices := map[string]gateway.Price{}
	for _, q := range p.Prices {
		prices[q.Model] = gateway.Price{Input: q.Input, CachedInput: q.CachedInput, CacheWrite: q.CacheWrite, Output: q.Output}
	}
	return gateway.Provider{Name: p.Name, Protocol: gateway.Protocol(p.Protocol), BaseURL: p.BaseURL, Key: p.Key.Reveal(), Prices: prices}
}

// lasting reports whether a limit is one that an agent must not sit out: the
// account is used up, its login is refused, or the wait is above a minute.
func lasting(l gateway.Limit, now time.Time) bool {
	kind := policy.Ending(l.Kind)
	return kind == policy.UsageLimit || kind == policy.Auth || l.ResetsAt.Sub(now) > time.Minute
}

// limited tells the gateway what the account's breaker says: a limit that came
// after the attempt began, from any thread or node, is answered at once. What was
// known before did not keep policy from starting the attempt.
func (s *Solver) limited(account string, began time.Time) func(context.Context) (gateway.Limit, bool) {
	return func(ctx context.Context) (gateway.Limit, bool) {
		var breakers map[string]Breaker
		err := within(ctx, renewTime, func(ctx context.Context) (err error) {
			breakers, err = s.Store.Breakers(ctx)
			return err
		})
		if err != nil {
			// The provider will say so itself.
			return gateway.Limit{}, false
		}
		b := breakers[account]
		until, limited := b.Limited(s.Now())
		if !limited || !b.At.After(began) {
			return gateway.Limit{}, false
		}
		return gateway.Limit{Kind: string(b.Kind), Message: fmt.Sprintf("account %s: %s", account, b.Kind), ResetsAt: until, At: b.At}, true
	}
}

// close closes the door and takes what was seen there over into the receipt: it
// was counted outside of the agent's reach.
func (d door) close(r *Ended) {
	if d.session == nil {
		return
	}
	u := d.session.Close()
	r.Gateway = true
	if u.Requests == 0 && u.Refused == 0 {
		return
	}
	used := spentOf(u)
	r.Tokens, r.CostUSD = used.Tokens, used.CostUSD
	r.Context = u.MaxContext
	if r.Turns == 0 {
		r.Turns = u.Turns
	}
	if n := u.NoAnswer; n.Times > 0 {
		r.Rungs = append(r.Rungs, Rung{
			Rung: policy.RungAnswer, Times: n.Times, Recovered: n.Recovered == n.Times, Tokens: n.Tokens,
			Trigger:  fmt.Sprintf("%d answers without a call of a tool or a text for people", n.Times),
			Response: "asked again in the opposite thinking mode, at the gateway",
		})
	}
	switch {
	case u.BudgetStopped != "" && r.Ending == policy.Completed:
		// What was refused was not needed any more.
		r.Reasons = append(r.Reasons, u.BudgetStopped)
	case u.BudgetStopped != "":
		r.Ending, r.Limit, r.Budget = policy.TurnLimit, nil, u.BudgetStopped
		r.Detail = tail(oneLine(u.BudgetStopped), 500)
		r.Reasons = append(r.Reasons, u.BudgetStopped)
	case u.Limit != nil:
		d.limit(r, *u.Limit)
	case d.refused.Load() != nil:
		d.limit(r, *d.refused.Load())
		if r.Limit != nil {
			r.Limit.Source = fromBreaker
		}
	}
}

// limit takes a limit over that the gateway saw and that no answer followed. It
// decides for every agent that did not end well; one that says it completed is
// believed if it changed something, but its account is limited all the same.
func (d door) limit(r *Ended, l gateway.Limit) {
	kind := policy.Ending(l.Kind)
	source := agent.SourceNone
	if !l.ResetsAt.IsZero() {
		source = agent.SourceText
		if l.Exact {
			source = agent.SourceStructured
		}
	}
	seen := &Limit{Kind: l.Kind, Message: tail(l.Message, 2000), ResetsAt: l.ResetsAt, Source: source}
	if r.Limit != nil && seen.ResetsAt.IsZero() {
		seen.ResetsAt, seen.Source = r.Limit.ResetsAt, r.Limit.Source
	}
	switch {
	case r.Ending == policy.UsageLimit && kind != policy.UsageLimit && kind != policy.Auth:
		// The short word of a single refusal does not undo a long wait.
		return
	case r.Ending == policy.Completed && kind != policy.UsageLimit && kind != policy.Auth:
		return
	case r.Ending == policy.Completed:
		r.Limit = seen
		r.Reasons = append(r.Reasons, "the gateway saw a limit that the agent did not tell: "+seen.Message)
		return
	}
	if r.Ending != kind {
		r.Reasons = append(r.Reasons, fmt.Sprintf("the gateway saw %s: %s", strings.ReplaceAll(l.Kind, "_", " "), seen.Message))
	}
	r.Ending, r.Limit = kind, seen
	if r.Detail == "" {
		r.Detail = tail(oneLine(seen.Message), 500)
	}
}
