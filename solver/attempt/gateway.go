package attempt

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// limitGrace is how long an agent may go on after its provider said that the account is used up: some end by
// themselves within seconds and say so, others sleep until the reset.
const limitGrace = 10 * time.Second

// inPlace is how long a wait may be that an agent sits out itself. A longer one is the run's: stored, shown, and it
// costs nothing.
const inPlace = 30 * time.Second

// cut is a cause for which an attempt is ended whose work is settled as if its agent had
// ended: what it ended with, where that is not for its output to tell, and why.
type cut struct {
	ending  policy.Ending
	why     string
	paused  bool // see Receipt.Paused, Receipt.Rambled
	rambled bool
}

func (c cut) Error() string { return c.why }

// limitCut ends an attempt whose agent sleeps for a limit to pass.
func limitCut(l policy.Limit) cut {
	return cut{why: fmt.Sprintf("ended because it waited for a limit to pass (%s)", oneLine(l.Message))}
}

// fromBreaker is the source of a limit that Pawl itself told the agent: the account was known to be limited.
const fromBreaker = "breaker"

// modelAccess is an attempt's way to its model. It has no session for a backend that
// signs in by itself. The zero value is ready for one.
type modelAccess struct {
	endpoint agent.Endpoint
	session  atomic.Pointer[gateway.Session]
	refused  atomic.Pointer[policy.Limit] // what the breaker said when it refused a call
	living   atomic.Value                 // a func() that is told each sign of life there, once the agent runs

	mu sync.Mutex
	// reported adds up what an agent tells of its steps while it runs, as opencode does.
	// The others tell it once, at their end.
	reported policy.Spent
}

// open gives an attempt access to its model. The limits that show there are told to end
// if the agent waits for them to pass; the caller must close it.
func (c *checkout) open(ctx context.Context, end context.CancelCauseFunc) (err error) {
	b, m := c.backend(), &c.models
	c.hold("")
	if b.Provider == "" {
		return nil
	}
	p, ok := c.Config.Provider(b.Provider)
	if !ok || c.Env.Gateway == nil {
		return fmt.Errorf("provider %q of backend %s is not configured", b.Provider, b.Name)
	}
	p.Prices = p.PriceList()
	opened := c.Env.Gateway.Open(c.grant(ctx, p, end))
	m.session.Store(opened)
	c.hold(opened.Token())
	m.endpoint = agent.Endpoint{
		Protocol: p.Protocol,
		URL:      fmt.Sprintf("http://127.0.0.1:%d", gatewayPort),
		Token:    opened.Token(),
	}
	if !c.Env.Sandbox.Networks() { // else wall serves it
		m.endpoint.URL, err = opened.Listen()
	}
	return err
}

// grant is what the attempt may do at the gateway.
func (c *checkout) grant(ctx context.Context, p config.Provider, end context.CancelCauseFunc) gateway.Grant {
	b, m := c.backend(), &c.models
	g := gateway.Grant{
		Attempt:    fmt.Sprintf("%s/%d", c.Thread, c.N),
		Provider:   p,
		Model:      b.Model,
		SideModels: slices.Concat(b.SideModels, c.adapter.SideModels),
		MaxTokens:  c.Ground.Effective.Policy.Budget.TokensPerAttempt,
		MaxCostUSD: c.Ground.Effective.Policy.Budget.USDPerAttempt,
		Limited: func(ctx context.Context) (policy.Limit, bool) {
			return c.limitedCall(ctx, end)
		},
		OnFruitless: func(why string, effort bool) {
			end(cut{ending: policy.NoAnswer, why: why, rambled: effort})
		},
		OnLife: func() {
			if tell, ok := m.living.Load().(func()); ok {
				tell()
			}
		},
		OnLimit: func(policy.Limit) {
			time.AfterFunc(limitGrace, func() {
				if ctx.Err() == nil {
					c.endSleep(end)
				}
			})
		},
	}
	if c.Ground.Effective.Policy.Ladder.NoAnswerRetry {
		g.NoAnswerBytes, g.MinConfidence = p.NoAnswerBytes, p.MinConfidence
	}
	return g
}

// limitedCall is asked before each call of the model: a budget that is used up ends the attempt, a limit of the account
// is answered in place of the provider.
func (c *checkout) limitedCall(ctx context.Context, end context.CancelCauseFunc) (policy.Limit, bool) {
	c.note(ctx, c.models.used())
	if why := c.bound(ctx, end); why != "" {
		return policy.Limit{Kind: policy.UsageLimit, Message: "Pawl stopped it: " + why + "."}, true
	}
	l, limited := c.Env.limited(ctx, c.Account, c.Began)
	if limited && c.models.refused.CompareAndSwap(nil, &l) {
		// An agent that sleeps until then is not waited for, either.
		time.AfterFunc(limitGrace, func() { end(limitCut(l)) })
	}
	return l, limited
}

// endSleep ends an attempt whose agent has not ended by itself since its provider told a limit that lasts.
func (c *checkout) endSleep(end context.CancelCauseFunc) {
	l := c.models.session.Load().Usage().Limit
	if l == nil {
		return
	}
	if ofAccount(l.Kind) || l.ResetsAt.Sub(c.Env.Now()) > inPlace-limitGrace {
		end(limitCut(*l))
	}
}

// ofAccount reports whether an ending says that the account cannot be used.
func ofAccount(e policy.Ending) bool { return e == policy.UsageLimit || e == policy.Auth }

// limited tells the gateway what the account's breaker says: a limit that came
// after the attempt began, from any thread or node, is answered at once. What was
// known before did not keep policy from starting the attempt.
func (e *Env) limited(ctx context.Context, account string, began time.Time) (policy.Limit, bool) {
	ctx, cancel := context.WithTimeout(ctx, lease.RenewTime)
	defer cancel()
	breakers, err := e.Store.Breakers(ctx)
	if err != nil {
		// The provider will say so itself.
		return policy.Limit{}, false
	}
	b := breakers[account]
	until, limited := b.Limited(e.Now())
	if !limited || !b.At.After(began) {
		return policy.Limit{}, false
	}
	return policy.Limit{Kind: b.Kind, Message: fmt.Sprintf("account %s: %s", account, b.Kind), ResetsAt: until, Source: fromBreaker}, true
}

// spentInterval is how often it is noted what an attempt used, besides before each call.
const spentInterval = 2 * time.Second

func spentOf(u gateway.Usage) policy.Spent {
	w := policy.Spent{Tokens: u.Tokens, Limit: bounded(u.Limit)}
	if u.CostKnown {
		w.CostUSD = &u.CostUSD
	}
	return w
}

// spentIn is what the receipt of an agent that has ended tells, which is more where
// the agent signs in by itself. What the breaker said it knows.
func spentIn(r policy.Receipt) policy.Spent {
	w := policy.Spent{Tokens: r.Tokens, CostUSD: r.CostUSD, Limit: r.Limit}
	if r.Limit != nil && r.Limit.Source == fromBreaker {
		w.Limit = nil
	}
	return w
}

func (m *modelAccess) event(e agent.Event) {
	if !e.Step {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	step := policy.Spent{CostUSD: e.Cost}
	if e.Tokens != nil {
		step.Tokens = *e.Tokens
	}
	m.reported = m.reported.Plus(step)
}

// note writes into the store, under the lease, what was used so far, unless that was done or is nothing: budgets and
// breakers bind also where the process that counted was killed and another node
// goes on. What is lost with a process are the calls in flight.
func (a *Attempt) note(ctx context.Context, w policy.Spent) {
	if spentNothing(w) {
		return
	}
	w = w.Plus(a.used())
	w.N = a.N
	a.noting.Lock()
	defer a.noting.Unlock()
	if reflect.DeepEqual(w, a.noted) {
		return
	}
	err := lease.Within(ctx, lease.RenewTime, func(ctx context.Context) error {
		return a.Env.Store.Note(ctx, a.Lease.Current(), w)
	})
	if err == nil {
		a.noted = w
		return
	}
	a.warnUnlessOver(ctx, err, "what the attempt uses was not noted")
}

// warnUnlessOver logs an error in the background of an attempt. What ends the attempt shows elsewhere: a context that
// ended, a lease that was lost.
func (a *Attempt) warnUnlessOver(ctx context.Context, err error, what string) {
	if ctx.Err() == nil && !errors.Is(err, thread.ErrLeaseLost) {
		a.Log.Warn().Err(err).Msg(what)
	}
}

// spentNothing reports whether there is nothing to note.
func spentNothing(w policy.Spent) bool {
	if w.Tokens != (policy.Tokens{}) || w.Limit != nil {
		return false
	}
	return w.CostUSD == nil || *w.CostUSD == 0
}

// bound ends the attempt when a budget of the day is used up, the thread's or one above it, and says which
// one. Of what each attempt uses only the calls in flight are not counted yet.
func (c *checkout) bound(ctx context.Context, end context.CancelCauseFunc) (why string) {
	f := c.State.Facts(c.Env.Now())
	f.Limits = c.Ground.Effective.Policy.Limits
	f.Handed.Used = f.Handed.Used.Plus(c.models.used())
	ledgers := []policy.Ledger{f.Thread()}
	ctx, cancel := context.WithTimeout(ctx, lease.RenewTime)
	defer cancel()
	since := c.Env.Now().Add(-policy.Day)
	used, err := c.Env.Store.Usage(ctx, c.Thread.Repo(), c.State.Snapshot.Installation, since)
	if err == nil { // else the next look, or the next attempt's start, finds it
		ledgers = append(ledgers, f.Limits.Ledgers(used)...)
		ledgers = append(ledgers, f.Limits.Account(c.Account, used))
	}
	for _, l := range ledgers {
		if why := l.Spent(); why != "" {
			end(cut{ending: policy.TurnLimit, why: why, paused: true})
			return why
		}
	}
	return ""
}

// used is what an attempt used so far: as the gateway counts it, and without one as the agent tells.
func (m *modelAccess) used() policy.Spent {
	if session := m.session.Load(); session != nil {
		return spentOf(session.Usage())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reported
}

// keepNoting notes what is used, and ends the attempt where that is too much, until ctx ends or the function
// that it returns is called, which waits until nothing is noted any more.
func (c *checkout) keepNoting(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for wait.For(ctx, spentInterval) == nil {
			c.note(ctx, c.models.used())
			c.bound(ctx, end)
		}
	})
	return func() { cancel(); work.Wait() }
}
