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

// limitGrace is how long an agent may continue after its provider said that the account is used up: some end by
// themselves within seconds and say so, others sleep until the reset.
const limitGrace = 10 * time.Second

// inPlace is the longest wait that an agent sits out itself. A longer one is the run's: stored, shown, and free of
// cost.
const inPlace = 30 * time.Second

// cut is a cause of an attempt's end after which its work is settled as if its agent had ended: the ending, if the
// agent's output does not decide it, and why.
type cut struct {
	ending  policy.Ending
	why     string
	paused  bool // see Receipt.Paused, Receipt.Rambled
	rambled bool
}

func (c cut) Error() string { return c.why }

// limitCut ends an attempt whose agent sleeps until a limit's reset.
func limitCut(l policy.Limit) cut {
	return cut{why: fmt.Sprintf("ended because it waited for a limit to pass (%s)", oneLine(l.Message))}
}

// fromBreaker is the source of a limit that Pawl itself answered: the account was known to be limited.
const fromBreaker = "breaker"

// modelAccess is an attempt's access to its model. It has no session for a backend that signs in by itself. The
// zero value is ready for one.
type modelAccess struct {
	endpoint agent.Endpoint
	session  atomic.Pointer[gateway.Session]
	refused  atomic.Pointer[policy.Limit] // the breaker's reason for a refused call
	last     gateway.Last                 // how the last main call ended; close sets it
	living   atomic.Value                 // a func() for each sign of life, once the agent runs

	mu sync.Mutex
	// reported adds up the use that an agent reports step by step, as opencode does. Others report it once, at their
	// end.
	reported policy.Spent
}

// open gives an attempt access to its model. Limits go to end if the agent sleeps until they reset; the caller must
// close it.
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

// grant is the attempt's permissions at the gateway.
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

// limitedCall is called before each call of the model: a used-up budget ends the attempt, and a limit of the
// account is answered without the provider.
func (c *checkout) limitedCall(ctx context.Context, end context.CancelCauseFunc) (policy.Limit, bool) {
	c.note(ctx, c.models.used())
	if why := c.bound(ctx, end); why != "" {
		return policy.Limit{Kind: policy.UsageLimit, Message: "Pawl stopped it: " + why + "."}, true
	}
	l, limited := c.Env.limited(ctx, c.Account, c.Began)
	if limited && c.models.refused.CompareAndSwap(nil, &l) {
		// Do not wait for an agent that sleeps until then, either.
		time.AfterFunc(limitGrace, func() { end(limitCut(l)) })
	}
	return l, limited
}

// endSleep ends an attempt whose agent did not end after a lasting limit.
func (c *checkout) endSleep(end context.CancelCauseFunc) {
	l := c.models.session.Load().Usage().Limit
	if l == nil {
		return
	}
	if ofAccount(l.Kind) || l.ResetsAt.Sub(c.Env.Now()) > inPlace-limitGrace {
		end(limitCut(*l))
	}
}

func ofAccount(e policy.Ending) bool { return e == policy.UsageLimit || e == policy.Auth }

// limited is the breaker's answer for the gateway: a limit that came after the attempt began, from any thread or
// node, is answered at once. Earlier limits did not keep policy from starting the attempt.
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

// spentInterval is how often an attempt's use is written, in addition to before each call.
const spentInterval = 2 * time.Second

func spentOf(u gateway.Usage) policy.Spent {
	w := policy.Spent{Tokens: u.Tokens, Limit: bounded(u.Limit)}
	if u.CostKnown {
		w.CostUSD = &u.CostUSD
	}
	return w
}

// spentIn is the use in an ended agent's receipt, which is more if the agent signs in by itself. The breaker knows
// its own refusals.
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

// note writes the use so far into the store, under the lease, if it changed: budgets and breakers bind even if the
// counting process is killed and another node continues. Only calls in flight are lost with a process.
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

// warnUnlessOver logs an error in the background of an attempt. The attempt's end, by its context or a lost lease,
// shows elsewhere.
func (a *Attempt) warnUnlessOver(ctx context.Context, err error, what string) {
	if ctx.Err() == nil && !errors.Is(err, thread.ErrLeaseLost) {
		a.Log.Warn().Err(err).Msg(what)
	}
}

func spentNothing(w policy.Spent) bool {
	if w.Tokens != (policy.Tokens{}) || w.Limit != nil {
		return false
	}
	return w.CostUSD == nil || *w.CostUSD == 0
}

// bound ends the attempt when a daily budget is used up, the thread's or a global one, and says which. Only calls
// in flight are not counted yet.
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

// used is an attempt's use so far: the gateway's count, or without one the agent's own.
func (m *modelAccess) used() policy.Spent {
	if session := m.session.Load(); session != nil {
		return spentOf(session.Usage())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reported
}

// keepNoting writes the use, and ends the attempt at a limit, until ctx ends or the returned function is called,
// which waits for the last write.
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
